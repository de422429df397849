package monitoring

import (
	"context"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
)

// services are what alarms tell: *shard.Engine.
type services interface {
	TopicAdmits(ctx context.Context, t arn.ARN, account, address string, need *authorize.Need) bool
	Publish(ctx context.Context, t arn.ARN, publications ...shard.Publication) ([]shard.SendResult, error)
	AdmitFunction(ctx context.Context, fn arn.ARN, service, sourceARN, sourceAccount string) error
	InvokeJoined(ctx context.Context, fn arn.ARN, ev function.Event, joined *kernel.Joined) error
}

// alarmsPrincipal is who invokes functions for alarms.
const alarmsPrincipal = "lambda.alarms.cloudwatch.amazonaws.com"

// cloudWatch is who publishes for alarms: a topic's key has to let it, too.
var cloudWatch = authorize.ServiceCaller("cloudwatch.amazonaws.com")

// actions executes the actions of alarms.
type actions struct {
	newID func() message.ID
	held  func() bool
	// Set before the first alarm is evaluated.
	services services
	// mayTell asks a topic's policy for CloudWatch, which publishes for alarms; nil where
	// nobody asks, unless the topic is another account's.
	mayTell func(ctx context.Context, alarm, topic arn.ARN) error
}

var _ alarms.Executor = (*actions)(nil)

// Execute publishes to a topic, or invokes a function, and ends the action in the same commit.
// Refusals have the texts that callers of these services see.
func (x *actions) Execute(ctx context.Context, a alarms.Action, end *kernel.Joined) error {
	if x.held() {
		return fault.New(fault.Unavailable, "deliveries are held since the restore")
	}
	err := x.notify(ctx, a, end)
	if fault.Is(err) {
		return fault.New(fault.KindOf(err), refusal.Text(err))
	}
	return err
}

func (x *actions) notify(ctx context.Context, a alarms.Action, end *kernel.Joined) error {
	target, err := arn.Parse(a.ARN)
	if err != nil {
		return err
	}
	if target.Service == "lambda" {
		return x.call(ctx, target, a, end)
	}
	source, _ := arn.Parse(a.Source) // of an alarm: it is one
	switch {
	case x.mayTell != nil:
		if err := x.mayTell(ctx, source, target); err != nil {
			return err
		}
	case target.Account != a.Account && !x.services.TopicAdmits(ctx, target, a.Account, "", &authorize.Need{Action: "sns:Publish"}):
		return fault.Newf(fault.AccessDenied, "The topic's policy does not let account %s publish.", a.Account)
	}
	_, err = x.services.Publish(ctx, target, shard.Publication{
		ID: x.newID(), Sender: a.Account, Subject: a.Subject, Body: []byte(a.Message), Caller: cloudWatch, Source: &source,
		Joined: end,
	})
	return err
}

// call invokes a function whose policy lets alarms do so.
func (x *actions) call(ctx context.Context, target arn.ARN, a alarms.Action, end *kernel.Joined) error {
	fn, qualifier, ok := target.SplitFunction()
	if !ok {
		return fault.Newf(fault.ResourceNotFound, "Function not found: %s", a.ARN)
	}
	if err := x.services.AdmitFunction(ctx, target, alarmsPrincipal, a.Source, a.Account); err != nil {
		return err
	}
	return x.services.InvokeJoined(ctx, fn, function.Event{ID: x.newID(), Qualifier: qualifier, Payload: []byte(a.Message)}, end)
}
