package queue

import (
	"errors"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// Bounds of the messages that one step of a recount reads; variables for the tests.
var (
	recountStep  = 1024
	recountBytes = fillBytes
)

// recounting is the second that is counted while a recount is under way: a queue that finds it at a
// start counts anew. It has always passed, so that it counts no message.
const recounting = int64(-1)

// recount counts the delayed messages of a FIFO queue by the second, step by step. A longer delay also
// hides messages that were visible, and so are not counted any more. Until it has ended the former
// counts hold, and those of messages that are sent meanwhile are kept in both.
type recount struct {
	seconds map[int64]int64 // how many become visible in each
	before  uint64          // later sequences are counted as they are sent
	lane    layout.Lane     // of the first message that was not read,
	from    uint64          // and its sequence
	now     int64           // of this step
	looked  bool            // the reads for this step were made
	whole   bool            // all messages were read
}

// beginRecount begins it, anew if it is under way. b is nil if a start finds that it has begun.
func (q *Machine) beginRecount(b *mutation.Batch) {
	q.recount = &recount{seconds: map[int64]int64{}, before: q.next}
	if b != nil {
		layout.PutCount(b, q.keys.Bucket(recounting), 1)
	}
}

// recountOnce makes one step.
func (q *Machine) recountOnce(b *mutation.Batch, now int64) Need {
	c := q.recount
	switch {
	case c == nil:
		return Need{}
	case !c.looked && !q.Empty():
		c.now = now
		return Need{kind: needDelays}
	}
	if c.looked = false; c.whole { // an emptied queue drops it
		q.endRecount(b)
	}
	return Need{}
}

func (q *Machine) endRecount(b *mutation.Batch) {
	q.due.Recount(b, &q.keys, q.recount.seconds)
	layout.PutCount(b, q.keys.Bucket(recounting), 0)
	q.recount = nil
}

// countsNothing reports whether an empty queue still counts seconds: messages that were deleted before they
// became visible, or that a recount has counted.
func (q *Machine) countsNothing() bool {
	return (q.recount != nil || !q.due.Idle()) && q.Empty()
}

func (q *Machine) dropCounts(b *mutation.Batch) {
	q.due.Recount(b, &q.keys, nil)
	if q.recount != nil {
		layout.PutCount(b, q.keys.Bucket(recounting), 0)
		q.recount = nil
	}
}

// readDelays reads when the next messages were sent, and counts those that were never received.
func (q *Machine) readDelays(r Reader) error {
	c, delay := q.recount, q.cfg.Value().Delay.Milliseconds()
	keys := q.keys // a copy: the span of the scan under way may be in the buffer of the machine's
	c.looked, c.whole = true, true
	n, size := 0, 0
	var failed error
	err := r.Scan(q.keys.RecordsFrom(c.lane, c.from), func(key, value []byte) bool {
		if n == recountStep || size > recountBytes {
			c.whole = false
			return false
		}
		n++
		size += len(value)
		lane, sequence := layout.KeyLane(key), layout.KeySequence(key)
		c.lane, c.from = lane, sequence+1
		sent, ok := message.RecordSent(value)
		if !ok || sent+delay <= c.now || sequence >= c.before || q.leases.Get(sequence) != nil {
			return true
		}
		var held bool
		if _, held, failed = r.Get(keys.HeldState(lane, sequence)); failed == nil && !held {
			c.seconds[(sent+delay)/1000]++
		}
		return failed == nil
	})
	return errors.Join(failed, err)
}

// expect counts a message that is sent, until it becomes visible.
func (q *Machine) expect(b *mutation.Batch, now, due int64) {
	q.due.Expect(b, &q.keys, now, due)
	if q.recount != nil {
		q.recount.seconds[due/1000]++
	}
}
