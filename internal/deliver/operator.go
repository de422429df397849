package deliver

import (
	"context"
	"errors"
	"fmt"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
)

// OperatorEngine has the state; *shard.Engine implements it.
type OperatorEngine interface {
	Pause(ctx context.Context, subscription arn.ARN) error
	Resume(ctx context.Context, subscription arn.ARN) error
	Backlog(ctx context.Context, subscription arn.ARN) (shard.BacklogInfo, error)
	Next(ctx context.Context, w *shard.Waiting) (ids []string, err error)
	Peek(ctx context.Context, subscription arn.ARN, id string) (*shard.Delivery, error)
	Remove(ctx context.Context, d *shard.Delivery, dest arn.ARN, m *message.Message, state shard.DeliveryState, reason string) (wait func(), err error)
}

// Operator has an operator's actions on deliveries. They are durable on return, and
// idempotent.
type Operator struct {
	dispatcher *Dispatcher
	engine     OperatorEngine
}

// NewOperator makes an operator for the deliveries of d.
func NewOperator(d *Dispatcher, e OperatorEngine) *Operator { return &Operator{d, e} }

// Pause stops a subscription's deliveries; attempts in flight continue. Errors: NotFound.
func (o *Operator) Pause(ctx context.Context, subscription arn.ARN) error {
	err := o.engine.Pause(ctx, subscription)
	if err == nil {
		o.dispatcher.Recall(subscription)
	}
	return err
}

// Resume ends a Pause. Errors: NotFound.
func (o *Operator) Resume(ctx context.Context, subscription arn.ARN) error {
	return o.engine.Resume(ctx, subscription)
}

// Dropped counts the results of dropped deliveries.
type Dropped struct {
	DeadLettered int // moved to the dead-letter queue
	Dropped      int // lost: no dead-letter queue accepts them
	InFlight     int // not dropped, because they are in flight
}

// Drop ends a waiting delivery as if its retries were exhausted: it moves to the
// subscription's dead-letter queue; without one, or if that refuses it permanently, it is
// lost. Errors: NotFound; shard.ErrUnderWay; Unavailable and Throttled if the dead-letter
// queue cannot accept it now: then nothing has changed.
func (o *Operator) Drop(ctx context.Context, subscription arn.ARN, id string) (Dropped, error) {
	done, wait, err := o.BeginDrop(ctx, subscription, id)
	wait()
	return done, err
}

// BeginDrop is Drop, but only durable when wait, which is never nil, returns.
func (o *Operator) BeginDrop(ctx context.Context, subscription arn.ARN, id string) (done Dropped, wait func(), err error) {
	wait, err = o.drop(ctx, subscription, id, &done)
	return done, wait, err
}

// DropAll drops all waiting deliveries. If it fails, or ctx ends, the counted ones are
// dropped and the others are unchanged. Errors: as Drop's.
func (o *Operator) DropAll(ctx context.Context, subscription arn.ARN) (Dropped, error) {
	var done Dropped
	w := &shard.Waiting{Subscription: subscription}
	for {
		ids, err := o.engine.Next(ctx, w)
		if err == nil && len(ids) == 0 {
			info, err := o.engine.Backlog(ctx, subscription)
			done.InFlight = int(info.InFlight)
			return done, err
		}
		if err != nil {
			return done, err
		}
		// Sequentially, to keep their order, but with one wait for durability.
		wait := func() {}
		for _, id := range ids {
			last, err := o.drop(ctx, subscription, id, &done)
			switch {
			case err == nil:
				wait = last
			case errors.Is(err, shard.ErrUnderWay), fault.KindOf(err) == fault.NotFound: // it became due in the meantime
			default:
				wait()
				return done, err
			}
		}
		wait()
	}
}

func (o *Operator) drop(ctx context.Context, subscription arn.ARN, id string, done *Dropped) (wait func(), err error) {
	d, err := o.engine.Peek(ctx, subscription, id)
	if err != nil {
		return func() {}, err
	}
	s := o.dispatcher
	e := Event{Conclusion: Conclusion{
		GaveUp: d.Cause.IsZero(), // otherwise that was reported before
		State:  shard.DeliveryDropped, Reason: fmt.Sprintf("dropped by an operator after %d attempts", d.Attempt),
	}}
	if !d.Cause.IsZero() {
		e.Reason += "; " + d.Cause.Reason
	}
	wait = func() {}
	m, _, err := s.toDeadLetters(d, func(m *message.Message, dest arn.ARN) (err error) {
		wait, err = o.engine.Remove(ctx, d, dest, m, shard.DeliveryDeadLetter, e.Reason)
		return err
	})
	if m != nil {
		if errors.Is(err, shard.ErrUnderWay) || fault.KindOf(err) == fault.NotFound {
			return wait, err
		}
		out := TransferOutcome(err)
		e.Redrive, e.Redrive.ID = out.Provider, m.ID
		switch out.Class {
		case Success:
			done.DeadLettered++
			e.State = shard.DeliveryDeadLetter
			s.emit(d, &e)
			return wait, nil
		case ServerError:
			return wait, err
		case ClientError:
			e.RedriveFailed = true
			e.Reason += "; dead-letter queue: " + out.Detail
		}
	}
	if wait, err = o.engine.Remove(ctx, d, arn.ARN{}, nil, shard.DeliveryDropped, e.Reason); err == nil {
		done.Dropped++
		s.emit(d, &e)
	}
	return wait, err
}
