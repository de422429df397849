package queue

import (
	"errors"

	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// recountBytes bounds what is read to count the delayed messages of a FIFO queue anew, in bytes.
const recountBytes = 64 << 20

// recount counts the messages of a FIFO queue that a longer delay hides: also those that were
// visible, and so are not counted by the second any more.
type recount struct {
	now, delay int64
	seconds    map[int64]int64 // how many become visible in each; nil: not read yet
}

// needToConfigure is what must be read before a configuration takes hold.
func (q *Machine) needToConfigure(now int64, cfg Config) Need {
	if !q.kind.FIFO || q.kind.Backlog || q.Empty() || cfg.Delay <= q.cfg.Value().Delay {
		return Need{}
	}
	if q.recount == nil {
		q.recount = &recount{now: now, delay: cfg.Delay.Milliseconds()}
	}
	if q.recount.seconds == nil {
		return Need{kind: needDelays}
	}
	return Need{}
}

// readDelays reads when each message was sent that was never received. In a queue with more than
// recountBytes the rest is left out: the counts are approximate.
func (q *Machine) readDelays(r Reader) error {
	c := q.recount
	received := map[uint64]struct{}{}
	var failed error
	err := r.Scan(q.keys.Of(layout.KindHeld), func(key, value []byte) bool {
		var s layout.State
		if s, failed = layout.DecodeState(key, value); s.Sent+c.delay > c.now {
			received[s.Sequence] = struct{}{}
		}
		return failed == nil
	})
	if err = errors.Join(failed, err); err != nil {
		return err
	}
	c.seconds = map[int64]int64{}
	size := 0
	return r.Scan(q.keys.Of(layout.KindRecord), func(key, value []byte) bool {
		sequence := layout.KeySequence(key)
		_, held := received[sequence]
		if sent, ok := message.RecordSent(value); ok && !held && sent+c.delay > c.now && q.leases.Get(sequence) == nil {
			c.seconds[(sent+c.delay)/1000]++
		}
		size += len(value)
		return size <= recountBytes
	})
}
