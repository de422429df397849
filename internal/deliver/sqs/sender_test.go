package sqssender_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/sendertest"
	sqssender "godwit.dev/godwit/internal/deliver/sqs"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

var target = arn.Queue("us-east-1", "000000000000", "q")

// engine takes transfers as an endpoint behaves.
type engine struct {
	t         *testing.T
	behaviour sendertest.Behaviour

	mu       sync.Mutex
	received [][]byte
}

func (e *engine) Transfer(ctx context.Context, d *shard.Delivery, dest arn.ARN, m *message.Message, ending shard.Ending) error {
	if dest != target || ending.State != shard.DeliveryDelivered || ending.Attempt.Outcome != "success" || ending.Attempt.At.IsZero() || d == nil {
		e.t.Errorf("transfer to %s that ends with %+v", dest, ending)
	}
	switch e.behaviour {
	case sendertest.Fails:
		return fault.New(fault.Unavailable, sendertest.Secret)
	case sendertest.Refuses:
		return fault.New(fault.QueueDoesNotExist, sendertest.Secret)
	case sendertest.Hangs:
		<-ctx.Done()
		return ctx.Err()
	case sendertest.Takes:
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received = append(e.received, m.Body)
	return nil
}

func TestConformance(t *testing.T) {
	sendertest.Run(t, func(t *testing.T, b sendertest.Behaviour) sendertest.Target {
		e := &engine{t: t, behaviour: b}
		return sendertest.Target{
			Sender: sqssender.New(e), Protocol: topic.SQS, Endpoint: target.String(),
			Received: func() [][]byte {
				e.mu.Lock()
				defer e.mu.Unlock()
				return e.received
			},
		}
	})
}

func TestSuccessIsConcluded(t *testing.T) {
	e := &engine{t: t}
	out := sqssender.New(e).Send(t.Context(), sendertest.Request(sendertest.Target{Protocol: topic.SQS, Endpoint: target.String()}))
	if out.Class != deliver.Success || !out.Concluded {
		t.Errorf("got %+v", out)
	}
}

func TestRawWithTooManyAttributes(t *testing.T) {
	e := &engine{t: t}
	r := sendertest.Request(sendertest.Target{Protocol: topic.SQS, Endpoint: target.String()})
	r.Message.Notice.Raw = true
	for i := range 11 {
		r.Message.Attributes = append(r.Message.Attributes, message.Attribute{Name: fmt.Sprint("a", i), Type: "String", Value: []byte("v")})
	}
	out := sqssender.New(e).Send(t.Context(), r)
	if out.Class != deliver.ClientError || !strings.Contains(out.Detail, "10 message attributes") || len(e.received) != 0 {
		t.Errorf("got %+v", out)
	}
	r.Message.Attributes = r.Message.Attributes[:10]
	if out := sqssender.New(e).Send(t.Context(), r); out.Class != deliver.Success {
		t.Errorf("with 10: %+v", out)
	}
}
