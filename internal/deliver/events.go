package deliver

import (
	"context"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/sms"
	"godwit.dev/godwit/internal/topic"
)

// Event reports what happened to a delivery: an attempt and its result, or the end of a delivery
// without a further attempt.
type Event struct {
	Subscription arn.ARN
	Protocol     topic.Protocol
	Kind         message.NoticeKind
	MessageID    message.ID
	Published    time.Time
	Size         int // bytes of the message's body
	At           time.Time
	Feedback     topic.Feedback // the topic's settings for the delivery status log
	// Endpoint is without credentials, query and fragment, and BodyMD5 is the MD5 sum of the
	// body, in hexadecimal; both are empty unless Feedback needs them.
	Endpoint, BodyMD5 string
	// Number counts the attempts from 1. Made says that there was an attempt: a move to the
	// dead-letter queue after the deadline, or a retry of that move, is an event without one.
	Number   int
	Made     bool
	Attempt  shard.Attempt // zero unless Made
	Provider Provider      // of the attempt; zero unless to a queue, function or push platform
	Text     *TextReport   // of the attempt; nil unless a text message
	// Receipt reports the later receipt of a delivered text message; nil for other events.
	Receipt *Receipt
	Conclusion
}

// Topic is the topic of the publish, or the platform application for a publish to an
// endpoint.
func (e *Event) Topic() arn.ARN {
	if t, _, ok := e.Subscription.SplitSubscription(); ok {
		return t
	}
	return e.Subscription
}

// Conclusion is the conclusion of a delivery.
type Conclusion struct {
	// GaveUp says that the delivery failed permanently with this event. Retries of the move
	// to the dead-letter queue are later events of the same failure.
	GaveUp bool
	// State is the new state of the delivery: pending if it will be retried (NextAttempt) or
	// waits for its dead-letter queue.
	State       shard.DeliveryState
	NextAttempt time.Time
	DeadLetter  arn.ARN // the subscription's dead-letter queue; zero: none
	Reason      string  // with dead-letter and dropped; or why the move waits
	// RedriveFailed says that the dead-letter queue did not accept the message.
	RedriveFailed bool
	Redrive       Provider // the dead-letter queue's answer; zero: there was no attempt
}

// Events receives all events, for metrics and delivery logs. It is called concurrently, also
// under locks, and must be quick. It must not keep pointers of an event.
type Events interface {
	Delivery(e *Event)
	Published(p *shard.Published)
}

// shownEndpoint is an endpoint for the topic owner's log groups: without credentials, query
// and fragment, which may be secret.
func shownEndpoint(sub *topic.Subscription) string {
	if sub.Protocol.Within() || sub.Protocol.Mail() || sub.Protocol.Device() {
		return sub.Endpoint
	}
	u, err := url.Parse(sub.Endpoint)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// loggedEndpoint is the result of shownEndpoint for the server's own log, which others read:
// also without the path, which often is the credential of a web hook.
func loggedEndpoint(shown string) string {
	u, err := url.Parse(shown)
	if err != nil || u.Host == "" {
		if at := strings.LastIndexByte(shown, '@'); at >= 0 {
			return "…" + shown[at:] // mail addresses are private
		}
		if strings.HasPrefix(shown, "+") {
			return sms.Masked(shown) // phone numbers are, too
		}
		return shown // an ARN
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// emit writes an event to the log, and passes it to Events.
func (s *Dispatcher) emit(d *shard.Delivery, e *Event) {
	e.Subscription, e.Protocol = d.Subscription.ARN, d.Subscription.Protocol
	e.MessageID, e.Published, e.Size = d.Message.ID, clock.Time(d.Message.Sent), len(d.Message.Body)
	e.Number, e.DeadLetter, e.At, e.Feedback = d.Attempt, d.Subscription.DeadLetters(), s.clock.Now(), d.Feedback
	if n := d.Message.Notice; n != nil {
		e.Kind = n.Kind
	}
	if s.options.Events != nil {
		if e.Feedback.Success || e.Feedback.Failure {
			e.Endpoint = shownEndpoint(&d.Subscription)
			e.BodyMD5 = bodyMD5(d.Message.Body)
		}
		s.options.Events.Delivery(e)
	}
	if e.Made {
		s.log(slog.LevelDebug, "delivery attempt", d, func() []slog.Attr {
			attrs := []slog.Attr{
				slog.String("outcome", e.Attempt.Outcome), slog.Int("status", e.Attempt.Status),
				slog.String("detail", e.Attempt.Detail), slog.Duration("latency", e.Attempt.Latency),
			}
			if !e.NextAttempt.IsZero() {
				attrs = append(attrs, slog.Time("nextAttempt", e.NextAttempt))
			}
			return attrs
		})
	}
	fate := func() []slog.Attr {
		attrs := []slog.Attr{slog.String("reason", e.Reason)}
		if !e.DeadLetter.IsZero() {
			attrs = append(attrs, slog.String("deadLetterQueue", e.DeadLetter.String()))
		}
		return attrs
	}
	switch {
	case e.State == shard.DeliveryDeadLetter:
		s.log(slog.LevelInfo, "delivery failed; message moved to the dead-letter queue", d, fate)
	case e.State == shard.DeliveryDropped:
		s.log(slog.LevelWarn, "delivery failed; message dropped", d, fate)
	case e.RedriveFailed:
		s.log(slog.LevelWarn, "delivery failed; the dead-letter queue does not take the message now, the move is tried again", d, fate)
	}
}

func (s *Dispatcher) log(level slog.Level, text string, d *shard.Delivery, more func() []slog.Attr) {
	ctx := context.Background()
	if !s.logger.Enabled(ctx, level) {
		return
	}
	attrs := append([]slog.Attr{
		slog.String("subscription", d.Subscription.ARN.String()),
		slog.String("messageId", uuid.UUID(d.Message.ID).String()),
		slog.Int("attempt", d.Attempt),
		slog.String("endpoint", loggedEndpoint(shownEndpoint(&d.Subscription))),
	}, more()...)
	s.logger.LogAttrs(ctx, level, text, attrs...) //nolint:sloglint // its three callers pass constants
}
