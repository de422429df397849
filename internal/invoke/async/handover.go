package async

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// parcel is a message for a receiver.
type parcel struct {
	to   function.Receiver
	dest arn.ARN
}

// HandOver sends the end of the event to its dead-letter queue and destination, and removes
// it.
func (e *event) HandOver(ctx context.Context) bool {
	p := &e.ev.Progress
	parcels := e.parcels()
	for i, next := range parcels {
		last := i == len(parcels)-1
		moved, err := e.hand(ctx, next, last)
		switch {
		case err == nil:
		case ctx.Err() != nil: // cancelled by Stop: it says nothing about the receiver
			return false
		case temporary(err):
			e.logger.Warn("what came of an event cannot be handed over now, which is tried again", e.about(next, err)...)
			return false
		default:
			e.logger.Warn("what came of an event is not taken, and is lost", e.about(next, err)...)
			if next.to == function.ToDeadLetter {
				e.emit(invoke.DeadLetterErrors, 1)
			} else {
				e.emit(invoke.DestinationDeliveryFailures, 1)
			}
		}
		p.Handed = append(p.Handed, next.to)
		if moved {
			e.ended()
			return true
		}
	}
	e.engine.EventDone(e.ev)
	e.ended()
	return true
}

// ended reports the end of the event.
func (e *event) ended() {
	p := &e.ev.Progress
	if p.Condition == function.Success {
		return
	}
	e.emit(invoke.AsyncEventsDropped, 1)
	e.logger.Info("an event ended without the function's success", "function", e.ev.Function.String(),
		"requestId", uuid.UUID(e.ev.ID).String(), "condition", string(p.Condition), "attempts", p.Attempts)
}

func (e *event) about(next parcel, err error) []any {
	return []any{
		"function", e.ev.Function.String(), "requestId", uuid.UUID(e.ev.ID).String(),
		"to", next.dest.String(), "reason", err.Error(),
	}
}

// parcels are the messages still to be sent: those to topics first, because only a move to a
// queue or function is atomic with the removal of the event.
func (e *event) parcels() (all []parcel) {
	dest := e.config.OnSuccess
	if e.ev.Progress.Condition != function.Success {
		dest = e.config.OnFailure
		all = append(all, parcel{function.ToDeadLetter, e.target.DeadLetter})
	}
	all = append(all, parcel{function.ToDestination, dest})
	all = slices.DeleteFunc(all, func(p parcel) bool {
		return p.dest.IsZero() || slices.Contains(e.ev.Progress.Handed, p.to)
	})
	slices.SortStableFunc(all, func(x, y parcel) int { return cmp.Compare(order(x.dest), order(y.dest)) })
	return all
}

func order(dest arn.ARN) int {
	if dest.Service == "sns" {
		return 0
	}
	return 1
}

// actions are the actions that a role must allow for sending to a dead-letter queue or
// destination, by the receiver's service. Source: the Lambda developer guide, on destinations
// and dead-letter queues.
var actions = map[string]string{"sqs": "sqs:SendMessage", "sns": "sns:Publish", "lambda": "lambda:InvokeFunction"}

// Action is the action that a function's role must allow for a receiver; empty: not a
// receiver.
func Action(dest arn.ARN) string { return actions[dest.Service] }

// temporary reports whether a receiver may accept later what it refuses now.
func temporary(err error) bool {
	switch fault.KindOf(err) {
	case fault.QueueDoesNotExist, fault.NotFound, fault.ResourceNotFound, fault.AccessDenied, fault.InvalidParameter,
		fault.InvalidMessageContents, fault.RequestTooLarge, fault.UnsupportedOperation,
		fault.KMSAccessDenied, fault.KMSNotFound, fault.KMSDisabled, fault.KMSInvalidState, fault.KMSInvalidKeyUsage:
		return false
	default:
		return true
	}
}

// hand sends one parcel; it is durable on return. moved says that the event was removed with
// it, which is only possible for the last one.
func (e *event) hand(ctx context.Context, p parcel, last bool) (moved bool, err error) {
	if p.to == function.ToDeadLetter {
		return e.send(ctx, p.to, p.dest, e.ev.Payload, e.deadLetterAttributes(), last)
	}
	moved, err = e.send(ctx, p.to, p.dest, encode(e.record()), nil, last)
	if fault.KindOf(err) == fault.InvalidParameter && e.ev.Progress.Condition != function.Success {
		// Too large: send the record of the failure without payloads.
		r := e.record()
		r.RequestPayload, r.ResponsePayload = nil, nil
		return e.send(ctx, p.to, p.dest, encode(r), nil, last)
	}
	return moved, err
}

// The errors of a receiver.
var (
	ErrFIFO    = fault.NewRule(fault.InvalidParameter, "async: the target is a FIFO queue or topic")
	ErrEmpty   = fault.NewRule(fault.InvalidParameter, "async: the message is empty")
	ErrTooLong = fault.NewRule(fault.InvalidParameter, "async: the message is too long")
)

// send sends a message to a receiver; the rest is as of hand.
func (e *event) send(ctx context.Context, to function.Receiver, dest arn.ARN, body []byte, attributes []message.Attribute, last bool) (moved bool, err error) {
	who, _, err := e.options.Acting.May(ctx, &e.target, dest, Action(dest))
	if err != nil {
		return false, err
	}
	m := &message.Message{ID: e.options.NewID(), Sender: e.ev.Function.Account, Trace: e.ev.Trace, Body: body, Attributes: attributes}
	m.Seal()
	fn, qualifier, chained := dest.SplitFunction()
	switch {
	case len(body) == 0:
		return false, ErrEmpty
	case dest.FIFO():
		return false, ErrFIFO
	case dest.Service == "sns":
		if m.Size() > e.engine.MaxMessageSize(dest) {
			return false, ErrTooLong
		}
		_, err := e.engine.Publish(ctx, dest, shard.Publication{
			ID: m.ID, Sender: m.Sender, Trace: m.Trace, Body: body, Attributes: attributes, Caller: who, Source: &e.ev.Function,
		})
		return false, err
	case (chained || to == function.ToDestination) && len(body) > function.MaxEventBytes:
		// A dead letter may be larger, as the event is if a topic made it of a large message.
		return false, ErrTooLong
	case last:
		err := e.engine.MoveEvent(ctx, e.ev, dest, m, who)
		return err == nil, err
	case chained:
		return false, e.engine.InvokeAsync(ctx, fn, function.Event{ID: m.ID, Qualifier: qualifier, Trace: m.Trace, Payload: body})
	default:
		if err := e.engine.EncryptFor(dest, who, e.ev.Function, m); err != nil {
			return false, err
		}
		_, err := e.engine.Send(ctx, dest, []shard.SendEntry{{Message: m, Delay: -1}})
		return false, err
	}
}

// maxErrorMessage bounds ErrorMessage of a dead letter, in bytes. Source: the
// Lambda developer guide, "Dead-letter queues".
const maxErrorMessage = 1 << 10

// deadLetterAttributes are the message attributes of a dead letter.
func (e *event) deadLetterAttributes() []message.Attribute {
	p := &e.ev.Progress
	status, text := http.StatusOK, ""
	switch {
	case p.Condition == function.ZeroReservedConcurrency:
		status, text = http.StatusTooManyRequests, "Rate Exceeded."
	case p.Status != 0:
		status, text = p.Status, p.Refusal
	case p.Response != nil:
		text = errorMessage(p.Response.Payload)
	}
	all := []message.Attribute{
		{Name: "RequestID", Type: "String", Value: []byte(uuid.UUID(e.ev.ID).String())},
		{Name: "ErrorCode", Type: "Number", Value: []byte(strconv.Itoa(status))},
	}
	if text = cut(text, maxErrorMessage); text != "" {
		all = append(all, message.Attribute{Name: "ErrorMessage", Type: "String", Value: []byte(text)})
	}
	return all
}
