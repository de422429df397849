package queue

import (
	"time"
	"unique"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/grouping"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
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

// content is the part of a machine that only a queue in use needs; see Hibernate.
type content struct {
	counters layout.Counters // Next, Scheduled, Leased and Listed are set when they are written; Bytes is one less
	main     grouping.Group  // the messages of the main lane
	groups   *groups         // nil: it has none
	due      schedule.Schedule
	leases   leases.Set

	stale    *resort   // the index of groups is converted from an older version; nil: it need not be
	sweepAt  int64     // when the oldest message may expire; 0: never
	lookup   *lookup   // of the message that the command under way is about
	sweeping *sweeping // nil: no sweep is under way
	recount  *recount  // nil: none is under way
	search   *search   // for the oldest message; nil: none is under way
	ages     *ages     // nil: the oldest message was not asked for
}

// hibernated is the content of all queues that are hibernated, or were never used. It is shared,
// so it is never written to: see wake.
var hibernated = newContent()

func newContent() *content {
	c := &content{main: grouping.Group{Known: grouping.KnowsAll}, due: schedule.New(0, windowSize)}
	c.main.Fresh.Whole = true
	return c
}

// New makes an empty queue.
func New(keys layout.Keys, cfg Config, kind Kind) *Machine {
	return &Machine{keys: keys, cfg: unique.Make(cfg), kind: kind, next: 1, content: hibernated}
}

// ContinueAt sets the next sequence of an empty queue.
func (q *Machine) ContinueAt(next uint64) { q.next = next }

// wake gives the machine a content of its own. It must precede every change of the content.
func (q *Machine) wake() {
	if q.content == hibernated {
		q.content = newContent()
		q.counters.LowMain, q.counters.LowDelayed = q.next, q.next
	}
}

// Hibernate frees the memory of an empty queue until it is used again, the processing times
// of tenants included. It returns false if the queue is not empty.
func (q *Machine) Hibernate() bool {
	if q.Empty() && q.due.Idle() && q.recount == nil {
		q.content = hibernated
	}
	return q.content == hibernated
}

func (q *Machine) configure(b *mutation.Batch, now int64, cfg Config) {
	if cfg.Retention != q.cfg.Value().Retention && !q.Empty() {
		q.sweepAt = now
	}
	if shift := int64((cfg.Delay - q.cfg.Value().Delay) / time.Second); shift != 0 && q.kind.FIFO {
		q.due.Shift(b, &q.keys, now, shift)
		if shift > 0 && !q.kind.Backlog && !q.Empty() || q.recount != nil {
			q.beginRecount(b)
		}
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

// Bytes is the size of the records of all messages, in whatever state.
func (q *Machine) Bytes() int64 { return int64(q.counters.Bytes) }

// waiting counts the messages that are not leased.
func (q *Machine) waiting() int64 {
	return int64(q.counters.Fresh + q.due.Count + q.counters.Grouped + q.counters.Returned)
}

// head is the sequence at which the fresh messages of the main lane begin.
func (q *Machine) head() uint64 {
	if q.counters.Fresh == 0 {
		return q.next
	}
	return q.counters.Head
}

// HeadSpan is the key range of the fresh messages of the main lane.
func (q *Machine) HeadSpan() layout.Span { return q.keys.Lane(layout.MainLane, q.head()) }

// Counts are the numbers of messages in each state.
func (q *Machine) Counts(now int64) Counts {
	delayed := min(q.due.Delayed(now, q.kind.FIFO), q.waiting())
	return Counts{Visible: q.waiting() - delayed, InFlight: int64(q.leases.Len()), Delayed: delayed}
}

// NextTimer is when Expire, Probe, Recount or Sweep will have something to do, in epoch milliseconds; 0:
// not before the next command. It may be too early, and never too late.
func (q *Machine) NextTimer(now int64) (next int64) {
	sooner := func(at int64) {
		if at != 0 && (next == 0 || at < next) {
			next = at
		}
	}
	if q.recount != nil || q.countsNothing() { // of an empty queue, what an earlier version has left
		sooner(now)
	}
	if q.Empty() {
		return next
	}
	sooner(q.sweepAt)
	if first := q.leases.Next(); first != nil {
		sooner(first.Due)
	}
	if later := q.due.NotDue(now); len(later) > 0 {
		sooner(later[0].Due)
	}
	if q.due.Unknown() {
		sooner(now) // unknown until the window is filled
	}
	if q.kind.FIFO && q.groups != nil {
		sooner(q.nextReady(now))
	}
	return next
}

// needToCount is what must be read before Counts is as exact as its type says.
func (q *Machine) needToCount() Need {
	if !q.due.Whole() && int(q.due.Count) <= windowSize {
		return Need{kind: needDue, limit: int32(windowSize)}
	}
	return Need{}
}
