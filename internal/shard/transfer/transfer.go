// Package transfer is the module of what goes from one queue to another: dead letters,
// move tasks, and what other modules move. A message that moves is in exactly one of
// the two queues in every commit; where the two do not share a commit, the receiving
// shard knows the transfer and takes it once.
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

// A transfer carries a message from one queue to another, which may belong to
// different shards. Where both share a store, one commit takes it out of the one
// and puts it into the other. Otherwise it takes two steps: the destination
// accepts it, together with a mark that names where it came from, and only when
// that is durable does the source remove its own. A crash in between leaves both
// the message at the source and the mark at the destination; on the way up every
// mark is reconciled before anything is served.

// transferID names a message on its way: where it came from.
type transferID struct {
	Shard       uint16
	Incarnation layout.Incarnation
	Sequence    uint64
}

func transferPrefix(shard uint16) []byte {
	return keyspace.Shard(shard, keyspace.Transfers)
}

// Key is where the mark of a transfer stands at its destination.
func (id transferID) Key(destination uint16) []byte {
	key := binary.BigEndian.AppendUint16(transferPrefix(destination), id.Shard)
	key = binary.BigEndian.AppendUint64(key, uint64(id.Incarnation))
	return binary.BigEndian.AppendUint64(key, id.Sequence)
}

func decodeTransferKey(key []byte) transferID {
	return transferID{
		Shard:       binary.BigEndian.Uint16(key[3:]),
		Incarnation: layout.Incarnation(binary.BigEndian.Uint64(key[5:])),
		Sequence:    binary.BigEndian.Uint64(key[13:]),
	}
}

// ErrNotLeased says that the message to be transferred is not there any more:
// its queue or subscription has been deleted meanwhile.
var ErrNotLeased = errors.New("shard: the message to be moved is gone")

// Arrival makes a message as it enters the destination at the time now, which
// has the configuration cfg.
type Arrival func(now int64, cfg queue.Config) (queue.Arrival, error)

// Source is a message that leaves its queue.
type Source struct {
	Shard *Shard
	Queue *queues.Queue
	Lease queue.Lease
	// Check, asked under the source's lock, refuses to let it go. Nil: it must be leased as
	// Lease says, or else ErrNotLeased refuses.
	Check func() error
}

func (s *Source) check() error {
	if s.Check != nil {
		return s.Check()
	}
	if now, ok := s.Queue.Machine.Leased(s.Lease.Sequence); s.Queue.Ended() || !ok || now != s.Lease {
		return ErrNotLeased
	}
	return nil
}

// Incoming is a message as it enters a queue.
type Incoming struct {
	To    arn.ARN
	Enter Arrival
	// Fresh, if not nil, is what Enter makes an arrival of: a FIFO queue that accepted one
	// with its deduplication id before takes it in without keeping it.
	Fresh *message.Message
}

// Move moves a message into another queue. It returns the commit with which the move,
// or what a refusal depends on, becomes durable. Errors: refusals of the destination and
// Source.Check, which leave everything as it was; Unavailable where the disk is full.
func (e *Transfers) Move(from Source, in Incoming) (*journal.Commit, error) {
	if e.Full() {
		return nil, ErrDiskFull
	}
	to := e.SinkOf(in.To).Home(in.To)
	if e.TwoStep {
		return e.moveInTwoSteps(from, to, in)
	}
	return kernel.RunAll(true, func(*kernel.Tx) error {
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

// Sink is where messages of a service are moved to.
type Sink interface {
	// Home is the shard of a destination.
	Home(dest arn.ARN) *Shard
	// Open finds or begins the queue of a destination, under the lock of its shard. The
	// error is a refusal of the destination.
	Open(dest arn.ARN) (*queues.Queue, error)
	// Arrived reports a message that has been moved to a destination; it is durable.
	Arrived(dest arn.ARN, m *message.Message)
}

// SinkOf finds who takes messages for a destination.
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
	qs, err := sh.engine.SinkOf(in.To).Open(in.To)
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

// AckSource removes a leased message that another queue has accepted.
func (sh *Shard) AckSource(qs *queues.Queue, l queue.Lease) {
	sh.countMove(qs, l.Sequence)
	// Leased, so that nothing is needed from disk and nothing can fail.
	_, _ = sh.DoAtomic(qs, sh.Now(), queue.Remove{Lane: l.Lane, Sequence: l.Sequence})
	sh.engine.Removed(qs)
}

// moveInTwoSteps is Move where the two shards do not share a commit.
func (e *Transfers) moveInTwoSteps(src Source, to *Shard, in Incoming) (*journal.Commit, error) {
	from, qs, l := src.Shard, src.Queue, src.Lease
	id := transferID{Shard: from.ID, Incarnation: qs.Incarnation, Sequence: l.Sequence}

	if _, err := from.Run(false, func(*kernel.Tx) error { return src.check() }); err != nil {
		return nil, err
	}
	c, err := to.Run(true, func(*kernel.Tx) error {
		if _, known := to.accepted[id]; known {
			return nil
		}
		if err := to.take(in, qs.ARN); err != nil {
			return err
		}
		if to.accepted == nil {
			to.accepted = map[transferID]struct{}{}
		}
		to.accepted[id] = struct{}{}
		to.Batch.Set(id.Key(to.ID), binary.BigEndian.AppendUint64(nil, uint64(l.Lane)))
		return nil
	})
	c.Wait()
	if err != nil {
		return nil, err
	}

	c, _ = from.Run(true, func(*kernel.Tx) error {
		switch now, ok := qs.Machine.Leased(l.Sequence); {
		case qs.Ended():
		case ok && now == l:
			from.AckSource(qs, l)
		default:
			// Its lease ended meanwhile. Deleted is as good as removed.
			_, _ = from.Do(qs, from.Now(), queue.Remove{Lane: l.Lane, Sequence: l.Sequence})
		}
		return nil
	})
	c.Wait()

	to.View(func() {
		delete(to.accepted, id)
		to.Batch.SingleDelete(id.Key(to.ID))
	})
	return c, nil
}

// RedriveWait is how long a dead letter, and what else is handed over at its end,
// waits for another try when it cannot be taken in now: the last phase of the
// AWS-managed policy, without end.
const RedriveWait = 20 * time.Second

// moveLater has messages that were received often enough carried to the queue's
// dead-letter queue, by one worker a queue.
func (sh *Shard) moveLater(qs *queues.Queue, moves []queue.Lease) {
	if len(moves) == 0 {
		return
	}
	if qs.Dead != nil {
		qs.Dead.Moves = append(qs.Dead.Moves, moves...)
		return
	}
	qs.Dead = &queues.DeadLetters{Moves: moves}
	sh.engine.GoBackground(func() { sh.engine.moveDeadLetters(sh, qs) })
}

// moveDeadLetters carries what moveLater noted. A message that the dead-letter
// queue refuses for good, because it is gone, stays and is delivered once more.
// While it is only out of reach the messages wait, on their way.
func (e *Transfers) moveDeadLetters(sh *Shard, qs *queues.Queue) {
	for {
		l, dest, ok := sh.nextDeadLetter(qs)
		if !ok {
			return
		}

		m, err := e.deadLetter(sh, qs, l)
		if err == nil {
			_, err = e.Move(Source{Shard: sh, Queue: qs, Lease: l}, Incoming{To: dest, Enter: func(now int64, _ queue.Config) (queue.Arrival, error) {
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
			e.Clock.AfterFunc(RedriveWait, func() {
				e.GoBackground(func() { e.moveDeadLetters(sh, qs) })
			})
			return
		default:
			e.Logger.Warn("a message stays in its queue: the dead-letter queue does not take it",
				"queue", qs.ARN.String(), "deadLetterQueue", dest.String(), "reason", err.Error())
		}
		sh.deadLettered(qs, l, dest, err)
	}
}

// nextDeadLetter is the next message of a queue that goes to its dead-letter queue;
// without one the worker has ended.
func (sh *Shard) nextDeadLetter(qs *queues.Queue) (l queue.Lease, dest arn.ARN, ok bool) {
	sh.View(func() {
		if qs.Gone || len(qs.Dead.Moves) == 0 || sh.Closed {
			qs.Dead = nil
			return
		}
		l, dest, ok = qs.Dead.Moves[0], qs.Machine.Config().DeadLetter, true
	})
	return l, dest, ok
}

// deadLettered notes that a message has been moved, is gone, or stays, by what its
// transfer has come to.
func (sh *Shard) deadLettered(qs *queues.Queue, l queue.Lease, dest arn.ARN, err error) {
	sh.View(func() {
		switch {
		case err == nil:
			sh.EmitMessages(qs, queues.MessagesDeadLettered, sh.Meta.Now, 1)
			sh.EmitEvent(queues.QueueEvent{Queue: dest, Kind: queues.MessagesMovedIn, At: sh.Meta.Now, Messages: 1})
		case !errors.Is(err, ErrNotLeased) && !qs.Gone:
			_, _ = sh.Do(qs, sh.Now(), queue.RejectMove{Sequence: l.Sequence}) // deleted meanwhile: nothing stays
			sh.Touch(qs)
		}
		qs.Dead.Moves = qs.Dead.Moves[1:]
	})
}

// deadLetter reads the message as the dead-letter queue keeps it: as it was, with its
// age and receive count, and with the queue that it comes from. It takes no lock, as it
// may wait for the disk: a record never changes.
func (e *Transfers) deadLetter(from *Shard, qs *queues.Queue, l queue.Lease) (*message.Message, error) {
	keys := layout.NewKeys(from.ID, qs.Incarnation)
	record, ok, err := e.ReadRecord(keys.Record(l.Lane, l.Sequence))
	if err != nil {
		e.Fatal(err)
		return nil, err
	}
	if !ok {
		return nil, ErrNotLeased
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
	if qs.ARN.FIFO() { // two that shared an id are both kept
		m.Dedup = m.ID.String()
	}
	return m, nil
}

// ArrivalOf is a message as it enters a queue at the end of its way.
func ArrivalOf(m *message.Message, now int64, cfg queue.Config) queue.Arrival {
	return queue.Arrival{
		Record: m.AppendRecord(nil), Sent: now, Due: now + cfg.Delay.Milliseconds(), Lane: layout.GroupLane(m.Group),
	}
}

// Transfers is the module of what goes from one queue to another: dead letters,
// move tasks, and what other modules move.
type Transfers struct {
	*queues.Queues
	kernel.Parts[*Shard]
	TwoStep bool // every transfer takes the way of shards that share no commit
	// MayMove refuses a step of a move task, with AccessDenied, that who asked for the task
	// may not take any more: it takes messages out of one queue and sends them to another, or back to a subscription.
	// It is called without locks. Nil: nobody asks.
	MayMove func(by *caller.Caller, from, to arn.ARN) error
	Sinks   map[string]Sink // by service
	// Removed is called with a queue that a message has been moved out of, as part of
	// that command.
	Removed func(qs *queues.Queue)
	// deadLettered reports whether anything but a queue has it as dead-letter queue.
	TakesOthers func(dlq arn.ARN) bool
}

// Shard is the module's part in a shard.
type Shard struct {
	*queues.Shard
	engine   *Transfers
	accepted map[transferID]struct{}    // transfers taken in and not yet known to be acknowledged at their source
	moves    map[arn.ARN][]*runningMove // the latest move tasks of queues, oldest first
}

// New adds the module to the shards, above that of queues. With twoStep every transfer takes the
// way of shards that share no commit.
func New(below *queues.Queues, twoStep bool) *Transfers {
	e := &Transfers{
		Queues: below, TwoStep: twoStep, Sinks: map[string]Sink{},
		Removed: func(*queues.Queue) {}, TakesOthers: func(arn.ARN) bool { return false },
	}
	for id, sh := range below.Shards {
		s := &Shard{Shard: sh, engine: e}
		e.Shards[id] = s
		sh.Add(module{sh: s})
	}
	below.Hooks.DeadLetters = func(qs *queues.Queue, moves []queue.Lease) { e.Shards[qs.Shard.ID].moveLater(qs, moves) }
	below.Hooks.Deleted = func(a arn.ARN) { e.ShardOf(a).dropMoves(a) }
	below.Hooks.Purged = func(a arn.ARN) { e.ShardOf(a).endMoves(a) }
	return e
}

// module is the module of a shard.
type module struct {
	kernel.NopModule
	sh *Shard
}

func (m module) Load() error {
	sh := m.sh
	sh.accepted = map[transferID]struct{}{}
	err := store.Each(sh.engine.Store, keyspace.Prefix(transferPrefix(sh.ID)), func(key, _ []byte) bool {
		sh.accepted[decodeTransferKey(key)] = struct{}{}
		return true
	})
	return cmp.Or(err, sh.loadMoves())
}

func (m module) Recover() error { return m.sh.engine.reconcileTransfers(m.sh) }

func (m module) Resume() {
	sh := m.sh
	for _, qs := range sh.Loaded() {
		moves := slices.DeleteFunc(qs.Machine.Leases(), func(l queue.Lease) bool { return !l.Moving || l.Task })
		if len(moves) > 0 {
			sh.moveLater(qs, moves)
		}
	}
	sh.resumeMoves()
}

func (m module) Close() { m.sh.stopMoves() }

// reconcileTransfers removes at their sources the messages that this shard took in
// before a crash, and then the marks that say so, in one commit.
func (e *Transfers) reconcileTransfers(to *Shard) error {
	for id := range to.accepted {
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
		_, _ = kernel.RunAll(true, func(*kernel.Tx) error {
			if qs := from.ByIncarnation(id.Incarnation); qs != nil {
				from.countMove(qs, id.Sequence)
				// Gone is as good as removed.
				_, _ = from.Do(qs, from.Now(), queue.Remove{Lane: lane, Sequence: id.Sequence})
			}
			to.Batch.SingleDelete(id.Key(to.ID))
			return nil
		}, from.Base(), to.Base())
	}
	to.accepted = nil
	return nil
}

// OfTransfers is the part of what depends on it.
func (sh *Shard) OfTransfers() *Shard { return sh }
