package server

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/shard"
)

// publisher publishes to topics: *shard.Engine.
type publisher interface {
	AdmitsPublisher(ctx context.Context, t arn.ARN, account, address string) bool
	Publish(ctx context.Context, t arn.ARN, publications ...shard.Publication) ([]shard.SendResult, error)
}

// actions executes the actions of alarms.
type actions struct {
	publisher publisher // set before the first alarm is evaluated
}

var _ alarms.Executor = (*actions)(nil)

// Execute publishes to a topic.
func (x *actions) Execute(ctx context.Context, a alarms.Action) error {
	target, err := arn.Parse(a.ARN)
	if err != nil {
		return err
	}
	if target.Service != "sns" {
		return fault.New(fault.UnsupportedOperation, "Lambda functions cannot be invoked by alarms yet.")
	}
	if target.Account != a.Account && !x.publisher.AdmitsPublisher(ctx, target, a.Account, "") {
		return fault.Newf(fault.AccessDenied, "The topic's policy does not let account %s publish.", a.Account)
	}
	_, err = x.publisher.Publish(ctx, target, shard.Publication{
		ID: newID(), Sender: a.Account, Subject: a.Subject, Body: []byte(a.Message),
	})
	return err
}
