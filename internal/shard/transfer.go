package shard

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// A transfer carries a message from one queue to another, which may belong to
// different shards. Where both share a store, one commit takes it out of the one
// and puts it into the other. Otherwise it takes two steps: the destination
// accepts it, together with a mark that names where it came from, and only when
// that is durable does the source remove its own. A crash in between leaves both
// the message at the source and the mark at the destination; on the way up every
// mark is settled before anything is served.

// transferID names a message on its way: where it came from.
type transferID struct {
	shard       uint16
	incarnation layout.Incarnation
	sequence    uint64
}

func transferPrefix(shard uint16) []byte {
	return keyspace.Shard(shard, keyspace.Transfers)
}

func (id transferID) key(destination uint16) []byte {
	key := binary.BigEndian.AppendUint16(transferPrefix(destination), id.shard)
	key = binary.BigEndian.AppendUint64(key, uint64(id.incarnation))
	return binary.BigEndian.AppendUint64(key, id.sequence)
}

func decodeTransferKey(key []byte) transferID {
	return transferID{
		shard:       binary.BigEndian.Uint16(key[3:]),
		incarnation: layout.Incarnation(binary.BigEndian.Uint64(key[5:])),
		sequence:    binary.BigEndian.Uint64(key[13:]),
	}
}

// errNotLeased says that the message to be transferred is not there any more:
// its queue or subscription has been deleted meanwhile.
var errNotLeased = errors.New("shard: the message to be moved is gone")

// arrival makes a message as it enters the destination at the time now, which
// has the configuration cfg.
type arrival func(now int64, cfg queue.Config) (queue.Arrival, error)

// transfer moves a leased message of qs into the queue dest. It returns the
// group with which the move becomes durable. fresh, if not nil, is what make
// makes an arrival of: a FIFO queue that accepted one with its deduplication id
// before takes it in without keeping it. Errors: refusals of the destination,
// which leave everything as it was; errNotLeased.
func (e *Engine) transfer(from *shard, qs *queueState, l queue.Lease, dest arn.ARN, fresh *message.Message, make arrival) (*journal.Commit, error) {
	if e.full() {
		return nil, fault.New(fault.Unavailable, "The disk has too little free space.")
	}
	to := e.home(dest)
	if e.options.TwoStep {
		return e.transferTwoStep(from, to, qs, l, dest, fresh, make, func() error {
			if now, ok := qs.machine.Leased(l.Sequence); qs.ended() || !ok || now != l {
				return errNotLeased
			}
			return nil
		})
	}
	return runAll(true, func(*Tx) error {
		if now, ok := qs.machine.Leased(l.Sequence); qs.ended() || !ok || now != l {
			return errNotLeased
		}
		if err := to.take(dest, fresh, make); err != nil {
			return err
		}
		from.ackSource(qs, l)
		return nil
	}, from, to)
}

// home is the shard of a queue, or of a subscription's or function's backlog.
func (e *Engine) home(dest arn.ARN) *shard {
	if f, _, ok := dest.SplitFunction(); ok {
		return e.shardOf(f)
	}
	if t, _, ok := dest.SplitSubscription(); ok {
		return e.shardOf(t)
	}
	return e.shardOf(dest)
}

// errNoSubscription refuses a message for a subscription that is not there.
var errNoSubscription = fault.New(fault.NotFound, "Subscription does not exist")

// take accepts a message into one of the shard's queues or backlogs.
func (sh *shard) take(dest arn.ARN, fresh *message.Message, make arrival) error {
	var qs *queueState
	if _, _, ok := dest.SplitSubscription(); ok {
		sub, ok := sh.topics.Subscription(dest)
		if !ok {
			return errNoSubscription
		}
		qs = sh.openBacklog(sub)
	} else if fn, qualifier, ok := dest.SplitFunction(); ok {
		f, err := sh.invokable(fn, qualifier)
		if err != nil {
			return err
		}
		qs = sh.openEvents(f)
	} else {
		var err error
		if qs, err = sh.lookup(dest); err != nil {
			return err
		}
	}
	now := sh.now()
	a, err := make(now, qs.machine.Config())
	if err != nil {
		return err
	}
	if fresh == nil || fresh.Dedup == "" || !dest.FIFO() {
		sh.accept(qs, now, a)
		return nil
	}
	if sh.original(qs, now, fresh).Duplicate {
		return nil
	}
	sh.remember(qs, now, fresh, SendResult{ID: fresh.ID, Sequence: sh.accept(qs, now, a)})
	return nil
}

// ackSource removes a leased message that another queue has accepted.
func (sh *shard) ackSource(qs *queueState, l queue.Lease) {
	sh.countMove(qs, l.Sequence)
	// Leased, so that nothing is needed from disk and nothing can fail.
	_, _ = sh.step(qs, (*atOnce)(sh), sh.now(), queue.Remove{Lane: l.Lane, Sequence: l.Sequence})
	sh.touch(qs)
	sh.delivered(qs)
}

// transferTwoStep moves a message for which there, asked under the source's
// lock, has no objection.
func (e *Engine) transferTwoStep(from, to *shard, qs *queueState, l queue.Lease, dest arn.ARN, fresh *message.Message, make arrival, there func() error) (*journal.Commit, error) {
	id := transferID{shard: from.id, incarnation: qs.incarnation, sequence: l.Sequence}

	if _, err := from.run(false, func(*Tx) error { return there() }); err != nil {
		return nil, err
	}
	g, err := to.run(true, func(*Tx) error {
		if _, known := to.accepted[id]; known {
			return nil
		}
		if err := to.take(dest, fresh, make); err != nil {
			return err
		}
		if to.accepted == nil {
			to.accepted = map[transferID]struct{}{}
		}
		to.accepted[id] = struct{}{}
		to.batch.Set(id.key(to.id), binary.BigEndian.AppendUint64(nil, uint64(l.Lane)))
		return nil
	})
	if err != nil {
		return g, err
	}
	g.Wait()

	g, _ = from.run(true, func(*Tx) error {
		switch now, ok := qs.machine.Leased(l.Sequence); {
		case qs.ended():
		case ok && now == l:
			from.ackSource(qs, l)
		default:
			// Its lease ended meanwhile. Deleted is as good as removed.
			_, _ = from.do(qs, from.now(), queue.Remove{Lane: l.Lane, Sequence: l.Sequence})
		}
		return nil
	})
	g.Wait()

	to.view(func() {
		delete(to.accepted, id)
		to.batch.SingleDelete(id.key(to.id))
	})
	return g, nil
}

// RedriveWait is how long a dead letter, and what else is handed over at its end,
// waits for another try when it cannot be taken in now: the last phase of the
// AWS-managed policy, without end.
const RedriveWait = 20 * time.Second

// moveLater has messages that were received often enough carried to the queue's
// dead-letter queue, by one worker a queue.
func (sh *shard) moveLater(qs *queueState, moves []queue.Lease) {
	if len(moves) == 0 {
		return
	}
	if qs.dead != nil {
		qs.dead.moves = append(qs.dead.moves, moves...)
		return
	}
	qs.dead = &deadLetters{moves: moves}
	sh.engine.goBackground(func() { sh.engine.moveDeadLetters(sh, qs) })
}

// moveDeadLetters carries what moveLater noted. A message that the dead-letter
// queue refuses for good, because it is gone, stays and is delivered once more.
// While it is only out of reach the messages wait, on their way.
func (e *Engine) moveDeadLetters(sh *shard, qs *queueState) {
	for {
		l, dest, ok := sh.nextDeadLetter(qs)
		if !ok {
			return
		}

		_, err := e.transfer(sh, qs, l, dest, nil, func(now int64, _ queue.Config) (queue.Arrival, error) {
			return e.deadLetter(sh, qs, l, now)
		})
		switch kind := fault.KindOf(err); {
		case err == nil || errors.Is(err, errNotLeased):
		case kind == fault.Unavailable || kind == fault.Throttled:
			e.clock.AfterFunc(RedriveWait, func() {
				e.goBackground(func() { e.moveDeadLetters(sh, qs) })
			})
			return
		default:
			e.logger.Warn("a message stays in its queue: the dead-letter queue does not take it",
				"queue", qs.arn.String(), "deadLetterQueue", dest.String(), "reason", err.Error())
		}
		sh.deadLettered(qs, l, dest, err)
	}
}

// nextDeadLetter is the next message of a queue that goes to its dead-letter queue;
// without one the worker has ended.
func (sh *shard) nextDeadLetter(qs *queueState) (l queue.Lease, dest arn.ARN, ok bool) {
	sh.view(func() {
		if qs.gone || len(qs.dead.moves) == 0 || sh.closed {
			qs.dead = nil
			return
		}
		l, dest, ok = qs.dead.moves[0], qs.machine.Config().DeadLetter, true
	})
	return l, dest, ok
}

// deadLettered notes that a message has been moved, is gone, or stays, by what its
// transfer has come to.
func (sh *shard) deadLettered(qs *queueState, l queue.Lease, dest arn.ARN, err error) {
	sh.view(func() {
		switch {
		case err == nil:
			sh.happened(qs, MessagesDeadLettered, sh.meta.Now, 1)
			sh.event(QueueEvent{Queue: dest, Kind: MessagesMovedIn, At: sh.meta.Now, Messages: 1})
		case !errors.Is(err, errNotLeased) && !qs.gone:
			_, _ = sh.do(qs, sh.now(), queue.RejectMove{Sequence: l.Sequence}) // deleted meanwhile: nothing stays
			sh.touch(qs)
		}
		qs.dead.moves = qs.dead.moves[1:]
	})
}

// deadLetter makes the message as the dead-letter queue keeps it: as it was,
// with its age and receive count, and with the queue that it comes from.
func (e *Engine) deadLetter(from *shard, qs *queueState, l queue.Lease, now int64) (queue.Arrival, error) {
	keys := layout.NewKeys(from.id, qs.incarnation)
	record, ok, err := e.readRecord(from, keys.Record(l.Lane, l.Sequence))
	if err != nil || !ok {
		return queue.Arrival{}, errors.Join(errNotLeased, err)
	}
	m, err := message.DecodeRecord(record)
	if err != nil {
		return queue.Arrival{}, err
	}
	m.Source = qs.arn.String()
	if m.FirstReceived == 0 {
		m.FirstReceived = l.First
	}
	m.Receives += l.Receives
	m.Moved = now
	if qs.arn.FIFO() { // its age counts anew, and two that shared an id are both kept
		m.Sent, m.Dedup = now, m.ID.String()
	}
	return queue.Arrival{Record: m.AppendRecord(nil), Sent: m.Sent, Lane: layout.GroupLane(m.Group), Moved: true}, nil
}

// readRecord reads a record that an earlier command of the shard has written.
func (e *Engine) readRecord(sh *shard, key []byte) ([]byte, bool, error) {
	if value, ok, err := e.store.Get(nil, key); err != nil || ok {
		return value, ok, err
	}
	e.journal.Flush()
	return e.store.Get(nil, key)
}

// arrivalOf is a message as it enters a queue at the end of its way.
func arrivalOf(m *message.Message, now int64, cfg queue.Config) queue.Arrival {
	return queue.Arrival{
		Record: m.AppendRecord(nil), Sent: now, Due: now + cfg.Delay.Milliseconds(), Lane: layout.GroupLane(m.Group),
	}
}

// Transfer moves a delivery into a queue, as message m, which the caller made
// and sealed; it is durable on return. The delivery is finished with the given
// state. Refusals leave it leased as it was: QueueDoesNotExist and AccessDenied
// for good, Unavailable and Throttled for now.
func (e *Engine) Transfer(ctx context.Context, d *Delivery, a Attempt, dest arn.ARN, m *message.Message, state DeliveryState, reason string) error {
	moved, err := e.moveOut(ctx, &d.backlogLease, dest, m, freshOf(dest, m, state), e.newArrival(d, dest, m, state))
	if moved {
		e.finish(d, a, state, reason)
	}
	return err
}

// moveOut moves a leased message of a backlog to where make lets it in, as m; it is
// durable on return. moved is false, without an error, if the backlog was deleted
// meanwhile, and the message with it. Errors: those of transfer; ctx's, if that has
// ended before anything was moved.
func (e *Engine) moveOut(ctx context.Context, l *backlogLease, dest arn.ARN, m, fresh *message.Message, make arrival) (moved bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	g, err := e.transfer(l.shard, l.queue, l.lease, dest, fresh, make)
	g.Wait()
	switch {
	case errors.Is(err, errNotLeased):
		return false, nil
	case err != nil:
		return false, err
	}
	e.arrived(dest, m)
	return true, nil
}

func errLonger(cfg queue.Config) error {
	return fault.Newf(fault.InvalidParameter, "The message is longer than the queue's %d bytes.", cfg.MaxMessageSize)
}

// freshOf is m where a FIFO queue must tell it from those that it has accepted;
// of two dead letters with one id none is lost. A standard queue has no use for
// the id.
func freshOf(dest arn.ARN, m *message.Message, state DeliveryState) *message.Message {
	if m != nil && !dest.FIFO() {
		m.Dedup = ""
	}
	if state == DeliveryDeadLetter {
		return nil
	}
	return m
}

// newArrival makes m, which another queue held as the message of d, enter the
// queue dest, if its policy lets the topic send to it.
func (e *Engine) newArrival(d *Delivery, dest arn.ARN, m *message.Message, state DeliveryState) arrival {
	topic, _, _ := d.Subscription.ARN.SplitSubscription()
	return func(now int64, cfg queue.Config) (queue.Arrival, error) {
		// Under the lock of the destination, which was just found there.
		if err := e.shardOf(dest).queues[dest].admits(topic, now); err != nil {
			return queue.Arrival{}, err
		}
		if m.Size() > cfg.MaxMessageSize {
			return queue.Arrival{}, errLonger(cfg)
		}
		m.Sent = now
		if state == DeliveryDeadLetter {
			m.Origin = d.Message.AppendRecord(nil)
		}
		return arrivalOf(m, now, cfg), nil
	}
}
