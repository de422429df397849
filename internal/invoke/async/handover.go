package async

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// handOverWait is how long an event that has ended waits when whom it is to be
// handed over to cannot take it now: the last phase of the AWS-managed policy,
// without end.
const handOverWait = 20 * time.Second

// maxTopicMessage bounds a message with its attributes. Source: the SNS API
// reference, Publish.
const maxTopicMessage = 256 << 10

// parcel is something to be handed over.
type parcel struct {
	to   function.Receiver
	dest arn.ARN
}

// end ends the event: it is handed over to whom is to be told, and removed.
func (a *attempt) end(condition function.Condition) {
	p := &a.ev.Progress
	p.Condition = condition
	parcels := a.parcels()
	for i, next := range parcels {
		last := i == len(parcels)-1
		moved, err := a.hand(next, last)
		switch {
		case err == nil:
		case temporary(err):
			a.logger.Warn("what came of an event cannot be handed over now, which is tried again", a.about(next, err)...)
			a.engine.RetryEvent(a.ev, a.clock.Now().Add(handOverWait))
			return
		default:
			a.logger.Warn("what came of an event is not taken, and is lost", a.about(next, err)...)
			if next.to == function.ToDeadLetter {
				a.tell(invoke.DeadLetterErrors, 1)
			} else {
				a.tell(invoke.DestinationDeliveryFailures, 1)
			}
		}
		p.Handed = append(p.Handed, next.to)
		if moved {
			a.ended()
			return
		}
	}
	a.engine.EventDone(a.ev)
	a.ended()
}

// ended tells that the event is gone.
func (a *attempt) ended() {
	p := &a.ev.Progress
	if p.Condition == function.Success {
		return
	}
	a.tell(invoke.AsyncEventsDropped, 1)
	a.logger.Info("an event ended without the function's success", "function", a.ev.Function.String(),
		"requestId", uuid.UUID(a.ev.ID).String(), "condition", string(p.Condition), "attempts", p.Attempts)
}

func (a *attempt) about(next parcel, err error) []any {
	return []any{
		"function", a.ev.Function.String(), "requestId", uuid.UUID(a.ev.ID).String(),
		"to", next.dest.String(), "reason", err.Error(),
	}
}

// parcels are what is still to be handed over: to topics first, since only what
// goes to a queue or function can go in the step that removes the event.
func (a *attempt) parcels() (all []parcel) {
	dest := a.config.OnSuccess
	if a.ev.Progress.Condition != function.Success {
		dest = a.config.OnFailure
		all = append(all, parcel{function.ToDeadLetter, a.target.DeadLetter})
	}
	all = append(all, parcel{function.ToDestination, dest})
	all = slices.DeleteFunc(all, func(p parcel) bool {
		return p.dest.IsZero() || slices.Contains(a.ev.Progress.Handed, p.to)
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

// temporary says that a receiver may take later what it does not take now.
func temporary(err error) bool {
	switch fault.KindOf(err) {
	case fault.QueueDoesNotExist, fault.NotFound, fault.ResourceNotFound, fault.AccessDenied, fault.InvalidParameter,
		fault.InvalidMessageContents, fault.RequestTooLarge, fault.UnsupportedOperation:
		return false
	default:
		return true
	}
}

// hand hands one parcel over; it is durable then. moved says that the event was
// removed with it, which may happen to the last one.
func (a *attempt) hand(p parcel, last bool) (moved bool, err error) {
	if p.to == function.ToDeadLetter {
		return a.send(p.dest, a.ev.Payload, a.deadLetterAttributes(), last)
	}
	moved, err = a.send(p.dest, a.record(false), nil, last)
	if fault.KindOf(err) == fault.InvalidParameter && a.ev.Progress.Condition != function.Success {
		// Too large: of a failure it is told without what was too large.
		return a.send(p.dest, a.record(true), nil, last)
	}
	return moved, err
}

var (
	errFIFO  = fault.New(fault.InvalidParameter, "The target is a FIFO queue or topic.")
	errEmpty = fault.New(fault.InvalidParameter, "The message is empty.")
	errLong  = fault.New(fault.InvalidParameter, "The message is too long.")
)

func (a *attempt) send(dest arn.ARN, body []byte, attributes []message.Attribute, last bool) (moved bool, err error) {
	ctx := a.attempts
	m := &message.Message{ID: a.options.NewID(), Sender: a.ev.Function.Account, Trace: a.ev.Trace, Body: body, Attributes: attributes}
	m.Seal()
	fn, qualifier, chained := dest.SplitFunction()
	switch {
	case len(body) == 0:
		return false, errEmpty
	case dest.FIFO():
		return false, errFIFO
	case dest.Service == "sns":
		if m.Size() > maxTopicMessage {
			return false, errLong
		}
		_, err := a.engine.Publish(ctx, dest, shard.Publication{
			ID: m.ID, Sender: m.Sender, Trace: m.Trace, Body: body, Attributes: attributes,
		})
		return false, err
	case chained && len(body) > function.MaxEventBytes:
		return false, errLong
	case last:
		err := a.engine.MoveEvent(ctx, a.ev, dest, m)
		return err == nil, err
	case chained:
		return false, a.engine.InvokeAsync(ctx, fn, function.Event{ID: m.ID, Qualifier: qualifier, Trace: m.Trace, Payload: body})
	default:
		_, err := a.engine.Send(ctx, dest, []shard.Outgoing{{Message: m, Delay: -1}})
		return false, err
	}
}

// maxErrorMessage bounds ErrorMessage of a dead letter, in bytes. Source: the
// Lambda developer guide, "Dead-letter queues".
const maxErrorMessage = 1 << 10

// deadLetterAttributes are what a dead letter has besides the event itself.
func (a *attempt) deadLetterAttributes() []message.Attribute {
	p := &a.ev.Progress
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
		{Name: "RequestID", Type: "String", Value: []byte(uuid.UUID(a.ev.ID).String())},
		{Name: "ErrorCode", Type: "Number", Value: []byte(strconv.Itoa(status))},
	}
	if text = cut(text, maxErrorMessage); text != "" {
		all = append(all, message.Attribute{Name: "ErrorMessage", Type: "String", Value: []byte(text)})
	}
	return all
}
