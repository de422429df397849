// Package forwarding hands log events over to functions and delivery streams.
package forwarding

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/monitor/logs/forward"
	"godwit.dev/godwit/internal/monitor/logs/subscription"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Functions are invoked: *shard.Engine.
type Functions interface {
	AdmitService(ctx context.Context, fn arn.ARN, who *caller.Caller, sourceARN, sourceAccount string) error
	InvokeJoined(ctx context.Context, fn arn.ARN, ev function.Event, joined *kernel.Joined) error
}

// Streams take records.
type Streams interface {
	Put(ctx context.Context, a arn.ARN, records []deliverystream.Record) (ids []string, err error)
}

// Roles refuses an action of a group's role without permission, with AccessDenied.
type Roles interface {
	May(ctx context.Context, source arn.ARN, role, action string, resource arn.ARN) error
}

// Destinations are those of subscription filters.
type Destinations struct {
	Functions Functions
	Streams   Streams
	Roles     Roles
	Clock     clock.Clock
	NewID     func() message.ID
}

var _ forward.Destinations = (*Destinations)(nil)

// Reach refuses a destination that a filter of a group cannot hand over to. A delivery stream gets a record
// that says so.
func (d *Destinations) Reach(ctx context.Context, group arn.ARN, f *subscription.Filter) error {
	to, err := arn.Parse(f.Destination)
	if err != nil {
		return err
	}
	if to.Service == "firehose" {
		return d.put(ctx, group, to, f.Role, subscription.Control(d.Clock.Now().UnixMilli()))
	}
	return d.admit(ctx, group, to)
}

// Limit implements forward.Destinations.
func (d *Destinations) Limit(f *subscription.Filter) int {
	if to, _ := arn.Parse(f.Destination); to.Service == "firehose" {
		return deliverystream.MaxRecord
	}
	return subscription.EventLimit(function.MaxEventBytes)
}

// Send implements forward.Destinations. A function is invoked in the commit that ends the hand-over; a record
// is put before it.
func (d *Destinations) Send(group arn.ARN, f *subscription.Filter, p *subscription.Part, end *kernel.Joined) (joined bool, err error) {
	ctx := context.Background()
	to, err := arn.Parse(f.Destination)
	if err != nil {
		return false, err
	}
	if to.Service == "firehose" {
		return false, d.put(ctx, group, to, f.Role, p.Body)
	}
	if err := d.admit(ctx, group, to); err != nil {
		return false, err
	}
	fn, qualifier, _ := to.SplitFunction()
	err = d.Functions.InvokeJoined(ctx, fn, function.Event{ID: d.NewID(), Qualifier: qualifier, Payload: p.Event()}, end)
	return err == nil && end != nil, err
}

// admit asks a function's policy for CloudWatch Logs, which names the group with all that is in it as the
// source.
func (d *Destinations) admit(ctx context.Context, group, to arn.ARN) error {
	who := authorize.ServiceCaller("logs.amazonaws.com", "logs."+group.Region+".amazonaws.com")
	return d.Functions.AdmitService(ctx, to, who, group.String()+":*", group.Account)
}

func (d *Destinations) put(ctx context.Context, group, to arn.ARN, role string, record []byte) error {
	if _, ok := deliverystream.NameOf(to); !ok {
		return fault.Newf(fault.ResourceNotFound, "%s is no delivery stream", to.String())
	}
	if err := d.Roles.May(ctx, group, role, "firehose:PutRecord", to); err != nil {
		return err
	}
	_, err := d.Streams.Put(ctx, to, []deliverystream.Record{{Data: record}})
	return err
}
