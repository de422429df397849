package queue

import (
	"errors"
	"slices"

	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
	"godwit.dev/godwit/internal/queue/message"
)

// poisonPillReceives is after how many receives a message of a standard queue is a poison
// pill: its age does not count any more. Source: "Available CloudWatch metrics for Amazon
// SQS" in the SQS developer guide.
const poisonPillReceives = 3

// oldestSteps bounds the messages of each lane that one search reads. If all of them are
// poison pills, the search falls back to the messages in memory.
const oldestSteps = 128

// ages caches the results of the searches for a queue's oldest message.
type ages struct {
	from cursors

	// The latest result, and the length and next sequence of the queue then. It stays
	// valid while both are unchanged, and no message is leased or scheduled.
	oldest   int64 // epoch milliseconds; 0: none
	messages int64
	next     uint64
}

// cursors are where the next search begins in each lane. All messages before them are deleted
// or poison pills, which they stay, so no search has to pass them again.
type cursors struct {
	main, delayed, moved uint64 // sequences, in each lane
	groupSent            int64  // of messages with a group, in the index of expiries
	groupSequence        uint64
}

// search is a search for the oldest message under way.
type search struct {
	without []layout.Lane
	oldest  int64
	beyond  bool // oldestSteps ended the search of a lane
}

func (s *search) note(at int64) {
	if s.oldest == 0 || at < s.oldest {
		s.oldest = at
	}
}

// findOldest finds when the oldest message that counts was sent, or moved here; 0: there is
// none. Messages of the tenants in without do not count.
func (q *Machine) findOldest(now int64, without []layout.Lane) (sent int64, need Need) {
	if q.Empty() {
		return 0, Need{}
	}
	untouched := without == nil && q.due.Count == 0 && q.leases.Len() == 0
	s := q.search
	switch {
	case s == nil && untouched && q.ages != nil && q.ages.next == q.next && q.ages.messages == q.Len():
		return q.ages.oldest, Need{}
	case s == nil:
		q.search = &search{without: without}
		return 0, Need{kind: needOldest}
	case s.beyond:
		if need := q.needToReceive(now, 1); !need.Nothing() {
			return 0, need
		}
		if at := q.oldestKnown(without); at != 0 {
			s.note(at)
		}
	}
	q.search = nil
	if untouched {
		if q.ages == nil {
			q.ages = &ages{}
		}
		q.ages.oldest, q.ages.messages, q.ages.next = s.oldest, q.Len(), q.next
	}
	return s.oldest, Need{}
}

// oldestKnown is when the oldest waiting message in memory that counts was sent; 0: there
// is none.
func (q *Machine) oldestKnown(without []layout.Lane) int64 {
	var s search
	if q.main.Fresh.Len() > 0 {
		s.note(q.main.Fresh.First().Sent)
	}
	for _, m := range q.due.First() {
		if m.Receives < poisonPillReceives && !slices.Contains(without, m.Tenant) {
			s.note(m.Sent)
		}
	}
	for _, m := range q.due.Sorted() {
		if m.Receives < poisonPillReceives && !slices.Contains(without, m.Tenant) {
			s.note(m.Sent)
		}
	}
	if q.groups != nil && !q.kind.FIFO {
		for _, x := range q.groups.Order.All() {
			if !slices.Contains(without, x.Lane) {
				s.note(x.Listing.At)
				break // the order is by send time
			}
		}
	}
	return s.oldest
}

// searchOldest searches each lane from its cursor on.
func (q *Machine) searchOldest(r Reader) error {
	if q.kind.FIFO {
		return q.searchOrdered(r)
	}
	var c cursors
	if q.ages != nil {
		c = q.ages.from
	}
	mainLow, delayedLow := q.firstSequences()
	c.main, c.delayed = max(c.main, mainLow), max(c.delayed, delayedLow)
	err := errors.Join(
		q.searchLane(r, layout.MainLane, &c.main),
		q.searchLane(r, layout.DelayedLane, &c.delayed),
		q.searchLane(r, layout.MovedLane, &c.moved),
		q.searchGroups(r, &c),
	)
	if q.ages == nil {
		q.ages = &ages{}
	}
	q.ages.from = c
	return err
}

// searchOrdered is searchOldest for a FIFO queue, which has no poison pills: all messages
// count. The oldest is the first of the index of expiries, in flight, or the first listed.
func (q *Machine) searchOrdered(r Reader) error {
	s := q.search
	err := r.Scan(q.keys.Of(layout.TagExpiry), func(key, _ []byte) bool {
		s.note(layout.KeyTime(key))
		return false
	})
	if err != nil || !q.heldAges() {
		return err
	}
	q.leases.Each(func(l *leases.Item) {
		if l.Sent != 0 {
			s.note(l.Sent)
		}
	})
	var failed error
	err = r.Scan(q.keys.ListedFrom(0), func(_, value []byte) bool {
		l, err := layout.DecodeListing(value)
		if failed = err; err == nil && l.At != 0 {
			s.note(l.At)
		}
		return false
	})
	return errors.Join(err, failed)
}

// searchLane searches a lane for the oldest message that counts, from a sequence on. It moves
// from past the leading poison pills.
func (q *Machine) searchLane(r Reader, lane layout.Lane, from *uint64) error {
	steps, passing, found := 0, true, false
	span := q.keys.Lane(lane, *from)
	*from = q.next // if the lane is empty, the next search skips its tombstones
	var failed error
	err := r.Scan(span, func(key, value []byte) bool {
		if steps++; steps > oldestSteps {
			return false
		}
		seq := layout.KeySequence(key)
		if steps == 1 {
			*from = seq
		}
		bad, err := q.poisonPill(r, seq)
		if failed = err; err != nil {
			return false
		}
		if passing {
			*from = seq
		}
		if passing = passing && bad; passing {
			*from = seq + 1
		}
		if bad {
			return true
		}
		at, counts := q.search.arrivedAt(lane, value)
		if counts {
			q.search.note(at)
			found = true
		}
		return !found
	})
	q.search.beyond = q.search.beyond || steps > oldestSteps && !found
	return errors.Join(err, failed)
}

// arrivedAt is when a message was sent, or moved here, and whether it counts: one with an
// unreadable record does not.
func (s *search) arrivedAt(lane layout.Lane, record []byte) (at int64, counts bool) {
	if lane == layout.MainLane { // without a group, and not moved
		return message.RecordSent(record)
	}
	m, err := message.DecodeRecord(record)
	if err != nil {
		return 0, false
	}
	if at = m.Sent; m.Moved != 0 {
		at = m.Moved
	}
	return at, !slices.Contains(s.without, layout.GroupLane(m.Group))
}

// searchGroups searches the lanes of groups, by the index of expiries.
func (q *Machine) searchGroups(r Reader, c *cursors) error {
	if q.groups == nil {
		return nil
	}
	steps, passing, found := 0, true, false
	var failed error
	err := r.Scan(q.keys.ExpiryFrom(c.groupSent, c.groupSequence), func(key, value []byte) bool {
		if steps++; steps > oldestSteps {
			return false
		}
		lane, at, seq := layout.Lane(layout.Number(value)), layout.KeyTime(key), layout.KeySequence(key)
		bad := !lane.Grouped() // searchLane finds it
		if !bad {
			if bad, failed = q.poisonPill(r, seq); failed != nil {
				return false
			}
		}
		if passing = passing && bad; passing {
			c.groupSent, c.groupSequence = at, seq+1
		}
		if found = !bad && !slices.Contains(q.search.without, lane); found {
			q.search.note(at)
		}
		return !found
	})
	q.search.beyond = q.search.beyond || steps > oldestSteps && !found
	return errors.Join(err, failed)
}

// poisonPill reports that a message was received so often that its age does not count.
func (q *Machine) poisonPill(r Reader, seq uint64) (bool, error) {
	if l := q.leases.Get(seq); l != nil {
		return l.Receives >= poisonPillReceives, nil
	}
	if q.due.Count == 0 {
		return false, nil
	}
	due, ok, err := r.Get(q.keys.DueOf(seq))
	if err != nil || !ok {
		return false, err
	}
	at := int64(layout.Number(due))
	value, ok, err := r.Get(q.keys.Due(at, seq))
	if err != nil || !ok {
		return false, err
	}
	state, err := layout.DecodeState(q.keys.Due(at, seq), value)
	return state.Receives >= poisonPillReceives, err
}
