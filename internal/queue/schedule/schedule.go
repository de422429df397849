// Package schedule keeps the scheduled messages of a queue: delayed and returned ones.
package schedule

import (
	"cmp"
	"math"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/order"
)

// Schedule is the index of the scheduled messages of a queue, in the order of (due time,
// sequence); memory holds a window of the first ones. It also counts, by the second, messages
// that become due and are in another index: those of a FIFO queue, delayed or returned.
type Schedule struct {
	Count uint64 // length of the order, in memory and on disk

	limit int // of the window
	known order.Window[layout.State]
	floor layout.State // no message precedes it, only tombstones do
	later calendar

	// A queue that gives the message that was sent first moves the due messages from the
	// window into an order by sequence. It has all messages up to edge, and is about as
	// long as the window at most.
	ready order.Window[BySequence]
	edge  layout.State
}

// BySequence is a message in the order in which messages were sent.
type BySequence struct{ layout.State }

// Compare orders messages by sequence.
func (m BySequence) Compare(o BySequence) int { return cmp.Compare(m.Sequence, o.Sequence) }

// New makes the schedule of a queue with count scheduled messages and a window of limit.
func New(count uint64, limit int) Schedule {
	s := Schedule{Count: count, limit: limit}
	s.ready.Whole = true
	if count == 0 {
		s.known.Whole, s.floor = true, layout.State{Due: math.MaxInt64, Sequence: math.MaxUint64}
	}
	return s
}

// First is the window on the order, without the messages that Sort has moved. It is valid
// until the next change.
func (s *Schedule) First() []layout.State { return s.known.All() }

// Sort moves the due messages of the window into the order by sequence, and lists that. The
// list is valid until the next change.
func (s *Schedule) Sort(now int64) []BySequence {
	for s.ready.Len() < s.limit && s.known.Len() > 0 && s.known.First().Due <= now {
		s.edge = s.known.Pop()
		s.ready.Insert(BySequence{s.edge}, math.MaxInt)
	}
	return s.ready.All()
}

// Sorted are the messages that Sort has moved. They are valid until the next change.
func (s *Schedule) Sorted() []BySequence { return s.ready.All() }

// NotDue are the messages in the window that are not due.
func (s *Schedule) NotDue(now int64) []layout.State {
	i, _ := s.known.Find(layout.State{Due: now + 1})
	return s.known.All()[i:]
}

// Whole reports that the window holds all messages of the order.
func (s *Schedule) Whole() bool { return s.known.Whole }

// Unknown reports that no message is in memory, though there may be some on disk.
func (s *Schedule) Unknown() bool {
	return s.known.Len() == 0 && s.ready.Len() == 0 && !s.known.Whole
}

// Short reports that the first limit due messages may not all be in memory.
func (s *Schedule) Short(now int64, limit int) bool {
	if s.known.Whole || s.known.Len() > 0 && s.known.Last().Due > now {
		return false
	}
	have := s.ready.Len() + s.known.Len()
	return have == 0 || have < limit
}

// Delayed counts the messages that are not due: to the millisecond if all of them are in
// memory, else, and in a FIFO queue, to within a second.
func (s *Schedule) Delayed(now int64, blocks bool) int64 {
	if s.known.Whole && !blocks {
		return int64(len(s.NotDue(now)))
	}
	return s.later.after(now)
}

// DelayedOf counts the delayed messages of some tenants. If not all messages are in memory, it
// estimates: delayed is the count of all tenants, scheduled is how many of the order are theirs.
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

// Add inserts a message into the order.
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

// Remove removes a message from the order.
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

// CountLater counts a message that is not due, in whatever index it is.
func (s *Schedule) CountLater(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	m.Flags &^= layout.Later
	if m.Due > now {
		m.Flags |= layout.Later
		s.Expect(b, keys, now, m.Due)
	}
}

// UncountLater undoes CountLater.
func (s *Schedule) UncountLater(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	if m.Is(layout.Later) {
		m.Flags &^= layout.Later
		s.later.add(now, m.Due, -1, seconds(b, keys))
	}
}

// Expect counts a message that becomes due without another change of its state.
func (s *Schedule) Expect(b *mutation.Batch, keys *layout.Keys, now, due int64) {
	s.later.add(now, due, 1, seconds(b, keys))
}

// Shift makes all counted messages due by seconds later.
func (s *Schedule) Shift(b *mutation.Batch, keys *layout.Keys, now, by int64) {
	if !s.Idle() {
		s.later.shift(now, by, seconds(b, keys))
	}
}

// Recount replaces all counts.
func (s *Schedule) Recount(b *mutation.Batch, keys *layout.Keys, counts map[int64]int64) {
	s.later.replace(counts, seconds(b, keys))
}

// Forget drops the counts of the seconds that have passed.
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

// Unread is the part of the order that is not in memory.
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

// Fill appends the next message that was read from Unread.
func (s *Schedule) Fill(m layout.State) { s.known.Append(m) }

// Filled is called after the reads. exhausted says that all messages are in memory, so that
// their number must equal Count. ok is false if it did not; Count has been corrected.
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
