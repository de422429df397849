// Package schedule holds what a queue has for later: the messages that are delayed,
// or were received and returned, in the order in which they come due, and how many
// become due in each second.
package schedule

import (
	"math"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/calendar"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/order"
)

// Schedule is the scheduled messages of a queue, in the order of (due time, sequence),
// of which memory holds the first. It also counts by the second what waits for a
// moment in another order: returned messages of groups that block, and delayed ones.
type Schedule struct {
	Count uint64 // of the messages in the order, in memory or not

	limit int // of the window
	known order.Window[layout.State]
	floor layout.State // no message stands before it, only tombstones do
	later calendar.Calendar
}

// New makes the schedule of a queue in whose order so many messages stand, of which
// memory holds at most limit.
func New(count uint64, limit int) Schedule {
	s := Schedule{Count: count, limit: limit}
	if count == 0 {
		s.known.Whole, s.floor = true, layout.State{Due: math.MaxInt64, Sequence: math.MaxUint64}
	}
	return s
}

// Known are the first messages of the order, those in memory. They are valid until
// the next change.
func (s *Schedule) Known() []layout.State { return s.known.All() }

// Later are those of the known messages that are not due.
func (s *Schedule) Later(now int64) []layout.State {
	i, _ := s.known.Find(layout.State{Due: now + 1})
	return s.known.All()[i:]
}

// Whole reports that all messages are known.
func (s *Schedule) Whole() bool { return s.known.Whole }

// Unknown reports that none of the messages is known, and there may be some.
func (s *Schedule) Unknown() bool { return s.known.Len() == 0 && !s.known.Whole }

// Short reports that others than the known messages may be among the first most that
// are due.
func (s *Schedule) Short(now int64, most int) bool {
	return !s.known.Whole && (s.known.Len() == 0 || s.known.Len() < most && s.known.Last().Due <= now)
}

// Delayed counts what is not due: the messages of the order to the millisecond while
// all of them are known, else, and in a queue whose groups block, to within a second.
func (s *Schedule) Delayed(now int64, blocks bool) int64 {
	if s.known.Whole && !blocks {
		return int64(len(s.Later(now)))
	}
	return s.later.After(now)
}

// DelayedOf is how many of so many delayed messages are those of tenants who have
// scheduled messages in the order: by their share where not all are known.
func (s *Schedule) DelayedOf(now, delayed int64, tenants []layout.Lane, scheduled int64) (n int64) {
	if !s.known.Whole {
		return int64(float64(delayed) * min(float64(scheduled)/float64(max(s.Count, 1)), 1))
	}
	for _, m := range s.Later(now) {
		if slices.Contains(tenants, m.Tenant) {
			n++
		}
	}
	return n
}

// Add puts a message into the order.
func (s *Schedule) Add(b *mutation.Batch, keys *layout.Keys, now int64, m layout.State) {
	s.Await(b, keys, now, &m)
	s.known.Insert(m, s.limit)
	if m.Compare(s.floor) < 0 {
		s.floor = m
	}
	s.Count++
	layout.PutState(b, keys.Due(m.Due, m.Sequence), &m)
	layout.PutNumber(b, keys.DueOf(m.Sequence), uint64(m.Due))
}

// Remove takes a message out of the order.
func (s *Schedule) Remove(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	if s.known.Len() > 0 && m.Compare(*s.known.First()) == 0 {
		s.floor = *m
	}
	s.known.Remove(*m)
	s.Count--
	b.SingleDelete(keys.Due(m.Due, m.Sequence))
	b.SingleDelete(keys.DueOf(m.Sequence))
	s.Unawait(b, keys, now, m)
}

// Await counts a message that waits for its due time, wherever it stands.
func (s *Schedule) Await(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	m.Flags &^= layout.Later
	if m.Due > now {
		m.Flags |= layout.Later
		s.Expect(b, keys, now, m.Due)
	}
}

// Unawait is the end of Await.
func (s *Schedule) Unawait(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	if m.Is(layout.Later) {
		m.Flags &^= layout.Later
		s.later.Add(now, m.Due, -1, seconds(b, keys))
	}
}

// Expect counts one more message for which nothing but time has to pass.
func (s *Schedule) Expect(b *mutation.Batch, keys *layout.Keys, now, due int64) {
	s.later.Add(now, due, 1, seconds(b, keys))
}

// Shift makes all that is counted due by seconds later.
func (s *Schedule) Shift(b *mutation.Batch, keys *layout.Keys, now, by int64) {
	if !s.Idle() {
		s.later.Shift(now, by, seconds(b, keys))
	}
}

// Forget drops the counts of the seconds that are over.
func (s *Schedule) Forget(b *mutation.Batch, keys *layout.Keys, now int64) {
	if !s.Idle() {
		s.later.Forget(now, seconds(b, keys))
	}
}

// Idle reports that no second is counted.
func (s *Schedule) Idle() bool { return s.later.Empty() }

func seconds(b *mutation.Batch, keys *layout.Keys) calendar.Write {
	return func(second, count int64) { layout.PutCount(b, keys.Bucket(second), count) }
}

// Rest is where those messages stand that are not known.
func (s *Schedule) Rest(keys *layout.Keys) layout.Span {
	from := s.floor
	if s.known.Len() > 0 {
		from = *s.known.Last()
		from.Sequence++
	}
	return keys.DueFrom(from.Due, from.Sequence)
}

// Fill adds the next message, read from Rest in order.
func (s *Schedule) Fill(m layout.State) { s.known.Append(m) }

// Filled ends the reading of messages. With exhausted nothing stands behind the last
// one: ok false says that Count disagreed, and has been set right.
func (s *Schedule) Filled(exhausted bool) (ok bool) {
	s.known.Whole = exhausted
	have := uint64(s.known.Len())
	if ok = !exhausted || s.Count == have; !ok {
		s.Count = have
	}
	return ok
}

// FillSecond restores the count of a second.
func (s *Schedule) FillSecond(second, count int64) { s.later.Set(second, count) }
