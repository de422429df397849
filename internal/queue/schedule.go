package queue

import (
	"cmp"
	"math"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/calendar"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/order"
)

// schedule is what a queue has for later: the messages that are delayed, or were
// received and returned, in the order of (due time, sequence),
// of which memory holds the first. It also counts by the second what waits for a
// moment in another order: returned messages of groups that block, and delayed ones.
type schedule struct {
	count uint64 // of the messages in the order, in memory or not

	limit int // of the window
	known order.Window[layout.State]
	floor layout.State // no message stands before it, only tombstones do
	later calendar.Calendar

	// A queue that gives what was sent first takes those that are due out of the
	// window, into an order by sequence: all up to edge are there, and at most about
	// as many as the window holds.
	ready order.Window[bySequence]
	edge  layout.State
}

// bySequence is a message in the order in which messages were sent.
type bySequence struct{ layout.State }

// Compare orders messages by sequence.
func (m bySequence) Compare(o bySequence) int { return cmp.Compare(m.Sequence, o.Sequence) }

// newSchedule makes the schedule of a queue in whose order so many messages stand, of which
// memory holds at most limit.
func newSchedule(count uint64, limit int) schedule {
	s := schedule{count: count, limit: limit}
	s.ready.Whole = true
	if count == 0 {
		s.known.Whole, s.floor = true, layout.State{Due: math.MaxInt64, Sequence: math.MaxUint64}
	}
	return s
}

// first are the first messages of the order, those in memory that are not sorted. They
// are valid until the next change.
func (s *schedule) first() []layout.State { return s.known.All() }

// sort takes the messages that are due, as far as memory knows them, into the order of
// their sequences, and lists that. It is valid until the next change.
func (s *schedule) sort(now int64) []bySequence {
	for s.ready.Len() < s.limit && s.known.Len() > 0 && s.known.First().Due <= now {
		s.edge = s.known.Pop()
		s.ready.Insert(bySequence{s.edge}, math.MaxInt)
	}
	return s.ready.All()
}

// sorted are the messages that sort has taken. They are valid until the next change.
func (s *schedule) sorted() []bySequence { return s.ready.All() }

// notDue are those of the known messages that are not due.
func (s *schedule) notDue(now int64) []layout.State {
	i, _ := s.known.Find(layout.State{Due: now + 1})
	return s.known.All()[i:]
}

// whole reports that all messages are known.
func (s *schedule) whole() bool { return s.known.Whole }

// unknown reports that none of the messages is known, and there may be some.
func (s *schedule) unknown() bool {
	return s.known.Len() == 0 && s.ready.Len() == 0 && !s.known.Whole
}

// short reports that others than the known messages may be among the first most that
// are due.
func (s *schedule) short(now int64, most int) bool {
	if s.known.Whole || s.known.Len() > 0 && s.known.Last().Due > now {
		return false
	}
	have := s.ready.Len() + s.known.Len()
	return have == 0 || have < most
}

// delayed counts what is not due: the messages of the order to the millisecond while
// all of them are known, else, and in a queue whose groups block, to within a second.
func (s *schedule) delayed(now int64, blocks bool) int64 {
	if s.known.Whole && !blocks {
		return int64(len(s.notDue(now)))
	}
	return s.later.After(now)
}

// delayedOf is how many of so many delayed messages are those of tenants who have
// scheduled messages in the order: by their share where not all are known.
func (s *schedule) delayedOf(now, delayed int64, tenants []layout.Lane, scheduled int64) (n int64) {
	if !s.known.Whole {
		return int64(float64(delayed) * min(float64(scheduled)/float64(max(s.count, 1)), 1))
	}
	for _, m := range s.notDue(now) {
		if slices.Contains(tenants, m.Tenant) {
			n++
		}
	}
	return n
}

// add puts a message into the order.
func (s *schedule) add(b *mutation.Batch, keys *layout.Keys, now int64, m layout.State) {
	s.countLater(b, keys, now, &m)
	if m.Compare(s.edge) <= 0 {
		s.ready.Insert(bySequence{m}, math.MaxInt)
	} else {
		s.known.Insert(m, s.limit)
	}
	if m.Compare(s.floor) < 0 {
		s.floor = m
	}
	s.count++
	layout.PutState(b, keys.Due(m.Due, m.Sequence), &m)
	layout.PutNumber(b, keys.DueOf(m.Sequence), uint64(m.Due))
}

// remove takes a message out of the order.
func (s *schedule) remove(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	if m.Compare(s.edge) <= 0 {
		s.ready.Remove(bySequence{*m})
	} else {
		if s.known.Len() > 0 && m.Compare(*s.known.First()) == 0 {
			s.floor = *m
		}
		s.known.Remove(*m)
	}
	s.count--
	b.SingleDelete(keys.Due(m.Due, m.Sequence))
	b.SingleDelete(keys.DueOf(m.Sequence))
	s.uncountLater(b, keys, now, m)
}

// countLater counts a message that waits for its due time, wherever it stands.
func (s *schedule) countLater(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	m.Flags &^= layout.Later
	if m.Due > now {
		m.Flags |= layout.Later
		s.expect(b, keys, now, m.Due)
	}
}

// uncountLater counts it no longer.
func (s *schedule) uncountLater(b *mutation.Batch, keys *layout.Keys, now int64, m *layout.State) {
	if m.Is(layout.Later) {
		m.Flags &^= layout.Later
		s.later.Add(now, m.Due, -1, seconds(b, keys))
	}
}

// expect counts one more message for which nothing but time has to pass.
func (s *schedule) expect(b *mutation.Batch, keys *layout.Keys, now, due int64) {
	s.later.Add(now, due, 1, seconds(b, keys))
}

// shift makes all that is counted due by seconds later.
func (s *schedule) shift(b *mutation.Batch, keys *layout.Keys, now, by int64) {
	if !s.idle() {
		s.later.Shift(now, by, seconds(b, keys))
	}
}

// forget drops the counts of the seconds that are over.
func (s *schedule) forget(b *mutation.Batch, keys *layout.Keys, now int64) {
	if !s.idle() {
		s.later.Forget(now, seconds(b, keys))
	}
}

// idle reports that no second is counted.
func (s *schedule) idle() bool { return s.later.Empty() }

func seconds(b *mutation.Batch, keys *layout.Keys) calendar.Write {
	return func(second, count int64) { layout.PutCount(b, keys.Bucket(second), count) }
}

// unread is where those messages stand that are not known.
func (s *schedule) unread(keys *layout.Keys) layout.Span {
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

// fill adds the next message, read from Rest in order.
func (s *schedule) fill(m layout.State) { s.known.Append(m) }

// filled ends the reading of messages. With exhausted nothing stands behind the last
// one: ok false says that the count disagreed, and has been set right.
func (s *schedule) filled(exhausted bool) (ok bool) {
	s.known.Whole = exhausted
	have := uint64(s.known.Len() + s.ready.Len())
	if ok = !exhausted || s.count == have; !ok {
		s.count = have
	}
	return ok
}

// fillSecond restores the count of a second.
func (s *schedule) fillSecond(second, count int64) { s.later.Set(second, count) }
