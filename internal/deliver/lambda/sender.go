// Package lambdasender delivers to functions: each attempt is a transfer from the
// subscription's backlog into the function's queue of events. The delivery does not depend on
// the result of the invocation.
package lambdasender

import (
	"context"
	"net/http"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliver"
	"godwit.dev/godwit/internal/deliver/envelope"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// Engine transfers messages; *shard.Engine implements it.
type Engine interface {
	TransferEvent(ctx context.Context, d *shard.Delivery, a shard.Attempt, dest arn.ARN, ev function.Event, unsigned *message.Unsigned) error
}

// Sender makes events. It implements deliver.Sender.
type Sender struct {
	engine Engine
}

var _ deliver.Sender = (*Sender)(nil)

// New makes a sender.
func New(e Engine) *Sender { return &Sender{engine: e} }

// Host is the function itself.
func (s *Sender) Host(endpoint string) string { return endpoint }

// Local is true: transfers are within this process.
func (s *Sender) Local() bool { return true }

// Send transfers an event to the function's queue. A success has concluded the delivery.
func (s *Sender) Send(ctx context.Context, r *deliver.Request) deliver.Outcome {
	dest, err := arn.Parse(r.Subscription.Endpoint)
	if _, _, ok := dest.SplitFunction(); err != nil || !ok {
		return deliver.Outcome{Class: deliver.ClientError, Detail: "the endpoint is no function"}
	}
	ev := function.Event{ID: r.NewID(), Trace: r.Message.Trace}
	var unsigned *message.Unsigned
	ev.Payload, unsigned = envelope.Lambda(r.Message, r.Issuer)
	a := shard.Attempt{At: r.At, Outcome: deliver.Success.String(), Status: http.StatusAccepted}
	out := outcome(s.engine.TransferEvent(ctx, r.Delivery, a, dest, ev, unsigned))
	out.Provider.ID = ev.ID
	return out
}

// outcome is the outcome of a transfer with an error: an unknown function or one whose policy
// denies it is client-side, all else is server-side.
func outcome(err error) deliver.Outcome {
	if err == nil {
		return deliver.Outcome{
			Class: deliver.Success, Status: http.StatusAccepted, Concluded: true,
			Provider: deliver.Provider{Service: deliver.Lambda, Status: http.StatusAccepted},
		}
	}
	failed := func(class deliver.Class, detail string, status int, code, text string) deliver.Outcome {
		return deliver.Outcome{
			Class: class, Detail: detail, Status: status,
			Provider: deliver.Provider{Service: deliver.Lambda, Status: status, Code: code, Message: text},
		}
	}
	switch fault.KindOf(err) {
	case fault.ResourceNotFound:
		return failed(deliver.ClientError, "the function does not exist", http.StatusNotFound,
			"ResourceNotFoundException", "The function does not exist.")
	case fault.AccessDenied:
		return failed(deliver.ClientError, "the function's policy forbids it", http.StatusForbidden,
			"AccessDeniedException", "The function's policy does not let the topic invoke it.")
	case fault.ResourceConflict:
		return failed(deliver.ServerError, "the function is being created", http.StatusConflict,
			"ResourceConflictException", "The function is being created.")
	case fault.Throttled:
		return failed(deliver.ServerError, "the function is throttled", http.StatusTooManyRequests,
			"TooManyRequestsException", "Rate Exceeded.")
	case fault.Unavailable:
		return failed(deliver.ServerError, "the function is unavailable", http.StatusServiceUnavailable,
			"ServiceUnavailableException", "The service is unavailable.")
	case fault.InsufficientStorage:
		return failed(deliver.ServerError, "the disk has too little space", http.StatusServiceUnavailable,
			"ServiceUnavailableException", "The service is unavailable.")
	default:
		return failed(deliver.ServerError, "internal error", http.StatusInternalServerError,
			"ServiceException", "The service encountered an internal error.")
	}
}
