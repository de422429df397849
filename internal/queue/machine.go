package queue

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"godwit.dev/godwit/internal/mutation"
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
)

// Machine is the state of one queue. It is not safe for concurrent use.
type Machine struct {
	keys    Keys
	cfg     Config
	backlog bool // leases do not run out, messages do not expire by themselves
	c       counters

	freshWin  freshWindow
	dueWin    dueWindow
	dueFloor  place // no scheduled message stands before it, only tombstones do
	leases    map[uint64]*state
	expiring  leaseHeap
	later     map[int64]int64 // second → scheduled messages due in it, for seconds to come
	laterSeen int64           // the second in which it was last cleaned

	sweepAt int64 // when the oldest message may expire; 0: never
	moving  int   // leases that are on their way elsewhere
	filled  fill
	scratch []byte
}

// New makes an empty queue. A backlog is the queue of a subscription: its
// consumer is in this process, so a lease holds until it ends or the process does.
func New(keys Keys, cfg Config, backlog bool) *Machine {
	return &Machine{keys: keys, cfg: cfg, backlog: backlog, c: counters{next: 1, head: 1}}
}

// Configure changes the behaviour of calls to come. A changed retention holds
// for the messages that are there.
func (q *Machine) Configure(cfg Config, now int64) {
	if cfg.Retention != q.cfg.Retention && q.total() > 0 {
		q.sweepAt = now
	}
	q.cfg = cfg
}

// Config is how the queue behaves.
func (q *Machine) Config() Config { return q.cfg }

// Counts are the numbers of messages in each state.
func (q *Machine) Counts(now int64) Counts {
	later := q.laterNow(now)
	return Counts{
		Visible:  int64(q.c.fresh) + int64(q.c.scheduled) - later,
		InFlight: int64(len(q.leases)),
		Delayed:  later,
	}
}

// PrepareCounts says what must be read before Counts is exact. Of a queue with
// more scheduled messages than memory holds it stays an estimate, for at most a
// second after a message has come due.
func (q *Machine) PrepareCounts() Need {
	if n := q.dueWin.len(); n < int(q.c.scheduled) && int(q.c.scheduled) <= windowSize {
		return Need{Kind: NeedDue}
	}
	return Need{}
}

// laterNow counts the scheduled messages that are not due: from the window when
// it holds them all, else by the second.
func (q *Machine) laterNow(now int64) (n int64) {
	if q.dueWin.len() == int(q.c.scheduled) {
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

func (q *Machine) total() uint64 { return q.c.fresh + q.c.scheduled + uint64(len(q.leases)) }

// Arrival is a message as it enters a queue.
type Arrival struct {
	Record []byte // as Message.AppendRecord makes it
	Sent   int64  // as in the record
	Due    int64  // later than now: it is delayed until then
	// Receives and First are the history of a message that was moved here from
	// another queue; zero otherwise.
	Receives uint32
	First    int64
	Moved    bool
}

// Accept adds a message and returns its sequence.
func (q *Machine) Accept(b *mutation.Batch, now int64, a Arrival) uint64 {
	seq := q.c.next
	q.c.next++
	switch {
	case a.Moved:
		b.Set(q.keys.Record(MovedLane, seq), a.Record)
		q.scratch = binary.BigEndian.AppendUint32(q.scratch[:0], uint32(MovedLane))
		b.Set(q.keys.expiry(a.Sent, seq), q.scratch)
		q.schedule(b, now, state{
			seq: seq, due: max(a.Due, now), sent: a.Sent, first: a.First,
			receives: a.Receives, elsewhere: a.Receives, lane: MovedLane, slot: -1,
		})
	case a.Due > now:
		b.Set(q.keys.Record(DelayedLane, seq), a.Record)
		q.schedule(b, now, state{seq: seq, due: a.Due, sent: a.Sent, lane: DelayedLane, slot: -1})
	default:
		b.Set(q.keys.Record(MainLane, seq), a.Record)
		if n := q.freshWin.len(); n == int(q.c.fresh) && n < windowSize {
			q.freshWin.push(ref{seq: seq, sent: a.Sent})
		}
		q.c.fresh++
	}
	if !q.backlog && q.cfg.Retention > 0 {
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
	Lane     Lane
	Receives uint32 // including this one
	Epoch    uint32
	First    int64 // epoch milliseconds of the first receive
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
		return Need{Kind: NeedDue}
	}
	if n := q.freshWin.len(); n < int(q.c.fresh) && n < most {
		return Need{Kind: NeedFresh}
	}
	return Need{}
}

// Receive leases up to r.Max messages, in the order in which they became
// available. It finds only what is in memory: where it comes to the end of a
// window (expired messages and dead letters use it up) it stops early, and
// Available tells that there is more. ErrInFlight: nothing can be leased now.
func (q *Machine) Receive(b *mutation.Batch, now int64, r *Receive) error {
	q.Expire(b, now)
	for len(r.Leases) < r.Max && len(r.Moves) < maxMoves {
		if len(q.leases) >= MaxInFlight {
			if len(r.Leases) == 0 {
				return ErrInFlight
			}
			break
		}
		if q.dueWin.len() == 0 && q.c.scheduled > 0 || q.freshWin.len() == 0 && q.c.fresh > 0 {
			break
		}
		due := q.dueWin.len() > 0 && q.dueWin.first().due <= now
		switch {
		case due && (q.freshWin.len() == 0 || q.dueWin.first().due <= q.freshWin.first().sent):
			s := *q.dueWin.first()
			q.dueFloor = place{s.due, s.seq}
			q.unschedule(b, now, &s)
			q.take(b, now, r, &s)
		case q.freshWin.len() > 0:
			f := q.freshWin.first()
			q.freshWin.pop()
			q.c.fresh--
			q.c.head = f.seq + 1
			q.take(b, now, r, &state{seq: f.seq, sent: f.sent, lane: MainLane, slot: -1})
		default:
			return nil
		}
	}
	return nil
}

// take leases a message that is in no order any more, or drops it if its
// retention is over.
func (q *Machine) take(b *mutation.Batch, now int64, r *Receive, s *state) {
	if !q.backlog && q.cfg.Retention > 0 && s.sent+q.cfg.Retention.Milliseconds() <= now {
		q.erase(b, s)
		return
	}
	if r.Task {
		s.flags |= flagMoving | flagTask
		s.due = never
		r.Leases = append(r.Leases, q.lease(b, s))
		q.moving++
		return
	}
	if q.cfg.MaxReceives > 0 && !q.cfg.DeadLetter.IsZero() && int(s.receives-s.elsewhere) >= q.cfg.MaxReceives && s.flags&flagStay == 0 {
		s.flags |= flagMoving
		s.due = never
		r.Moves = append(r.Moves, q.lease(b, s))
		q.moving++
		return
	}
	s.flags &^= flagStay
	s.receives++
	s.received, s.epoch = now, r.Epoch
	if s.first == 0 {
		s.first = now
	}
	s.due = never
	if !q.backlog {
		s.due = now + r.Visibility
	}
	r.Leases = append(r.Leases, q.lease(b, s))
}

// lease writes and remembers a lease.
func (q *Machine) lease(b *mutation.Batch, s *state) Lease {
	kept := *s
	kept.slot = -1
	if q.leases == nil {
		q.leases = make(map[uint64]*state)
	}
	q.leases[kept.seq] = &kept
	if kept.due != never {
		q.expiring.push(&kept)
	}
	q.scratch = kept.appendTo(q.scratch[:0])
	b.Set(q.keys.lease(kept.seq), q.scratch)
	return q.leaseOf(&kept)
}

func (q *Machine) leaseOf(s *state) Lease {
	return Lease{
		Sequence: s.seq, Moving: s.flags&flagMoving != 0, Lane: s.lane, Receives: s.receives,
		Epoch: s.epoch, First: s.first, Sent: s.sent,
	}
}

// unlease ends a lease; the message is in no order afterwards.
func (q *Machine) unlease(b *mutation.Batch, s *state) {
	b.SingleDelete(q.keys.lease(s.seq))
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

// schedule puts a message into the order of due times.
func (q *Machine) schedule(b *mutation.Batch, now int64, s state) {
	s.slot = -1
	s.flags &^= flagLater
	if s.due > now {
		s.flags |= flagLater
		q.bucket(b, now, s.due, 1)
	}
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
		b.Delete(q.keys.bucket(second))
		return
	}
	q.later[second] = count
	q.scratch = binary.BigEndian.AppendUint64(q.scratch[:0], uint64(count))
	b.Set(q.keys.bucket(second), q.scratch)
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
		b.Delete(q.keys.bucket(second))
	}
}

// erase removes the record of a message that is in no order any more.
func (q *Machine) erase(b *mutation.Batch, s *state) {
	b.SingleDelete(q.keys.Record(s.lane, s.seq))
	if s.lane == MovedLane {
		b.SingleDelete(q.keys.expiry(s.sent, s.seq))
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
			return
		}
		s := q.expiring[0]
		q.unlease(b, s)
		q.schedule(b, now, *s)
	}
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
	return next
}

// Available reports whether a receive would find something. When it returns a
// Need, fill it and call again.
func (q *Machine) Available(now int64) (bool, Need) {
	if q.c.fresh > 0 {
		return true, Need{}
	}
	if q.dueWin.len() == 0 && q.c.scheduled > 0 {
		return false, Need{Kind: NeedDue}
	}
	if q.dueWin.len() > 0 && q.dueWin.first().due <= now {
		return true, Need{}
	}
	return len(q.expiring) > 0 && q.expiring[0].due <= now, Need{}
}

// Moving is the number of messages on their way to another queue.
func (q *Machine) Moving() int { return q.moving }
