package queue

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
)

// MaxInFlight is how many messages of a queue can be leased at once. Source:
// the quotas of SQS standard queues.
const MaxInFlight = 120_000

// maxVisibility is how long one receive can hide a message, in milliseconds,
// all changes of its visibility together.
const maxVisibility = int64(12 * time.Hour / time.Millisecond)

// Errors of a command. They are facts about the queue; what a client is told is
// decided above.
var (
	ErrGone       = errors.New("queue: no such message")
	ErrNotLeased  = errors.New("queue: message is not leased")
	ErrVisibility = errors.New("queue: total visibility timeout is beyond 12 hours")
	ErrInFlight   = errors.New("queue: too many messages in flight")
	ErrExpired    = errors.New("queue: the receive is over") // of a FIFO queue's handle
)

// Kind is what sort of queue a machine is.
type Kind struct {
	// FIFO: a message in flight blocks those behind it in its group.
	FIFO bool
	// Backlog: the queue of a subscription. Its consumer is in this process, so a
	// lease holds until it ends or the process does, and messages do not expire
	// by themselves.
	Backlog bool
}

// Machine is the state of one queue. It is not safe for concurrent use.
type Machine struct {
	keys layout.Keys
	cfg  Config
	kind Kind
	c    counters

	main      group
	g         *groups // nil: it never had any
	dueWin    dueWindow
	dueFloor  place // no scheduled message stands before it, only tombstones do
	leases    map[uint64]*state
	expiring  leaseHeap
	later     map[int64]int64 // second → scheduled messages due in it, for seconds to come
	laterSeen int64           // the second in which it was last cleaned

	sweepAt int64 // when the oldest message may expire; 0: never
	moving  int   // leases that are on their way elsewhere
	filled  *fill
	scratch []byte
}

// New makes an empty queue.
func New(keys layout.Keys, cfg Config, kind Kind) *Machine {
	return &Machine{keys: keys, cfg: cfg, kind: kind, c: counters{next: 1, head: 1}, main: group{loaded: true, whole: true}}
}

// Succeed has an empty queue go on with the sequence of the one in whose place
// it is.
func (q *Machine) Succeed(former *Machine) { q.c.next, q.c.head = former.c.next, former.c.next }

// Configure changes the behaviour of calls to come. A changed retention holds
// for the messages that are there; so does a FIFO queue's changed delay.
func (q *Machine) Configure(b *mutation.Batch, now int64, cfg Config) {
	if cfg.Retention != q.cfg.Retention && q.total() > 0 {
		q.sweepAt = now
	}
	if shift := int64((cfg.Delay - q.cfg.Delay) / time.Second); shift != 0 && q.kind.FIFO {
		old := q.later
		q.later = nil
		for second := range old {
			b.Delete(q.keys.Bucket(second))
		}
		for second, n := range old {
			q.bucket(b, now, (second+shift)*1000, n)
		}
	}
	q.cfg = cfg
}

// Config is how the queue behaves.
func (q *Machine) Config() Config { return q.cfg }

// Counts are the numbers of messages in each state.
func (q *Machine) Counts(now int64) Counts {
	waiting := int64(q.total()) - int64(len(q.leases))
	later := min(q.laterNow(now), waiting)
	return Counts{
		Visible:  waiting - later,
		InFlight: int64(len(q.leases)),
		Delayed:  later,
	}
}

// PrepareCounts says what must be read before Counts is exact. Of a queue with
// more scheduled messages than memory holds it stays an estimate, for at most a
// second after a message has come due.
func (q *Machine) PrepareCounts() Need {
	if n := q.dueWin.len(); n < int(q.c.scheduled) && int(q.c.scheduled) <= windowSize {
		return Need{Kind: NeedDue, Limit: windowSize}
	}
	return Need{}
}

// laterNow counts the scheduled messages that are not due: from the window when
// it holds them all, else by the second.
func (q *Machine) laterNow(now int64) (n int64) {
	if !q.kind.FIFO && q.dueWin.len() == int(q.c.scheduled) {
		return int64(len(q.dueWin.states) - q.dueWin.find(now+1, 0))
	}
	for second, count := range q.later {
		if (second+1)*1000 > now {
			n += count
		}
	}
	return n
}

// Empty reports that the queue holds no message at all.
func (q *Machine) Empty() bool { return q.total() == 0 }

func (q *Machine) total() uint64 {
	n := q.c.fresh + q.c.scheduled + uint64(len(q.leases))
	if q.g != nil {
		n += q.g.fresh + q.g.returned
	}
	return n
}

// Arrival is a message as it enters a queue.
type Arrival struct {
	Record []byte      // as Message.AppendRecord makes it
	Sent   int64       // as in the record
	Due    int64       // later than now: it is delayed until then; not in FIFO queues
	Lane   layout.Lane // GroupLane of the message's group
	Moved  bool        // with an age, from another queue; not in FIFO queues
}

// Accept adds a message and returns its sequence. PrepareAccept comes first.
func (q *Machine) Accept(b *mutation.Batch, now int64, a Arrival) uint64 {
	seq := q.c.next
	q.c.next++
	var lane layout.Lane
	scheduled := true
	switch {
	case q.kind.FIFO:
		lane, scheduled = max(a.Lane, layout.GroupLanes), false
		if due := a.Sent + q.cfg.Delay.Milliseconds(); due > now && !q.kind.Backlog {
			q.bucket(b, now, due, 1)
		}
	case a.Moved:
		lane = layout.MovedLane
	case a.Due > now:
		lane = layout.DelayedLane
	default:
		lane, scheduled = a.Lane, false
	}
	b.Set(q.keys.Record(lane, seq), a.Record)
	if lane > layout.DelayedLane && !q.kind.Backlog {
		q.scratch = binary.BigEndian.AppendUint64(q.scratch[:0], uint64(lane))
		b.Set(q.keys.Expiry(a.Sent, seq), q.scratch)
	}
	switch {
	case scheduled:
		q.schedule(b, now, state{seq: seq, due: max(a.Due, now), sent: a.Sent, lane: lane, tenant: a.Lane, slot: -1})
	case lane == layout.MainLane:
		q.main.push(ref{seq: seq, sent: a.Sent}, windowSize)
		q.c.fresh++
	default:
		q.join(lane, ref{seq: seq, sent: a.Sent})
		q.relist(b)
	}
	if q.filled != nil && q.filled.kind == NeedGroup {
		q.filled = nil // read for this message, and true for no other
	}
	if !q.kind.Backlog && q.cfg.Retention > 0 {
		q.sweepBy(a.Sent + q.cfg.Retention.Milliseconds())
	}
	return seq
}

func (q *Machine) sweepBy(at int64) {
	if q.sweepAt == 0 || at < q.sweepAt {
		q.sweepAt = max(at, 1)
	}
}

// Lease is a message given to a consumer.
type Lease struct {
	Sequence uint64
	Moving   bool // on its way to another queue
	Lane     layout.Lane
	Receives uint32 // in this queue, including this one
	Epoch    uint32
	First    int64 // epoch milliseconds of the first receive in this queue
	Sent     int64
}

// Receive is a request for messages, and what has been found for it.
type Receive struct {
	Max        int
	Visibility int64  // ms; how long the messages are hidden
	Epoch      uint32 // of the shard
	// Task takes the messages for a move task: nobody receives them, and they
	// are leased until Remove or Return.
	Task bool
	// Attempt is a ReceiveRequestAttemptId, or empty: see Again.
	Attempt string

	Leases []Lease
	// Moves are messages that were received often enough and must go to the
	// dead-letter queue. They are leased until Remove or Stay.
	Moves []Lease
}

// maxMoves bounds the dead letters that one receive comes upon, and so the
// size of its commit.
const maxMoves = 64

// Prepare says what must be read before a receive of up to most messages.
func (q *Machine) Prepare(now int64, most int) Need {
	if n := q.dueWin.len(); n < int(q.c.scheduled) && (n == 0 || n < most && q.dueWin.last().due <= now) {
		return Need{Kind: NeedDue, Limit: windowSize / 2}
	}
	if !q.main.whole && q.main.win.len() < most {
		return Need{Kind: NeedLane, Lane: layout.MainLane, Limit: windowSize / 2}
	}
	if q.g != nil {
		return q.prepareGroups(now, most)
	}
	return Need{}
}

// Receive leases up to r.Max messages, in the order in which they became
// available; of a group that blocks as many as there are before the next group.
// It finds only what is in memory: where it comes to the end of a window
// (expired messages and dead letters use it up) it stops early, and Available
// tells that there is more. ErrInFlight: nothing can be leased now.
func (q *Machine) Receive(b *mutation.Batch, now int64, r *Receive) error {
	q.Expire(b, now)
	defer q.relist(b)
	if r.Attempt != "" && q.again(b, now, r) {
		return nil
	}
	if q.kind.FIFO {
		if q.g == nil {
			return nil
		}
		err := q.receiveGroups(b, now, r)
		q.remember(now, r)
		return err
	}
	for len(r.Leases) < r.Max && len(r.Moves) < maxMoves {
		if len(q.leases) >= MaxInFlight {
			if len(r.Leases) == 0 {
				return ErrInFlight
			}
			break
		}
		if q.dueWin.len() == 0 && q.c.scheduled > 0 || q.main.win.len() == 0 && !q.main.whole {
			break
		}
		due, fresh := q.pick(now)
		switch {
		case due != nil:
			s := *due
			if due == q.dueWin.first() {
				q.dueFloor = place{s.due, s.seq}
			}
			q.unschedule(b, now, &s)
			q.take(b, now, r, &s)
			continue
		case fresh != nil:
			if s := q.takeFresh(fresh); s != nil {
				q.take(b, now, r, s)
				continue
			}
		}
		break
	}
	return nil
}

// fate is what take made of a message.
type fate byte

const (
	dropped fate = iota // its retention is over
	taken
	moved // to the dead-letter queue: it was received often enough
)

// over reports that the retention of a message is.
func (q *Machine) over(sent, now int64) bool {
	return !q.kind.Backlog && q.cfg.Retention > 0 && sent+q.cfg.Retention.Milliseconds() <= now
}

// dead reports that a message belongs to the dead letters.
func (q *Machine) dead(s *state) bool {
	return q.cfg.MaxReceives > 0 && !q.cfg.DeadLetter.IsZero() && int(s.receives) >= q.cfg.MaxReceives && s.flags&flagStay == 0
}

// take leases a message that is in no order any more.
func (q *Machine) take(b *mutation.Batch, now int64, r *Receive, s *state) fate {
	if q.over(s.sent, now) {
		q.erase(b, s)
		return dropped
	}
	if r.Task {
		s.flags |= flagMoving | flagTask
		s.due = never
		r.Leases = append(r.Leases, q.lease(b, now, s))
		q.moving++
		return taken
	}
	if q.dead(s) {
		s.flags |= flagMoving
		s.due = never
		r.Moves = append(r.Moves, q.lease(b, now, s))
		q.moving++
		return moved
	}
	s.flags &^= flagStay
	s.receives++
	s.received, s.epoch = now, r.Epoch
	if s.first == 0 {
		s.first = now
	}
	s.due = never
	if !q.kind.Backlog {
		s.due = now + r.Visibility
	}
	r.Leases = append(r.Leases, q.lease(b, now, s))
	return taken
}

// lease writes and keeps a lease.
func (q *Machine) lease(b *mutation.Batch, now int64, s *state) Lease {
	s.slot = -1
	if q.leases == nil {
		q.leases = make(map[uint64]*state)
	}
	q.leases[s.seq] = s
	if s.due != never {
		q.expiring.push(s)
	}
	if q.g != nil && !q.kind.FIFO {
		q.g.tenants.count(s.tenant, now, 1, 0)
	}
	q.scratch = s.appendTo(q.scratch[:0])
	b.Set(q.keys.Lease(s.seq), q.scratch)
	return q.leaseOf(s)
}

func (q *Machine) leaseOf(s *state) Lease {
	return Lease{
		Sequence: s.seq, Moving: s.flags&flagMoving != 0, Lane: s.lane, Receives: s.receives,
		Epoch: s.epoch, First: s.first, Sent: s.sent,
	}
}

// unlease ends a lease; the message is in no order afterwards.
func (q *Machine) unlease(b *mutation.Batch, now int64, s *state) {
	if q.g != nil && !q.kind.FIFO {
		q.g.tenants.count(s.tenant, now, -1, max(now-s.received, 0))
	}
	b.SingleDelete(q.keys.Lease(s.seq))
	q.expiring.remove(s)
	delete(q.leases, s.seq)
	if s.flags&flagMoving != 0 {
		q.moving--
		s.flags &^= flagMoving | flagTask
	}
	if len(q.leases) == 0 {
		q.leases, q.expiring = nil, nil
	}
}

// putBack gives a message back, to be received again once s.due has come.
func (q *Machine) putBack(b *mutation.Batch, now int64, s *state) {
	if q.kind.FIFO {
		q.hold(b, now, s)
		return
	}
	q.schedule(b, now, *s)
}

// schedule puts a message into the order of due times.
func (q *Machine) schedule(b *mutation.Batch, now int64, s state) {
	s.slot = -1
	q.await(b, now, &s)
	q.dueWin.insert(s, q.dueWin.len() == int(q.c.scheduled))
	if s.before(q.dueFloor.due, q.dueFloor.seq) {
		q.dueFloor = place{s.due, s.seq}
	}
	q.c.scheduled++
	q.scratch = s.appendTo(q.scratch[:0])
	b.Set(q.keys.Due(s.due, s.seq), q.scratch)
	q.scratch = binary.BigEndian.AppendUint64(q.scratch[:0], uint64(s.due))
	b.Set(q.keys.DueOf(s.seq), q.scratch)
}

// unschedule takes a message out of the order of due times.
func (q *Machine) unschedule(b *mutation.Batch, now int64, s *state) {
	q.dueWin.remove(s.due, s.seq)
	q.c.scheduled--
	b.SingleDelete(q.keys.Due(s.due, s.seq))
	b.SingleDelete(q.keys.DueOf(s.seq))
	q.unawait(b, now, s)
}

// await counts a message that cannot be received yet.
func (q *Machine) await(b *mutation.Batch, now int64, s *state) {
	s.flags &^= flagLater
	if s.due > now {
		s.flags |= flagLater
		q.bucket(b, now, s.due, 1)
	}
}

// unawait is the end of await.
func (q *Machine) unawait(b *mutation.Batch, now int64, s *state) {
	if s.flags&flagLater != 0 {
		s.flags &^= flagLater
		q.bucket(b, now, s.due, -1)
	}
}

// bucket counts messages that are due in a second to come.
func (q *Machine) bucket(b *mutation.Batch, now, due, n int64) {
	q.forgetBuckets(b, now)
	second := due / 1000
	count := q.later[second]
	if n < 0 && count == 0 {
		return // the second is over: it counts as visible
	}
	if q.later == nil {
		q.later = make(map[int64]int64)
	}
	count += n
	if count == 0 {
		delete(q.later, second)
		b.Delete(q.keys.Bucket(second))
		return
	}
	q.later[second] = count
	q.scratch = binary.BigEndian.AppendUint64(q.scratch[:0], uint64(count))
	b.Set(q.keys.Bucket(second), q.scratch)
}

// forgetBuckets drops the seconds that are over, at most once a second.
func (q *Machine) forgetBuckets(b *mutation.Batch, now int64) {
	if len(q.later) == 0 || now/1000 == q.laterSeen {
		return
	}
	q.laterSeen = now / 1000
	over := slices.Sorted(func(yield func(int64) bool) {
		for second := range q.later {
			if (second+1)*1000 <= now && !yield(second) {
				return
			}
		}
	})
	for _, second := range over {
		delete(q.later, second)
		b.Delete(q.keys.Bucket(second))
	}
}

// erase removes the record of a message that is in no order any more.
func (q *Machine) erase(b *mutation.Batch, s *state) {
	b.SingleDelete(q.keys.Record(s.lane, s.seq))
	if s.lane > layout.DelayedLane && !q.kind.Backlog {
		b.SingleDelete(q.keys.Expiry(s.sent, s.seq))
	}
	if s.flags&flagHistory != 0 {
		b.Delete(q.keys.History(s.seq))
	}
}

// maxExpire bounds the leases that run out in one command.
const maxExpire = 1000

// Expire returns the leases that have run out to the queue. It handles a
// bounded number; NextTimer says whether there are more.
func (q *Machine) Expire(b *mutation.Batch, now int64) {
	for range maxExpire {
		if len(q.expiring) == 0 || q.expiring[0].due > now {
			break
		}
		s := q.expiring[0]
		q.unlease(b, now, s)
		q.putBack(b, now, s)
	}
	q.relist(b)
}

// NextTimer is when Expire, Available or Sweep have something to do, in epoch
// milliseconds; 0 means not before the next command. It can be early, never late.
func (q *Machine) NextTimer(now int64) int64 {
	var next int64
	sooner := func(at int64) {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if len(q.expiring) > 0 {
		sooner(q.expiring[0].due)
	}
	if q.dueWin.len() > 0 {
		if i := q.dueWin.find(now+1, 0); i < len(q.dueWin.states) {
			sooner(q.dueWin.states[i].due)
		}
	} else if q.c.scheduled > 0 {
		sooner(now) // unknown until the window is filled
	}
	if q.total() > 0 {
		sooner(q.sweepAt)
	}
	if q.kind.FIFO && q.g != nil {
		if q.cfg.Delay > 0 || q.kind.Backlog { // else all that is listed is ripe
			for _, x := range q.g.order {
				if at := q.ripeAt(x); at > now {
					sooner(at)
					if !x.returned {
						break // those behind were sent later
					}
				}
			}
		}
		if len(q.g.order) == 0 && q.g.listed > 0 {
			sooner(now) // unknown until the window is filled
		}
	}
	return next
}

// Available reports whether a receive would find something. When it returns a
// Need, fill it and call again.
func (q *Machine) Available(now int64) (bool, Need) {
	if q.c.fresh > 0 {
		return true, Need{}
	}
	if q.dueWin.len() == 0 && q.c.scheduled > 0 {
		return false, Need{Kind: NeedDue, Limit: windowSize / 2}
	}
	if q.dueWin.len() > 0 && q.dueWin.first().due <= now {
		return true, Need{}
	}
	if q.g != nil && q.g.listed > 0 {
		if len(q.g.order) == 0 {
			return false, Need{Kind: NeedOrder, Limit: orderSize / 2}
		}
		if slices.ContainsFunc(q.g.order, func(x *group) bool { return q.ripe(x, now) }) {
			return true, Need{}
		}
	}
	return len(q.expiring) > 0 && q.expiring[0].due <= now, Need{}
}

// Moving is the number of messages on their way to another queue.
func (q *Machine) Moving() int { return q.moving }

// Next is the sequence that the next message accepted will have.
func (q *Machine) Next() uint64 { return q.c.next }
