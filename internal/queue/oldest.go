package queue

import (
	"errors"
	"slices"

	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
	"godwit.dev/godwit/internal/queue/message"
)

// poisonPillReceives is how often a message of a standard queue is received, and not
// deleted, until its age does not count any more: it is a poison pill then. Source: "Available CloudWatch
// metrics for Amazon SQS" in the SQS developer guide.
const poisonPillReceives = 3

// oldestSteps bounds the messages of each order that one search looks at. Where none
// of these counts, it finds the oldest of those that memory knows.
const oldestSteps = 128

// ages is what the searches for a queue's oldest message have found.
type ages struct {
	from cursors

	// The latest answer, of how many messages up to which sequence. As long as these
	// are the same, and none has been received or is delayed, it is the next one.
	oldest   int64 // epoch milliseconds; 0: none
	messages int64
	next     uint64
}

// cursors are how far the searches have come: all that stands before them is gone or
// a poison pill, which it stays. So each such message is passed once, and not by each search.
type cursors struct {
	main, delayed, moved uint64 // sequences, in each lane
	groupSent            int64  // of those with a group, in the order of their ages
	groupSequence        uint64
}

// search is one under way.
type search struct {
	without []layout.Lane
	oldest  int64
	beyond  bool // some order has more than one search looks at
}

func (s *search) note(at int64) {
	if s.oldest == 0 || at < s.oldest {
		s.oldest = at
	}
}

// findOldest finds when the oldest message was sent, or moved here; 0: none counts.
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

// oldestKnown is when the oldest message was sent that waits in memory and counts; 0:
// there is none.
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
	if q.g != nil && !q.kind.FIFO {
		for _, x := range q.g.Order.All() {
			if !slices.Contains(without, x.Lane) {
				s.note(x.Listing.At)
				break // those behind were sent later
			}
		}
	}
	return s.oldest
}

// searchOldest continues from where the search before this one has come.
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

// searchOrdered is searchOldest for a FIFO queue, of which all messages count.
func (q *Machine) searchOrdered(r Reader) error {
	s := q.search
	err := r.Scan(q.keys.Of(layout.KindExpiry), func(key, _ []byte) bool {
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

// searchLane looks for the oldest message of a lane that counts, from a sequence on,
// which it puts behind those that never will.
func (q *Machine) searchLane(r Reader, lane layout.Lane, from *uint64) error {
	steps, passing, found := 0, true, false
	span := q.keys.Lane(lane, *from)
	*from = q.next // what was deleted is not passed again
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

// arrivedAt is when a message came into the queue, and whether it counts. A record that
// cannot be read does not.
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

// searchGroups looks for the oldest message in the lanes of groups.
func (q *Machine) searchGroups(r Reader, c *cursors) error {
	if q.g == nil {
		return nil
	}
	steps, passing, found := 0, true, false
	var failed error
	err := r.Scan(q.keys.ExpiryFrom(c.groupSent, c.groupSequence), func(key, value []byte) bool {
		if steps++; steps > oldestSteps {
			return false
		}
		lane, at, seq := layout.Lane(layout.Number(value)), layout.KeyTime(key), layout.KeySequence(key)
		bad := !lane.Grouped() // its own lane is searched for it
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

// poisonPill reports that a message has been received too often for its age to count.
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
