// Package development has the operations of development only: to advance the clock, to inject
// faults, and to delete everything.
package development

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/monitor/logs"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/deliverystreams"
	"godwit.dev/godwit/internal/shard/sources"
	"godwit.dev/godwit/internal/shard/stacks"
)

// Options are the dependencies and settings of Development.
type Options struct {
	Clock clock.Clock
	// Virtual is Clock if it is virtual; nil: it cannot be advanced.
	Virtual *clock.Virtual
	// Sync makes the writes of timers durable.
	Sync       func()
	Production bool
	Region     string // the default region of a reset
	Engine     *shard.Engine
	Streams    *deliverystreams.Module
	Stacks     *stacks.Module
	Sources    *sources.Module
	Alarms     *alarms.Engine
	Logs       *logs.Logs
}

// Development answers the operations.
type Development struct{ Options }

// New makes a Development.
func New(o Options) *Development { return &Development{o} }

// GetClock asks for the time.
type GetClock struct{}

// Clock is the server's clock.
type Clock struct {
	Clock string     `json:"clock" enum:"system,virtual"`
	Now   time.Time  `json:"now"`
	Next  *time.Time `json:"next" doc:"When the next timer is due; null: none waits, or the clock is the machine's."`
}

// GetClock reads the server's clock.
func (d *Development) GetClock(context.Context, *rest.Call, *GetClock) (*Clock, error) {
	if d.Virtual == nil {
		return &Clock{Clock: "system", Now: d.Clock.Now().UTC()}, nil
	}
	now, next := d.Virtual.Reading()
	return &Clock{Clock: "virtual", Now: now, Next: timer(next)}, nil
}

func timer(at time.Time) *time.Time {
	if at.IsZero() {
		return nil
	}
	return &at
}

// AdvanceClock asks for a later time.
type AdvanceClock struct {
	Advance string `json:"advance" required:"true" max:"64" doc:"How far: 23d, 1d12h, 90m, 1.5s."`
}

// Advanced is the result of AdvanceClock.
type Advanced struct {
	Now  time.Time  `json:"now"`
	Ran  int        `json:"ran" doc:"Timers that came due."`
	Next *time.Time `json:"next" doc:"When the next one is due; null: none waits."`
}

// AdvanceClock advances a virtual clock, from timer to timer, and answers when all due timers
// have run.
func (d *Development) AdvanceClock(ctx context.Context, _ *rest.Call, in *AdvanceClock) (*Advanced, error) {
	if d.Virtual == nil {
		return nil, rest.Conflict("this server runs on the system clock, which nobody can advance; start it with godwit dev --clock virtual")
	}
	by, err := config.ParseDuration(in.Advance)
	if err != nil {
		return nil, rest.BadRequest("advance: " + err.Error())
	}
	result, err := d.Virtual.Advance(ctx, by)
	d.Sync()
	if err != nil {
		return nil, rest.Unavailable("the clock stands still at " + result.Now.Format(time.RFC3339Nano) + ": " + err.Error())
	}
	return &Advanced{result.Now, result.Ran, timer(result.Next)}, nil
}

// Fault is an injected fault of a resource.
type Fault struct {
	ARN   string `json:"arn" required:"true" max:"2048" doc:"A queue's, function's, delivery stream's or platform application's, arn:aws:sns:REGION:ACCOUNT:direct/sms or direct/email, or with * in the place of the name that of all of sqs, sns, lambda or firehose."`
	Fault string `json:"fault" required:"true" enum:"unavailable,throttled,internal,denied,none" doc:"As an outage; as an owner that asks for less; internal and denied are for all of a service; none ends it."`
}

// About implements rest.About.
func (f *Fault) About() string { return f.ARN }

// ListFaults asks for the faults in force.
type ListFaults struct{}

// Faults are those in force, by ARN.
type Faults struct {
	Faults []Fault `json:"faults"`
}

// ListFaults lists the injected faults.
func (d *Development) ListFaults(context.Context, *rest.Call, *ListFaults) (*Faults, error) {
	out := &Faults{Faults: []Fault{}}
	for resource, name := range d.Engine.FaultsInForce() {
		out.Faults = append(out.Faults, Fault{resource.String(), name})
	}
	slices.SortFunc(out.Faults, func(a, b Fault) int { return strings.Compare(a.ARN, b.ARN) })
	return out, nil
}

// refused refuses operations that are not allowed in production.
func (d *Development) refused() error {
	if d.Production {
		return rest.Forbidden("this is for godwit dev only")
	}
	return nil
}

// FaultSet is the fault in force, as it was asked for.
type FaultSet struct {
	ARN   string  `json:"arn"`
	Fault string  `json:"fault"`
	Note  *string `json:"note" doc:"That there is no such resource, or that it had no fault to end; null: neither."`
}

// SetFault injects a fault, until it is removed or the process ends.
func (d *Development) SetFault(ctx context.Context, _ *rest.Call, in *Fault) (*FaultSet, error) {
	if err := d.refused(); err != nil {
		return nil, err
	}
	resource, err := ParseFault(in.ARN, in.Fault)
	if err != nil {
		return nil, err
	}
	note := d.FaultNote(ctx, resource, in.Fault)
	if err := d.Engine.SetFault(resource, in.Fault); err != nil {
		return nil, err
	}
	return &FaultSet{resource.String(), in.Fault, rest.Optional(note)}, nil
}

// FaultNote is what who sets a fault should know: a name may be misspelled. Whoever tests how an
// application begins sets faults of what it has yet to create, so that this is no refusal. It
// has to be asked before the fault is set.
func (d *Development) FaultNote(ctx context.Context, resource arn.ARN, fault string) string {
	_, has := d.Engine.FaultsInForce()[resource]
	switch {
	case fault == "none" && !has:
		return "it had no fault of its own"
	case fault == "none" || d.exists(ctx, resource):
		return ""
	}
	return "there is no such resource: the fault is in force once there is"
}

// exists reports whether there is something that a fault of a resource concerns.
func (d *Development) exists(ctx context.Context, resource arn.ARN) bool {
	_, direct := resource.DirectProtocol()
	switch {
	case direct || resource.Resource == shard.AllResources:
		return true
	case resource.Service == "firehose":
		_, err := d.Streams.Find(resource)
		return err == nil
	default:
		return d.Engine.Exists(ctx, resource)
	}
}

// ParseFault parses a resource and a fault. Errors: *rest.Refusal.
func ParseFault(name, fault string) (arn.ARN, error) {
	resource, err := arn.Parse(name)
	all := resource.Resource == shard.AllResources
	if err != nil || !canFail(resource, all) {
		return arn.ARN{}, rest.BadRequest("arn: want the ARN of a queue, a function, a delivery stream or a platform application, arn:aws:sns:REGION:ACCOUNT:direct/sms or direct/email, or the ARN of all of sqs, sns, lambda or firehose: arn:aws:sqs:REGION:ACCOUNT:*")
	}
	switch fault {
	case "unavailable", "throttled", "none":
	case "internal", "denied":
		if !all {
			return arn.ARN{}, rest.BadRequest("fault: " + fault + " is for all of a service, not for one queue, function or stream")
		}
	default:
		return arn.ARN{}, rest.BadRequest(`fault: want "unavailable", "throttled", "internal", "denied" or "none"`)
	}
	return resource, nil
}

// canFail reports whether faults can be injected into a resource.
func canFail(resource arn.ARN, all bool) bool {
	switch resource.Service {
	case "sqs":
		return resource.Resource != ""
	case "firehose":
		_, ok := deliverystream.NameOf(resource)
		return all || ok
	case "sns":
		protocol, direct := resource.DirectProtocol()
		direct = direct && (protocol == "sms" || protocol == "email")
		_, _, application := resource.SplitApplication()
		return all || direct || application
	case "lambda":
		_, qualifier, ok := resource.SplitFunction()
		return all || ok && qualifier == ""
	default:
		return false
	}
}

// Operations are the operations of development, with a prefix of their paths.
func (d *Development) Operations(prefix string) []rest.Operation {
	op := func(method, path, name, summary string, statuses ...int) rest.Operation {
		return rest.Operation{Method: method, Path: prefix + path, Name: name, Summary: summary, Statuses: statuses}
	}
	advance := op(http.MethodPost, "clock", "AdvanceClock", "Moves the virtual clock, and answers once everything that came due is done.", http.StatusConflict, http.StatusServiceUnavailable)
	reset := op(http.MethodPost, "reset", "Reset", "Deletes the stacks, sources, queues, topics, functions, mappings, platform applications, delivery streams, alarms and log groups of an account in a region, and ends all faults. In development only.", http.StatusServiceUnavailable)
	advance.Long, reset.Long = true, true
	return []rest.Operation{
		rest.Define(op(http.MethodGet, "clock", "GetClock", "What time it is by the server's clock."), d.GetClock),
		rest.Define(advance, d.AdvanceClock),
		rest.Define(op(http.MethodGet, "faults", "ListFaults", "What is made to fail on purpose."), d.ListFaults),
		rest.Define(op(http.MethodPost, "faults", "SetFault", "Makes a resource, or all of a service, fail on purpose. In development only."), d.SetFault),
		rest.Define(reset, d.Reset),
	}
}
