// Package transfer is the module that moves messages from one queue to another: dead letters,
// move tasks, and the moves of other modules. In every commit a message is in exactly one of
// the two queues. If the two do not share a commit, the destination's shard records the
// transfer, so that it accepts the message once.
package transfer

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/store"
)

// A transfer moves a message between two queues, which may belong to different shards. If both
// share a store, one commit removes it from the source and adds it to the destination.
// Otherwise it takes two steps: the destination accepts the message together with a mark that
// names its source, and the source removes its message once that is durable. After a crash in
// between, the message is at the source and the mark at the destination; at the next start
// every mark is reconciled before anything is served.

// transferID names a message under transfer, by its source.
type transferID struct {
	Shard       uint16
	Incarnation layout.Incarnation
	Sequence    uint64
}

func transferPrefix(shard uint16) []byte {
	return keyspace.Shard(shard, keyspace.Transfers)
}

// Key is the key of a transfer's mark at its destination.
func (id transferID) Key(destination uint16) []byte {
	key := binary.BigEndian.AppendUint16(transferPrefix(destination), id.Shard)
	key = binary.BigEndian.AppendUint64(key, uint64(id.Incarnation))
	return binary.BigEndian.AppendUint64(key, id.Sequence)
}

func transferOf(k *keyspace.Key) transferID {
	shard, _ := k.Number(keyspace.PartSourceShard)
	incarnation, _ := k.Number(keyspace.PartSource)
	sequence, _ := k.Number(keyspace.PartSourceSequence)
	return transferID{Shard: uint16(shard), Incarnation: layout.Incarnation(incarnation), Sequence: sequence}
}

// ErrNotLeased says that the message to be transferred does not exist any more: its queue or
// subscription was deleted meanwhile.
var ErrNotLeased = errors.New("transfer: the message to be moved is gone")

// EnterFunc makes the message that enters the destination, whose configuration is cfg, at now.
type EnterFunc func(now int64, cfg queue.Config) (queue.Arrival, error)

// Outgoing is a message that leaves its queue.
type Outgoing struct {
	Shard *Shard
	Queue *queues.Queue
	Lease queue.Lease
	// Check may refuse the transfer; it is called under the source's lock. Nil: the message
	// must be leased as Lease says, else the transfer fails with ErrNotLeased.
	Check func() error
}

func (o *Outgoing) check() error {
	if o.Check != nil {
		return o.Check()
	}
	if now, ok := o.Queue.Machine.Leased(o.Lease.Sequence); o.Queue.Ended() || !ok || now != o.Lease {
		return ErrNotLeased
	}
	return nil
}

// Incoming is a message as it enters a queue.
type Incoming struct {
	To    arn.ARN
	Enter EnterFunc
	// Fresh, if not nil, is the message of Enter's arrival, to be deduplicated: a FIFO queue
	// that has accepted its deduplication ID before drops it.
	Fresh *message.Message
}

// Move moves a message into another queue. It returns the commit that makes the move, or the
// state that a refusal depends on, durable. Errors: refusals of the destination and of
// Outgoing.Check, which change nothing; Unavailable if the disk is full.
func (e *Transfers) Move(from Outgoing, in Incoming) (*journal.Commit, error) {
	if e.Full() {
		return nil, ErrDiskFull
	}
	to := e.SinkOf(in.To).Home(in.To)
	if e.TwoStep {
		return e.moveInTwoSteps(from, to, in)
	}
	return kernel.RunAll(journal.Eager, func(*kernel.Tx) error {
		if err := from.check(); err != nil {
			return err
		}
		if err := to.take(in, from.Queue.ARN); err != nil {
			return err
		}
		from.Shard.AckSource(from.Queue, from.Lease)
		return nil
	}, from.Shard.Base(), to.Base())
}

// Sink takes the messages that are moved to destinations of a service.
type Sink interface {
	// Home is the shard of a destination.
	Home(dest arn.ARN) *Shard
	// Open finds or makes the queue of a destination, under the lock of its shard. The
	// error is a refusal of the destination.
	Open(dest arn.ARN) (*queues.Queue, error)
	// Arrived reports that a message has been moved to a destination, durably.
	Arrived(dest arn.ARN, m *message.Message)
}

// SinkOf finds the sink of a destination.
func (e *Transfers) SinkOf(dest arn.ARN) Sink {
	if s, ok := e.Sinks[dest.Service]; ok {
		return s
	}
	return queueSink{e}
}

// queueSink moves messages to SQS queues.
type queueSink struct{ e *Transfers }

func (s queueSink) Home(dest arn.ARN) *Shard { return s.e.ShardOf(dest) }

func (s queueSink) Open(dest arn.ARN) (*queues.Queue, error) { return s.e.ShardOf(dest).Lookup(dest) }

func (s queueSink) Arrived(dest arn.ARN, m *message.Message) {
	s.e.EmitNow(queues.QueueEvent{Queue: dest, Kind: queues.MessagesSent, At: m.Sent, Messages: 1, Bytes: m.Size()})
}

// take accepts a message into a queue of the shard.
func (sh *Shard) take(in Incoming, source arn.ARN) error {
	qs, err := sh.module.SinkOf(in.To).Open(in.To)
	if err != nil {
		return err
	}
	if err := qs.CheckQuota(source); err != nil {
		return err
	}
	now := sh.Now()
	a, err := in.Enter(now, qs.Machine.Config())
	if err != nil {
		return err
	}
	fresh := in.Fresh
	if fresh == nil || fresh.Dedup == "" || !in.To.FIFO() {
		sh.Accept(qs, now, a)
		return nil
	}
	if sh.Original(qs, now, fresh).Duplicate {
		return nil
	}
	sh.Remember(qs, now, fresh, queues.SendResult{ID: fresh.ID, Sequence: sh.Accept(qs, now, a)})
	return nil
}

// AckSource removes a message that another queue has accepted, leased or not.
func (sh *Shard) AckSource(qs *queues.Queue, l queue.Lease) {
	sh.countMove(qs, l.Sequence)
	// The caller has checked that it is there: it cannot fail.
	_, _ = sh.DoAtomic(qs, sh.Now(), queue.Remove{Lane: l.Lane, Sequence: l.Sequence})
	sh.module.Removed(qs)
}

// moveInTwoSteps is Move where the two shards do not share a commit.
func (e *Transfers) moveInTwoSteps(out Outgoing, to *Shard, in Incoming) (*journal.Commit, error) {
	from, qs, l := out.Shard, out.Queue, out.Lease
	id := transferID{Shard: from.ID, Incarnation: qs.Incarnation, Sequence: l.Sequence}

	if _, err := from.Run(journal.Lazy, func(*kernel.Tx) error { return out.check() }); err != nil {
		return nil, err
	}
	c, err := to.Run(journal.Eager, func(tx *kernel.Tx) error {
		if _, known := to.marks[id]; known { // by another move of the message, which may not be durable yet
			tx.DependOn(to.Stream.Last())
			return nil
		}
		if err := to.take(in, qs.ARN); err != nil {
			return err
		}
		if to.marks == nil {
			to.marks = map[transferID]struct{}{}
		}
		to.marks[id] = struct{}{}
		to.Batch.Set(id.Key(to.ID), binary.BigEndian.AppendUint64(nil, uint64(l.Lane)))
		return nil
	})
	c.Wait()
	if err != nil {
		return nil, err
	}

	c, _ = from.Run(journal.Eager, func(tx *kernel.Tx) error {
		tx.DependOn(from.Stream.Last()) // another move, or a deletion, may have removed it
		switch now, ok := qs.Machine.Leased(l.Sequence); {
		case qs.Ended():
		case ok && now == l:
			from.AckSource(qs, l)
		default:
			// Its lease ended meanwhile. If it was deleted, nothing is left to remove.
			_, _ = from.Do(qs, from.Now(), queue.Remove{Lane: l.Lane, Sequence: l.Sequence})
			e.Removed(qs)
		}
		return nil
	})
	c.Wait()

	to.RunLazy(func() {
		if _, known := to.marks[id]; known {
			delete(to.marks, id)
			to.Batch.SingleDelete(id.Key(to.ID))
		}
	})
	return c, nil
}

// HandOverWait is how long a dead letter, or another hand-over, waits for the next try while
// its destination is unavailable. It is tried without end, at the interval of the last phase of
// AWS's retry policy for endpoints that AWS manages.
const HandOverWait = 20 * time.Second

// moveLater has dead letters moved to the queue's dead-letter queue, by one worker a queue.
func (sh *Shard) moveLater(qs *queues.Queue, moves []queue.Lease) {
	if len(moves) == 0 {
		return
	}
	if qs.Dead != nil {
		qs.Dead.Moves = append(qs.Dead.Moves, moves...)
		return
	}
	qs.Dead = &queues.DeadLetters{Moves: moves}
	sh.module.GoBackground(func() { sh.module.moveDeadLetters(sh, qs) })
}

// moveDeadLetters moves the messages of moveLater. If the dead-letter queue refuses a message
// for good, as it was deleted, the message stays and can be received once more. While it is
// only unavailable, the messages wait, in flight.
func (e *Transfers) moveDeadLetters(sh *Shard, qs *queues.Queue) {
	for {
		l, dest, ok := sh.nextDeadLetter(qs)
		if !ok {
			return
		}

		m, err := e.deadLetter(sh, qs, l)
		unreadable := err
		if err == nil {
			_, err = e.Move(Outgoing{Shard: sh, Queue: qs, Lease: l}, Incoming{To: dest, Enter: func(now int64, _ queue.Config) (queue.Arrival, error) {
				m.Moved = now
				if qs.ARN.FIFO() { // its age starts over
					m.Sent = now
				}
				return queue.Arrival{Record: m.AppendRecord(nil), Sent: m.Sent, Lane: layout.GroupLane(m.Group), Moved: true}, nil
			}})
		}
		switch kind := fault.KindOf(err); {
		case err == nil || errors.Is(err, ErrNotLeased):
		case kind == fault.Unavailable || kind == fault.Throttled:
			e.Clock.AfterFunc(HandOverWait, func() {
				e.GoBackground(func() { e.moveDeadLetters(sh, qs) })
			})
			return
		case unreadable != nil:
			e.Logger.Error("a message stays in its queue: it cannot be read",
				"queue", qs.ARN.String(), "sequence", l.Sequence, "error", err)
		default:
			e.Logger.Warn("a message stays in its queue: the dead-letter queue does not take it",
				"queue", qs.ARN.String(), "deadLetterQueue", dest.String(), "reason", err.Error())
		}
		sh.deadLettered(qs, l, dest, err)
	}
}

// nextDeadLetter is the next message to move to the dead-letter queue; if there is none, the
// worker ends.
func (sh *Shard) nextDeadLetter(qs *queues.Queue) (l queue.Lease, dest arn.ARN, ok bool) {
	sh.RunLazy(func() {
		if qs.Gone || len(qs.Dead.Moves) == 0 || sh.Closed {
			qs.Dead = nil
			return
		}
		l, dest, ok = qs.Dead.Moves[0], qs.Machine.Config().DeadLetter, true
	})
	return l, dest, ok
}

// deadLettered takes in the result of a dead letter's transfer.
func (sh *Shard) deadLettered(qs *queues.Queue, l queue.Lease, dest arn.ARN, err error) {
	sh.RunLazy(func() {
		switch {
		case err == nil:
			sh.EmitMessages(qs, queues.MessagesDeadLettered, sh.Now(), 1)
			sh.EmitEvent(queues.QueueEvent{Queue: dest, Kind: queues.MessagesMovedIn, At: sh.Now(), Messages: 1})
		case !errors.Is(err, ErrNotLeased) && !qs.Gone:
			_, _ = sh.Do(qs, sh.Now(), queue.RejectMove{Sequence: l.Sequence}) // fails if it was deleted meanwhile
			sh.Touch(qs)
		}
		qs.Dead.Moves = qs.Dead.Moves[1:]
	})
}

// deadLetter reads the message as the dead-letter queue gets it: unchanged, with its age and
// receive count, and with the name of its source queue. It takes no lock, as it may wait for
// the disk, and needs none, as records never change.
func (e *Transfers) deadLetter(from *Shard, qs *queues.Queue, l queue.Lease) (*message.Message, error) {
	keys := layout.NewKeys(from.ID, qs.Incarnation)
	key := keys.Record(l.Lane, l.Sequence)
	record, ok, err := e.ReadRecord(key)
	if err != nil {
		e.Fatal(err)
		return nil, err
	}
	if !ok {
		return nil, cmp.Or(e.Lost(key), ErrNotLeased)
	}
	m, err := message.DecodeRecord(record)
	if err != nil {
		return nil, err
	}
	m.Source = qs.ARN.String()
	if m.FirstReceived == 0 {
		m.FirstReceived = l.First
	}
	m.Receives += l.Receives
	if qs.ARN.FIFO() { // no dead letter is a duplicate of another
		m.Dedup = m.ID.String()
	}
	return m, nil
}

// ArrivalOf makes a message an arrival at a queue.
func ArrivalOf(m *message.Message, now int64, cfg queue.Config) queue.Arrival {
	return queue.Arrival{
		Record: m.AppendRecord(nil), Sent: now, Due: now + cfg.Delay.Milliseconds(), Lane: layout.GroupLane(m.Group),
	}
}

// Transfers is the module.
type Transfers struct {
	*queues.Queues
	kernel.Parts[*Shard]
	TwoStep bool // every transfer is made in two steps, as between shards without a common commit
	// MayMove refuses a step of a move task, with AccessDenied, if the requester of the task
	// may not receive from one queue and send to the other, or to a subscription, any more.
	// It is called without locks. Nil: all steps are allowed.
	MayMove func(by *caller.Caller, from, to arn.ARN) error
	// Begin calls start once move tasks of an earlier process may go on, which until then can be
	// cancelled; nil: at once.
	Begin func(start func())
	Sinks map[string]Sink // by service
	// Removed is called with a queue from which a message has been moved, as part of that
	// command.
	Removed func(qs *queues.Queue)
	// TakesOthers reports whether a queue is the dead-letter queue of anything but a queue.
	TakesOthers func(dlq arn.ARN) bool
}

// Shard is the module's part in a shard.
type Shard struct {
	*queues.Shard
	module *Transfers
	marks  map[transferID]struct{}    // transfers that were accepted, and may not be removed at their source yet
	tasks  map[arn.ARN][]*runningTask // the latest move tasks of queues, oldest first
}

// New adds the module to the shards, above that of queues. twoStep is Transfers.TwoStep.
func New(below *queues.Queues, twoStep bool) *Transfers {
	e := &Transfers{
		Queues: below, TwoStep: twoStep, Sinks: map[string]Sink{},
		Removed: func(*queues.Queue) {}, TakesOthers: func(arn.ARN) bool { return false },
	}
	for id, sh := range below.Shards {
		s := &Shard{Shard: sh, module: e}
		e.Shards[id] = s
		sh.Add(lifecycle{sh: s})
	}
	below.Hooks.DeadLetters = func(qs *queues.Queue, moves []queue.Lease) { e.Shards[qs.Shard.ID].moveLater(qs, moves) }
	below.Hooks.Deleted = func(a arn.ARN) { e.ShardOf(a).dropTasks(a) }
	below.Hooks.Purged = func(a arn.ARN) { e.ShardOf(a).endTasks(a) }
	return e
}

// lifecycle is how the kernel runs a Shard of this package.
type lifecycle struct {
	kernel.NopLifecycle
	sh *Shard
}

func (l lifecycle) Load() error {
	sh := l.sh
	sh.marks = map[transferID]struct{}{}
	err := store.EachOf(sh.module.Store, keyspace.KindTransfer, keyspace.Prefix(transferPrefix(sh.ID)), func(k *keyspace.Key, _ []byte) error {
		sh.marks[transferOf(k)] = struct{}{}
		return nil
	})
	if err != nil {
		return err
	}
	return sh.loadTasks()
}

func (l lifecycle) Recover() error { return l.sh.module.reconcileTransfers(l.sh) }

func (l lifecycle) Resume() {
	sh := l.sh
	for _, qs := range sh.Loaded() {
		moves := slices.DeleteFunc(qs.Machine.Leases(), func(l queue.Lease) bool { return !l.Moving || l.Task })
		if len(moves) > 0 {
			sh.moveLater(qs, moves)
		}
	}
	sh.resumeTasks()
}

func (l lifecycle) Close() { l.sh.stopTasks() }

// reconcileTransfers completes the transfers that a crash has interrupted: in one commit each,
// it removes the message at its source and the mark in this shard.
func (e *Transfers) reconcileTransfers(to *Shard) error {
	for id := range to.marks {
		if int(id.Shard) >= kernel.Shards {
			return fmt.Errorf("shard %d took a message from the unknown shard %d", to.ID, id.Shard)
		}
		from := e.Shards[id.Shard]
		value, _, err := e.Store.Get(nil, id.Key(to.ID))
		if err != nil {
			return err
		}
		lane := layout.MainLane
		if len(value) == 8 {
			lane = layout.Lane(binary.BigEndian.Uint64(value))
		}
		_, _ = kernel.RunAll(journal.Eager, func(*kernel.Tx) error {
			if qs := from.ByIncarnation(id.Incarnation); qs != nil {
				from.countMove(qs, id.Sequence)
				// It may be removed already.
				_, _ = from.Do(qs, from.Now(), queue.Remove{Lane: lane, Sequence: id.Sequence})
			}
			to.Batch.SingleDelete(id.Key(to.ID))
			return nil
		}, from.Base(), to.Base())
	}
	to.marks = nil
	return nil
}

// OfTransfers is the module's part, for the modules above it.
func (sh *Shard) OfTransfers() *Shard { return sh }
