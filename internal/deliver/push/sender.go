package pushsender

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/platform"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// Endpoints has the endpoints; *shard.Engine implements it.
type Endpoints interface {
	// PushTarget fails with NotFound.
	PushTarget(name arn.ARN) (shard.PushTarget, error)
	// DisableEndpoint disables an endpoint if it still has the token; it is durable on
	// return.
	DisableEndpoint(ctx context.Context, name arn.ARN, token string) error
	// Injected returns the injected fault of an endpoint.
	Injected(name arn.ARN) error
	// Publish publishes an endpoint's event to its topic.
	Publish(ctx context.Context, t arn.ARN, publications ...shard.Publication) ([]shard.SendResult, error)
}

// Notification is a notification for one device.
type Notification struct {
	Endpoint arn.ARN
	ID       message.ID // the same for each attempt
	*shard.PushTarget
	Header  map[string]string // the request's headers
	Payload []byte            // JSON
}

// Gateway sends notifications. It may be used concurrently.
type Gateway interface {
	// Push makes one attempt. When ctx ends it returns without delay. dead says that the
	// platform does not know the token any more. No outcome contains a token or a payload.
	Push(ctx context.Context, n *Notification) (out deliver.Outcome, dead bool)
}

// Options are the dependencies of a Sender.
type Options struct {
	Endpoints Endpoints
	// Gateways are by platform.
	Gateways map[string]Gateway
	// Clock is the clock of publishes, for times to live. Nil: clock.System.
	Clock clock.Clock
}

// Sender renders and sends notifications. It implements deliver.Sender.
type Sender struct {
	Options
}

var _ deliver.Sender = (*Sender)(nil)

// New makes a sender.
func New(o Options) *Sender {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	return &Sender{o}
}

// Host is the application: each has its own connections and credentials.
func (s *Sender) Host(endpoint string) string {
	name, _ := arn.Parse(endpoint)
	if app, _, ok := name.SplitEndpoint(); ok {
		return app.String()
	}
	return endpoint
}

// Local is false: notifications leave this process.
func (s *Sender) Local() bool { return false }

// Send makes one attempt, or publishes an endpoint's event to its topic.
func (s *Sender) Send(ctx context.Context, r *deliver.Request) deliver.Outcome {
	if ctx.Err() != nil {
		return deliver.Outcome{Detail: "no time was left"}
	}
	began := clock.System.Now()
	var out deliver.Outcome
	if r.Message.Notice.Kind == message.PlatformEvent {
		out = s.publishEvent(ctx, r.Message)
	} else {
		out = s.send(ctx, r)
	}
	out.Latency = clock.System.Now().Sub(began)
	return out
}

// publishEvent publishes an event to its topic. A retry has the same id.
func (s *Sender) publishEvent(ctx context.Context, m *message.Message) deliver.Outcome {
	t, err := arn.Parse(m.Notice.Topic)
	if err == nil {
		_, err = s.Endpoints.Publish(ctx, t, shard.Publication{ID: m.ID, Sender: m.Sender, Body: m.Body})
	}
	switch {
	case err == nil:
		return deliver.Outcome{Class: deliver.Success}
	case fault.KindOf(err) == fault.Internal || fault.KindOf(err) == fault.InsufficientStorage:
		return deliver.Outcome{Class: deliver.ServerError, Detail: "the topic cannot be told now"}
	default:
		return deliver.Outcome{Class: deliver.ClientError, Detail: "the topic that wants to know of endpoints does not take it"}
	}
}

func (s *Sender) send(ctx context.Context, r *deliver.Request) deliver.Outcome {
	name, err := arn.Parse(r.Subscription.Endpoint)
	if err != nil {
		return refused(platform.SaidNoEndpoint, "InvalidEndpoint")
	}
	target, err := s.Endpoints.PushTarget(name)
	switch {
	case fault.KindOf(err) == fault.NotFound:
		return refused(platform.SaidNoEndpoint, "NotFound")
	case err != nil:
		return deliver.Outcome{Detail: "the endpoint cannot be read"}
	case !target.Enabled:
		return refused(platform.SaidDisabled, "EndpointDisabled")
	case !target.Sending:
		return refused("Platform application is disabled", "PlatformApplicationDisabled")
	}
	if err := s.Endpoints.Injected(target.Application); err != nil {
		return deliver.Outcome{Detail: "the push platform is " + outage(err), Status: 503}
	}
	gateway := s.Gateways[target.Platform]
	if gateway == nil {
		return refused("this server sends nothing to the platform "+target.Platform, "PlatformNotSupported")
	}
	n := &Notification{Endpoint: name, ID: r.Message.ID, PushTarget: &target}
	if err := n.render(r.Message, s.Clock.Now()); err != nil {
		return refused("the message is no payload of "+target.Platform, "InvalidPayload")
	}
	out, dead := gateway.Push(ctx, n)
	out.Provider.Service = deliver.Push
	if out.Provider.Status == 0 {
		out.Provider.Status = out.Status
	}
	if dead {
		if err := s.Endpoints.DisableEndpoint(ctx, name, target.Token); err != nil {
			return deliver.Outcome{Detail: "the endpoint could not be disabled", Status: out.Status}
		}
		out.Detail = platform.SaidInvalidToken + " (" + out.Provider.Code + ")"
	}
	return out
}

func refused(detail, code string) deliver.Outcome {
	return deliver.Outcome{
		Class: deliver.ClientError, Detail: detail,
		Provider: deliver.Provider{Service: deliver.Push, Status: 400, Code: code},
	}
}

func outage(err error) string {
	if fault.KindOf(err) == fault.Throttled {
		return "throttled"
	}
	return "unavailable"
}

// left is the remaining time to live of a message, in whole seconds.
func left(p string, m *message.Message, now time.Time) (seconds int64, set bool) {
	ttl, set := deliver.PushTTL(m, p)
	return max(int64((ttl-now.Sub(clock.Time(m.Sent)).Truncate(time.Second))/time.Second), 0), set
}
