package transfer

import (
	"context"
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
)

// Picked names a message of a queue, which an operator picked.
type Picked struct {
	Lane     layout.Lane
	Sequence uint64
	// Incarnation is that of the queue in which it was picked: another queue of the name has
	// other messages in its places. 0: any.
	Incarnation layout.Incarnation
}

// from finds the queue in which a message was picked. Errors: QueueDoesNotExist.
func (sh *Shard) from(a arn.ARN, p Picked) (*queues.Queue, error) {
	qs, err := sh.Lookup(a)
	if err == nil && p.Incarnation != 0 && qs.Incarnation != p.Incarnation {
		err = ErrQueueMadeAgain
	}
	return qs, err
}

// ErrQueueMadeAgain refuses what was picked in an earlier queue of the name, or before a purge.
var ErrQueueMadeAgain = fault.NewRule(fault.QueueDoesNotExist, "transfer: the queue is another one of the name")

// ErrPicked refuses to move or delete a message that is in flight.
var ErrPicked = fault.NewRule(fault.ResourceInUse, "transfer: the message is in flight")

// ErrNoMessage refuses to move or delete a message that does not exist.
var ErrNoMessage = fault.NewRule(fault.NotFound, "transfer: there is no such message")

// ErrNoOrigin refuses to move a message back that does not name its source.
var ErrNoOrigin = fault.NewRule(fault.InvalidParameter, "transfer: the message does not tell where it came from")

// outgoing is a message that leaves its queue for a task: leased for it, or picked.
func (sh *Shard) outgoing(t *runningTask, qs *queues.Queue, l queue.Lease) Outgoing {
	from := Outgoing{Shard: sh, Queue: qs, Lease: l}
	if t.Picks {
		from.Check = func() error { return sh.pickable(qs, l) }
	}
	return from
}

// pickable refuses a message that does not exist, or is in flight.
func (sh *Shard) pickable(qs *queues.Queue, l queue.Lease) error {
	if qs.Ended() {
		return queues.ErrNoQueue
	}
	if _, leased := qs.Machine.Leased(l.Sequence); leased {
		return ErrPicked
	}
	sh.FlushAppended()
	_, ok, err := sh.module.Store.Get(nil, qs.Machine.Keys().Record(l.Lane, l.Sequence))
	if err == nil && !ok {
		err = ErrNoMessage
	}
	return err
}

// MovePicked moves one message of a queue to another, or, with the zero ARN, to its source: the
// queue whose dead letter it is, or the backlog of the subscription. by is the requester, whose
// permissions are checked; nil: they are not. The move is durable once wait, which is never
// nil, returns. Errors: ErrPicked, ErrNoMessage; those of move tasks.
func (e *Transfers) MovePicked(ctx context.Context, from, to arn.ARN, p Picked, by *caller.Caller) (wait func(), err error) {
	if err := ctx.Err(); err != nil {
		return func() {}, err
	}
	sh := e.ShardOf(from)
	var qs *queues.Queue
	if rest, err := sh.Run(journal.Lazy, func(*kernel.Tx) (err error) {
		qs, err = sh.from(from, p)
		return err
	}); err != nil {
		rest.Wait()
		return func() {}, err
	}
	t := &runningTask{From: from, To: to, Picks: true, MoveRecord: MoveRecord{By: by.WithoutKey()}}
	c, err := e.moveOne(sh, t, qs, queue.Lease{Lane: p.Lane, Sequence: p.Sequence})
	if err != nil {
		c.Wait() // the refusal may depend on it
		switch {
		case errors.Is(err, ErrNotLeased):
			err = ErrNoMessage
		case errors.Is(err, errNoMoveSource):
			err = ErrNoOrigin
		}
		return func() {}, err
	}
	return c.Wait, nil
}

// DeletePicked deletes one message of a queue that is not in flight. It is durable once
// wait, which is never nil, returns. Errors: ErrPicked, ErrNoMessage, QueueDoesNotExist.
func (e *Transfers) DeletePicked(ctx context.Context, from arn.ARN, p Picked) (wait func(), err error) {
	if err := ctx.Err(); err != nil {
		return func() {}, err
	}
	sh := e.ShardOf(from)
	var c *journal.Commit
	c, err = sh.Run(journal.Eager, func(*kernel.Tx) error {
		qs, err := sh.from(from, p)
		if err == nil {
			err = sh.pickable(qs, queue.Lease{Lane: p.Lane, Sequence: p.Sequence})
		}
		if err != nil {
			return err
		}
		_, err = sh.DoAtomic(qs, sh.Now(), queue.Remove{Lane: p.Lane, Sequence: p.Sequence})
		sh.EmitMessages(qs, queues.MessagesChanged, sh.Now(), 1)
		return err
	})
	if err != nil {
		c.Wait()
		return func() {}, err
	}
	return c.Wait, nil
}
