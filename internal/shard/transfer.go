package shard

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
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
func (e *transferEngine) transfer(from *transferShard, qs *queueState, l queue.Lease, dest arn.ARN, fresh *message.Message, make arrival) (*journal.Commit, error) {
	if e.full() {
		return nil, fault.New(fault.Unavailable, "The disk has too little free space.")
	}
	to := e.sinkOf(dest).home(dest)
	if e.twoStep {
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
	}, from.core(), to.core())
}

// sink is where messages of a service are moved to.
type sink interface {
	// home is the shard of a destination.
	home(dest arn.ARN) *transferShard
	// open finds or begins the queue of a destination, under the lock of its shard. The
	// error is a refusal of the destination.
	open(dest arn.ARN) (*queueState, error)
	// arrived tells of a message that has been moved to a destination; it is durable.
	arrived(dest arn.ARN, m *message.Message)
}

// sinkOf finds who takes messages for a destination.
func (e *transferEngine) sinkOf(dest arn.ARN) sink {
	if s, ok := e.sinks[dest.Service]; ok {
		return s
	}
	return queueSink{e}
}

// queueSink moves messages to SQS queues.
type queueSink struct{ e *transferEngine }

func (s queueSink) home(dest arn.ARN) *transferShard { return s.e.shardOf(dest) }

func (s queueSink) open(dest arn.ARN) (*queueState, error) { return s.e.shardOf(dest).lookup(dest) }

func (s queueSink) arrived(dest arn.ARN, m *message.Message) {
	s.e.tell(QueueEvent{Queue: dest, Kind: MessagesSent, At: m.Sent, Messages: 1, Bytes: m.Size()})
}

// errNoSubscription refuses a message for a subscription that is not there.
var errNoSubscription = fault.New(fault.NotFound, "Subscription does not exist")

// take accepts a message into a queue of the shard.
func (sh *transferShard) take(dest arn.ARN, fresh *message.Message, make arrival) error {
	qs, err := sh.engine.sinkOf(dest).open(dest)
	if err != nil {
		return err
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
func (sh *transferShard) ackSource(qs *queueState, l queue.Lease) {
	sh.countMove(qs, l.Sequence)
	// Leased, so that nothing is needed from disk and nothing can fail.
	_, _ = sh.doAtOnce(qs, sh.now(), queue.Remove{Lane: l.Lane, Sequence: l.Sequence})
	sh.engine.removed(qs)
}

// transferTwoStep moves a message for which there, asked under the source's
// lock, has no objection.
func (e *transferEngine) transferTwoStep(from, to *transferShard, qs *queueState, l queue.Lease, dest arn.ARN, fresh *message.Message, make arrival, there func() error) (*journal.Commit, error) {
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
func (sh *transferShard) moveLater(qs *queueState, moves []queue.Lease) {
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
func (e *transferEngine) moveDeadLetters(sh *transferShard, qs *queueState) {
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
func (sh *transferShard) nextDeadLetter(qs *queueState) (l queue.Lease, dest arn.ARN, ok bool) {
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
func (sh *transferShard) deadLettered(qs *queueState, l queue.Lease, dest arn.ARN, err error) {
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
func (e *transferEngine) deadLetter(from *transferShard, qs *queueState, l queue.Lease, now int64) (queue.Arrival, error) {
	keys := layout.NewKeys(from.id, qs.incarnation)
	record, ok, err := e.readRecord(keys.Record(l.Lane, l.Sequence))
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

// arrivalOf is a message as it enters a queue at the end of its way.
func arrivalOf(m *message.Message, now int64, cfg queue.Config) queue.Arrival {
	return queue.Arrival{
		Record: m.AppendRecord(nil), Sent: now, Due: now + cfg.Delay.Milliseconds(), Lane: layout.GroupLane(m.Group),
	}
}

// transferEngine is the module of what goes from one queue to another: dead letters,
// move tasks, and what other modules move.
type transferEngine struct {
	*queueEngine
	parts[*transferShard]
	twoStep bool            // every transfer takes the way of shards that share no commit
	sinks   map[string]sink // by service
	// removed is called with a queue that a message has been moved out of, as part of
	// that command.
	removed func(qs *queueState)
	// deadLettered reports whether somebody else than a queue has a dead-letter queue.
	takesOthers func(dlq arn.ARN) bool
}

// transferShard is the module's part in a shard.
type transferShard struct {
	*queueShard
	engine   *transferEngine
	accepted map[transferID]struct{} // transfers taken in and not yet known to be settled at their source
	moves    map[arn.ARN][]*moveTask // the latest move tasks of queues, oldest first
}

func newTransferEngine(below *queueEngine, twoStep bool) *transferEngine {
	e := &transferEngine{
		queueEngine: below, twoStep: twoStep, sinks: map[string]sink{},
		removed: func(*queueState) {}, takesOthers: func(arn.ARN) bool { return false },
	}
	for id, sh := range below.shards {
		s := &transferShard{queueShard: sh, engine: e}
		e.shards[id] = s
		sh.add(transferModule{sh: s})
	}
	below.hooks.deadLetters = func(qs *queueState, moves []queue.Lease) { e.shards[qs.shard.id].moveLater(qs, moves) }
	below.hooks.deleted = func(a arn.ARN) { e.shardOf(a).dropMoves(a) }
	below.hooks.purged = func(a arn.ARN) { e.shardOf(a).endMoves(a) }
	return e
}

// transferModule is the module of a shard.
type transferModule struct {
	nothing
	sh *transferShard
}

func (m transferModule) load() error {
	sh := m.sh
	sh.accepted = map[transferID]struct{}{}
	err := each(sh.engine.store, keyspace.Prefix(transferPrefix(sh.id)), func(key, _ []byte) bool {
		sh.accepted[decodeTransferKey(key)] = struct{}{}
		return true
	})
	return cmp.Or(err, sh.loadMoves())
}

func (m transferModule) recover() error { return m.sh.engine.settleTransfers(m.sh) }

func (m transferModule) resume() {
	sh := m.sh
	for _, qs := range sh.queues {
		moves := slices.DeleteFunc(qs.machine.Leases(), func(l queue.Lease) bool { return !l.Moving || l.Task })
		if len(moves) > 0 {
			sh.moveLater(qs, moves)
		}
	}
	sh.resumeMoves()
}

func (m transferModule) close() { m.sh.stopMoves() }

// settleTransfers removes at their sources the messages that this shard took in
// before a crash, and then the marks that say so, in one commit.
func (e *transferEngine) settleTransfers(to *transferShard) error {
	for id := range to.accepted {
		if int(id.shard) >= Shards {
			return fmt.Errorf("shard %d took a message from the unknown shard %d", to.id, id.shard)
		}
		from := e.shards[id.shard]
		value, _, err := e.store.Get(nil, id.key(to.id))
		if err != nil {
			return err
		}
		lane := layout.MainLane
		if len(value) == 8 {
			lane = layout.Lane(binary.BigEndian.Uint64(value))
		}
		_, _ = runAll(true, func(*Tx) error {
			if qs := from.byIncarnation(id.incarnation); qs != nil {
				from.countMove(qs, id.sequence)
				// Gone is as good as removed.
				_, _ = from.do(qs, from.now(), queue.Remove{Lane: lane, Sequence: id.sequence})
			}
			to.batch.SingleDelete(id.key(to.id))
			return nil
		}, from.core(), to.core())
	}
	to.accepted = nil
	return nil
}

// ofTransfers is the part of what leans on it.
func (sh *transferShard) ofTransfers() *transferShard { return sh }
