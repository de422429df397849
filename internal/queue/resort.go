package queue

import (
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
)

// resort converts the index of groups that an older version left of a FIFO queue: it listed
// all groups by the sequences of their first messages. It runs before the first command, step
// by step, and continues after a crash.
type resort struct {
	from  uint64 // sequence of the first listing that was not read
	found []listed
	whole bool // all were read
}

// listed is an entry of the index, by the sequence of a group's first message.
type listed struct {
	sequence uint64
	layout.Listing
}

// resortStep is how many groups one step reads; a variable for the tests.
var resortStep = 1024

// Stale reports that the index is that of an older version. The first command converts it, in
// commits of a bounded size if its Reader can Flush.
func (q *Machine) Stale() bool { return q.stale != nil }

// readListed reads the next listings of groups whose first message was returned.
func (q *Machine) readListed(r Reader) error {
	s, looked := q.stale, 0
	s.whole = true
	var failed error
	err := r.Scan(q.keys.ListedFrom(s.from), func(key, value []byte) bool {
		if looked++; looked > resortStep {
			s.whole = false
			return false
		}
		s.from = layout.KeySequence(key) + 1
		l, err := layout.DecodeListing(value)
		if failed = err; err == nil && l.Returned {
			s.found = append(s.found, listed{s.from - 1, l})
		}
		return err == nil
	})
	if failed != nil {
		return failed
	}
	return err
}

// resorted moves the listings that were read, and returns what must be read next.
func (q *Machine) resorted(b *mutation.Batch) Need {
	s, g := q.stale, q.grouped()
	for _, l := range s.found {
		b.SingleDelete(q.keys.Listed(l.sequence))
		layout.PutReturned(b, q.keys.Returned(l.At, l.sequence), l.Lane, l.sequence)
		g.Listed--
		g.Returned++
		g.Back.Whole = false
	}
	s.found = s.found[:0]
	if !s.whole {
		return Need{kind: needListed}
	}
	q.stale = nil
	q.counters.Turn = q.next // above the sequences that serve as turns of the messages received before
	g.Order.Whole = g.Order.Whole || g.Listed == 0
	return Need{}
}
