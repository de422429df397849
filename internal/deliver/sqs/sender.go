// Package sqssender delivers to queues: each attempt is a transfer from the subscription's
// backlog into the queue.
package sqssender

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// Engine transfers messages; *shard.Engine implements it.
type Engine interface {
	Transfer(ctx context.Context, d *shard.Delivery, dest arn.ARN, m *message.Message, e shard.Ending) error
}

// Sender makes transfers. It implements deliver.Sender.
type Sender struct {
	engine Engine
}

var _ deliver.Sender = (*Sender)(nil)

// New makes a sender.
func New(e Engine) *Sender { return &Sender{engine: e} }

// Host is the queue itself.
func (s *Sender) Host(endpoint string) string { return endpoint }

// Local is true: transfers are within this process.
func (s *Sender) Local() bool { return true }

// Send transfers the message into the queue. A success has concluded the delivery.
func (s *Sender) Send(ctx context.Context, r *deliver.Request) deliver.Outcome {
	dest, err := arn.Parse(r.Subscription.Endpoint)
	if err != nil {
		return deliver.Outcome{Class: deliver.ClientError, Detail: "the endpoint is no queue"}
	}
	m, err := r.SQS()
	if err != nil {
		return deliver.Outcome{Class: deliver.ClientError, Detail: err.Error()}
	}
	ending := shard.Ending{
		Attempt: shard.Attempt{At: r.At, Outcome: deliver.Success.String()}, State: shard.DeliveryDelivered,
	}
	out := deliver.TransferOutcome(s.engine.Transfer(ctx, r.Delivery, dest, m, ending))
	out.Provider.ID = m.ID
	return out
}
