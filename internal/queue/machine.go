package queue

import (
	"time"
	"unique"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/group"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/lease"
	"godwit.dev/godwit/internal/queue/schedule"
)

// Machine is the state of one queue. It is not safe for concurrent use.
type Machine struct {
	keys layout.Keys
	kind Kind
	cfg  unique.Handle[Config] // most queues are configured alike
	next uint64                // the next sequence
	*content
}

// content is what a machine has beyond that while the queue is in use.
type content struct {
	c      layout.Counters // Next, Scheduled, Leased and Listed are set when they are written
	main   group.Group     // the main lane
	g      *groups         // nil: it has none
	due    schedule.Schedule
	leases lease.Set

	sweepAt  int64     // when the oldest message may expire; 0: never
	known    *known    // of the message that the command under way is about
	sweeping *sweeping // nil: no sweep is under way
	search   *search   // for the oldest message; nil: none is under way
	ages     *ages     // nil: nobody has asked for it
}

// resting is the content of every queue that was not used yet, or rests. It is
// only read.
var resting = newContent()

func newContent() *content {
	c := &content{main: group.Group{Known: group.All}, due: schedule.New(0, windowSize)}
	c.main.Fresh.Whole = true
	return c
}

// New makes an empty queue.
func New(keys layout.Keys, cfg Config, kind Kind) *Machine {
	return &Machine{keys: keys, cfg: unique.Make(cfg), kind: kind, next: 1, content: resting}
}

// ContinueFrom has an empty queue go on with the sequence of the one in whose place
// it is.
func (q *Machine) ContinueFrom(former *Machine) { q.next = former.next }

// wake precedes every change of the content.
func (q *Machine) wake() {
	if q.content == resting {
		q.content = newContent()
		q.c.LowMain, q.c.LowDelayed = q.next, q.next
	}
}

// Hibernate gives back the memory that an empty queue does not need until it is used
// again. It forgets what tenants have had of the processing time.
func (q *Machine) Hibernate() {
	if q.Empty() && q.due.Idle() {
		q.content = resting
	}
}

func (q *Machine) configure(b *mutation.Batch, now int64, cfg Config) {
	if cfg.Retention != q.cfg.Value().Retention && !q.Empty() {
		q.sweepAt = now
	}
	if shift := int64((cfg.Delay - q.cfg.Value().Delay) / time.Second); shift != 0 && q.kind.FIFO {
		q.due.Shift(b, &q.keys, now, shift)
	}
	q.cfg = unique.Make(cfg)
}

// Config is how the queue behaves.
func (q *Machine) Config() Config { return q.cfg.Value() }

// Keys are the keys of the queue's records.
func (q *Machine) Keys() *layout.Keys { return &q.keys }

// NextSequence is the sequence that the next message gets.
func (q *Machine) NextSequence() uint64 { return q.next }

// Empty reports that the queue holds no message at all.
func (q *Machine) Empty() bool { return q.Len() == 0 }

// Len counts the messages, in whatever state.
func (q *Machine) Len() int64 { return q.waiting() + int64(q.leases.Len()) }

// waiting counts the messages that are not leased.
func (q *Machine) waiting() int64 {
	return int64(q.c.Fresh + q.due.Count + q.c.Grouped + q.c.Returned)
}

// head is the sequence at which the fresh messages of the main lane begin.
func (q *Machine) head() uint64 {
	if q.c.Fresh == 0 {
		return q.next
	}
	return q.c.Head
}

// HeadSpan is where the fresh messages of the main lane stand.
func (q *Machine) HeadSpan() layout.Span { return q.keys.Lane(layout.MainLane, q.head()) }

// Counts are the numbers of messages in each state.
func (q *Machine) Counts(now int64) Counts {
	delayed := min(q.due.Delayed(now, q.kind.FIFO), q.waiting())
	return Counts{Visible: q.waiting() - delayed, InFlight: int64(q.leases.Len()), Delayed: delayed}
}

// needToCount says what must be read before Counts is exact. Of a queue with
// more scheduled messages than memory holds it stays an estimate, for at most a
// second after a message has come due.
func (q *Machine) needToCount() Need {
	if !q.due.Whole() && int(q.due.Count) <= windowSize {
		return Need{kind: needDue, limit: windowSize}
	}
	return Need{}
}

// Arrival is a message as it enters a queue.
type Arrival struct {
	Record []byte      // as Message.AppendRecord makes it
	Sent   int64       // as in the record
	Due    int64       // later than now: it is delayed until then; not in FIFO queues
	Lane   layout.Lane // GroupLane of the message's group
	Moved  bool        // with an age, from another queue; not in FIFO queues
}

// accept adds a message and returns its sequence. needToAccept comes first.
func (q *Machine) accept(b *mutation.Batch, now int64, a *Arrival) uint64 {
	q.wake()
	seq, lane, scheduled := q.next, a.Lane, false
	q.next++
	switch {
	case q.kind.FIFO:
		lane = max(a.Lane, layout.GroupLanes)
		if due := a.Sent + q.cfg.Value().Delay.Milliseconds(); due > now && !q.kind.Backlog {
			q.due.Expect(b, &q.keys, now, due)
		}
	case a.Moved:
		lane, scheduled = layout.MovedLane, true
	case a.Due > now:
		lane, scheduled = layout.DelayedLane, true
	}
	b.Set(q.keys.Record(lane, seq), a.Record)
	if q.expires(lane) {
		layout.PutNumber(b, q.keys.Expiry(a.Sent, seq), uint64(lane))
	}
	if scheduled {
		q.schedule(b, now, layout.State{Sequence: seq, Due: max(a.Due, now), Sent: a.Sent, Lane: lane, Tenant: a.Lane})
	} else {
		q.join(lane, group.Fresh{Sequence: seq, Sent: a.Sent})
		q.relist(b)
	}
	if !q.kind.Backlog && q.cfg.Value().Retention > 0 {
		if at := max(a.Sent+q.cfg.Value().Retention.Milliseconds(), 1); q.sweepAt == 0 || at < q.sweepAt {
			q.sweepAt = at
		}
	}
	return seq
}

// expires reports that a message stands in the order of ages: it is not found
// by walking its lane.
func (q *Machine) expires(lane layout.Lane) bool {
	return lane > layout.DelayedLane && !q.kind.Backlog
}

// schedule puts a message into the order of due times.
func (q *Machine) schedule(b *mutation.Batch, now int64, s layout.State) {
	q.due.Add(b, &q.keys, now, s)
	q.wait(s.Tenant, 1, 1)
}

// unschedule takes a message out of the order of due times.
func (q *Machine) unschedule(b *mutation.Batch, now int64, s *layout.State) {
	q.due.Remove(b, &q.keys, now, s)
	q.wait(s.Tenant, -1, -1)
}

// erase removes the record of a message that is in no order any more.
func (q *Machine) erase(b *mutation.Batch, s *layout.State) {
	b.SingleDelete(q.keys.Record(s.Lane, s.Sequence))
	if q.expires(s.Lane) {
		b.SingleDelete(q.keys.Expiry(s.Sent, s.Sequence))
	}
	if s.Is(layout.History) {
		b.Delete(q.keys.History(s.Sequence))
	}
}

// NextTimer is when Expire, Probe or Sweep have something to do, in epoch
// milliseconds; 0 means not before the next command. It can be early, never late.
func (q *Machine) NextTimer(now int64) (next int64) {
	sooner := func(at int64) {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if q.Empty() {
		return 0
	}
	sooner(q.sweepAt)
	if first := q.leases.Next(); first != nil {
		sooner(first.Due)
	}
	if later := q.due.Later(now); len(later) > 0 {
		sooner(later[0].Due)
	}
	if q.due.Unknown() {
		sooner(now) // unknown until the window is filled
	}
	if q.kind.FIFO && q.g != nil {
		sooner(q.nextRipe(now))
	}
	return next
}
