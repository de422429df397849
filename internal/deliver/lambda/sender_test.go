package lambdasender_test

import (
	"context"
	"encoding/json"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	lambdasender "godwit.dev/godwit/internal/deliver/lambda"
	"godwit.dev/godwit/internal/deliver/sendertest"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/topic"
)

var target = arn.Function("us-east-1", "000000000000", "f").Qualify("live")

// engine takes events as an endpoint behaves.
type engine struct {
	t         *testing.T
	behaviour sendertest.Behaviour
	err       error // instead of the behaviour's

	mu       sync.Mutex
	received [][]byte
}

func (e *engine) TransferEvent(ctx context.Context, d *shard.Delivery, a shard.Attempt, dest arn.ARN, ev function.Event, unsigned *message.Unsigned) error {
	if dest != target || a.Outcome != "success" || a.Status != 202 || a.At.IsZero() || d == nil || unsigned != nil || ev.ID == [16]byte{} {
		e.t.Errorf("event for %s, attempt %+v, unsigned %v", dest, a, unsigned)
	}
	if e.err != nil {
		return e.err
	}
	switch e.behaviour {
	case sendertest.Fails:
		return fault.New(fault.Unavailable, sendertest.Secret)
	case sendertest.Refuses:
		return fault.New(fault.ResourceNotFound, sendertest.Secret)
	case sendertest.Hangs:
		<-ctx.Done()
		return ctx.Err()
	case sendertest.Takes:
	}
	var event struct {
		Records []struct{ Sns struct{ Message string } }
	}
	if err := json.Unmarshal(ev.Payload, &event); err != nil || len(event.Records) != 1 {
		e.t.Errorf("event %s: %v", ev.Payload, err)
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.received = append(e.received, []byte(event.Records[0].Sns.Message))
	return nil
}

func TestConformance(t *testing.T) {
	sendertest.Run(t, func(t *testing.T, b sendertest.Behaviour) sendertest.Target {
		e := &engine{t: t, behaviour: b}
		return sendertest.Target{
			Sender: lambdasender.New(e), Protocol: topic.Lambda, Endpoint: target.String(),
			Received: func() [][]byte {
				e.mu.Lock()
				defer e.mu.Unlock()
				return e.received
			},
		}
	})
}

func TestSuccessIsConcluded(t *testing.T) {
	out := send(&engine{t: t}, target.String())
	if out.Class != deliver.Success || !out.Concluded || out.Status != 202 {
		t.Errorf("got %+v", out)
	}
}

func send(e *engine, endpoint string) deliver.Outcome {
	return lambdasender.New(e).Send(context.Background(), sendertest.Request(sendertest.Target{Protocol: topic.Lambda, Endpoint: endpoint}))
}

// TestOutcomes: only what the owner of the function has to change is a
// client-side error.
func TestOutcomes(t *testing.T) {
	for _, kind := range fault.Kinds() {
		want, status := deliver.ServerError, 500
		switch kind {
		case fault.ResourceNotFound:
			want, status = deliver.ClientError, 404
		case fault.AccessDenied:
			want, status = deliver.ClientError, 403
		case fault.ResourceConflict:
			status = 409
		case fault.Throttled:
			status = 429
		case fault.Unavailable, fault.InsufficientStorage:
			status = 503
		}
		out := send(&engine{t: t, err: fault.New(kind, sendertest.Secret)}, target.String())
		if out.Class != want || out.Status != status || out.Concluded || out.Detail == "" || out.Provider.Code == "" {
			t.Errorf("%d: got %+v, want %s, %d", kind, out, want, status)
		}
	}
	if out := send(&engine{t: t}, "arn:aws:sqs:us-east-1:000000000000:q"); out.Class != deliver.ClientError {
		t.Errorf("a queue: %+v", out)
	}
}
