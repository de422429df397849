// Package schedule keeps what a queue has for later.
package schedule

import (
	"cmp"
	"math"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/order"
)

// Schedule is what a queue has for later: the messages that are delayed, or were
// received and returned, in the order of (due time, sequence),
// of which memory holds the first. It also counts by the second what waits for a
// moment in another order: returned messages of groups that block, and delayed ones.
type Schedule struct {
	Count uint64 // of the messages in the order, in memory or not

	limit int // of the window
	known order.Window[layout.State]
	floor layout.State // no message stands before it, only tombstones do
	later calendar

	// A queue that gives what was sent first takes those that are due out of the
	// window, into an order by sequence: all up to edge are there, and at most about
	// as many as the window holds.
	ready order.Window[BySequence]
	edge  layout.State
}

// BySequence is a message in the order in which messages were sent.
type BySequence struct{ layout.State }

// Compare orders messages by sequence.
func (m BySequence) Compare(o BySequence) int { return cmp.Compare(m.Sequence, o.Sequence) }

// New makes the schedule of a queue in whose order so many messages stand, of which
// memory holds at most limit.
func New(count uint64, limit int) Schedule {
	s := Schedule{Count: count, limit: limit}
	s.ready.Whole = true
	if count == 0 {
		s.known.Whole, s.floor = true, layout.State{Due: math.MaxInt64, Sequence: math.MaxUint64}
	}
	return s
}

// First are the first messages of the order, those in memory that are not sorted. They
// are valid until the next change.
func (s *Schedule) First() []layout.State { return s.known.All() }

// Sort takes the messages that are due, as far as memory knows them, into the order of
// their sequences, and lists that. It is valid until the next change.
func (s *Schedule) Sort(now int64) []BySequence {
	for s.ready.Len() < s.limit && s.known.Len() > 0 && s.known.First().Due <= now {
		s.edge = s.known.Pop()
		s.ready.Insert(BySequence{s.edge}, math.MaxInt)
	}
	return s.ready.All()
}

// Sorted are the messages that Sort has taken. They are valid until the next change.
func (s *Schedule) Sorted() []BySequence { return s.ready.All() }

// NotDue are those of the known messages that are not due.
func (s *Schedule) NotDue(now int64) []layout.State {
	i, _ := s.known.Find(layout.State{Due: now + 1})
	return s.known.All()[i:]
}

// Whole reports that all messages are known.
func (s *Schedule) Whole() bool { return s.known.Whole }

// Unknown reports that none of the messages is known, and there may be some.
func (s *Schedule) Unknown() bool {
	return s.known.Len() == 0 && s.ready.Len() == 0 && !s.known.Whole
}

// Short reports that others than the known messages may be among the first most that
// are due.
func (s *Schedule) Short(now int64, most int) bool {
	if s.known.Whole || s.known.Len() > 0 && s.known.Last().Due > now {
		return false
	}
	have := s.ready.Len() + s.known.Len()
	return have == 0 || have < most
}

// Delayed counts what is not due: the messages of the order to the millisecond while
// all of them are known, else, and in a queue whose groups block, to within a second.
func (s *Schedule) Delayed(now int64, blocks bool) int64 {
	if s.known.Whole && !blocks {
		return int64(len(s.NotDue(now)))
	}
	return s.later.after(now)
}

// DelayedOf is how many of so many delayed messages are those of tenants who have
// scheduled messages in the order: by their share where not all are known.
func (s *Schedule) DelayedOf(now, delayed int64, tenants []layout.Lane, scheduled int64) (n int64) {
	if !s.known.Whole {
		return int64(float64(delayed) * min(float64(scheduled)/float64(max(s.Count, 1)), 1))
	}
	for _, m := range s.NotDue(now) {
		if slices.Contains(tenants, m.Tenant) {
			n++
		}
	}
	return n
}

// Add puts a message into the order.
func (s *Schedule) Add(b *mutation.Batch, keys *layout.Keys, now int64, m layout.State) {
	s.CountLater(b, keys, now, &m)
	if m.Compare(s.edge) <= 0 {
		s.ready.Insert(BySequence{m}, math.MaxInt)
	} else {
		s.known.Insert(m, s.limit)
	}
	if m.Compare(s.floor) < 0 {
		s.floor = m
	}
	s.Count++
	layout.PutState(b, keys.Due(m.Due, m.Sequence), &m)
	layout.PutNumber(b, keys.DueOf(m.Sequence), uint64(m.Due))
}

// Remove takes a message out of the order.
func (s *Schedule) Remove(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	if m.Compare(s.edge) <= 0 {
		s.ready.Remove(BySequence{*m})
	} else {
		if s.known.Len() > 0 && m.Compare(*s.known.First()) == 0 {
			s.floor = *m
		}
		s.known.Remove(*m)
	}
	s.Count--
	b.SingleDelete(keys.Due(m.Due, m.Sequence))
	b.SingleDelete(keys.DueOf(m.Sequence))
	s.UncountLater(b, keys, now, m)
}

// CountLater counts a message that waits for its due time, wherever it stands.
func (s *Schedule) CountLater(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	m.Flags &^= layout.Later
	if m.Due > now {
		m.Flags |= layout.Later
		s.Expect(b, keys, now, m.Due)
	}
}

// UncountLater counts it no longer.
func (s *Schedule) UncountLater(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	if m.Is(layout.Later) {
		m.Flags &^= layout.Later
		s.later.add(now, m.Due, -1, seconds(b, keys))
	}
}

// Expect counts one more message for which nothing but time has to pass.
func (s *Schedule) Expect(b *mutation.Batch, keys *layout.Keys, now, due int64) {
	s.later.add(now, due, 1, seconds(b, keys))
}

// Shift makes all that is counted due by seconds later.
func (s *Schedule) Shift(b *mutation.Batch, keys *layout.Keys, now, by int64) {
	if !s.Idle() {
		s.later.shift(now, by, seconds(b, keys))
	}
}

// Forget drops the counts of the seconds that are over.
func (s *Schedule) Forget(b *mutation.Batch, keys *layout.Keys, now int64) {
	if !s.Idle() {
		s.later.forget(now, seconds(b, keys))
	}
}

// Idle reports that no second is counted.
func (s *Schedule) Idle() bool { return s.later.empty() }

func seconds(b *mutation.Batch, keys *layout.Keys) writeCount {
	return func(second, count int64) { layout.PutCount(b, keys.Bucket(second), count) }
}

// Unread is where those messages stand that are not known.
func (s *Schedule) Unread(keys *layout.Keys) layout.Span {
	from := s.floor
	switch {
	case s.known.Len() > 0:
		from = *s.known.Last()
		from.Sequence++
	case s.edge.Compare(from) >= 0:
		from = s.edge
		from.Sequence++
	}
	return keys.DueFrom(from.Due, from.Sequence)
}

// Fill adds the next message, read from Unread in order.
func (s *Schedule) Fill(m layout.State) { s.known.Append(m) }

// Filled ends the reading of messages. With exhausted nothing stands behind the last
// one: ok false says that the count disagreed, and has been set right.
func (s *Schedule) Filled(exhausted bool) (ok bool) {
	s.known.Whole = exhausted
	have := uint64(s.known.Len() + s.ready.Len())
	if ok = !exhausted || s.Count == have; !ok {
		s.Count = have
	}
	return ok
}

// FillSecond restores the count of a second.
func (s *Schedule) FillSecond(second, count int64) { s.later.set(second, count) }
