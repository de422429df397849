package queue

import (
	"cmp"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/grouping"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// Arrival is a message as it enters a queue.
type Arrival struct {
	Message *message.Message // nil: Record has it
	Record  []byte           // as Message.AppendRecord makes it
	Sent    int64            // as in the record
	Due     int64            // later than now: it is delayed until then; not in FIFO queues
	Lane    layout.Lane      // GroupLane of the message's group
	Moved   bool             // with an age, from another queue; not in FIFO queues
}

// put adds the message's record to b, and returns its size.
func (a *Arrival) put(b *mutation.Batch, key []byte) uint32 {
	if a.Message == nil {
		b.Set(key, a.Record)
		return uint32(len(a.Record))
	}
	return uint32(b.SetEncoded(key, a.Message.Size()+message.RecordHead, a.Message.AppendRecord))
}

// needToAccept is what must be read before a message is added to a group. It needs no Flush:
// memory knows the groups that the command has begun.
func (q *Machine) needToAccept(lane layout.Lane) Need {
	if !lane.Grouped() || q.groups == nil || q.groups.Get(lane) != nil {
		return Need{}
	}
	if _, known := q.groups.Exists(lane); known {
		return Need{}
	}
	return Need{kind: needGroup, lane: lane}
}

// accept adds a message and returns its sequence. needToAccept comes first.
func (q *Machine) accept(b *mutation.Batch, now int64, a *Arrival) uint64 {
	q.wake()
	seq, lane, scheduled := q.next, a.Lane, false
	q.next++
	switch {
	case q.kind.FIFO:
		lane = max(a.Lane, layout.GroupLanes)
		if q.Empty() && !q.kind.Backlog {
			q.counters.HeldAges = 1 // no message of an older version is left
		}
		if due := a.Sent + q.cfg.Value().Delay.Milliseconds(); due > now && !q.kind.Backlog {
			q.expect(b, now, due)
		}
	case a.Moved:
		lane, scheduled = layout.MovedLane, true
	case a.Due > now:
		lane, scheduled = layout.DelayedLane, true
	}
	size := a.put(b, q.keys.Record(lane, seq))
	q.counters.Bytes += uint64(size)
	if q.expires(lane) {
		layout.PutNumber(b, q.keys.Expiry(a.Sent, seq), uint64(lane))
	}
	if scheduled {
		q.schedule(b, now, layout.State{Sequence: seq, Due: max(a.Due, now), Sent: a.Sent, Lane: lane, Tenant: a.Lane, Size: size})
	} else {
		q.join(lane, grouping.Fresh{Sequence: seq, Sent: a.Sent, Size: size})
		q.relist(b)
	}
	if !q.kind.Backlog && q.cfg.Value().Retention > 0 {
		if at := max(a.Sent+q.cfg.Value().Retention.Milliseconds(), 1); q.sweepAt == 0 || at < q.sweepAt {
			q.sweepAt = at
		}
	}
	return seq
}

// expires reports that messages of a lane need an index entry by expiry (KindExpiry): a sweep
// does not find them by walking the lane.
func (q *Machine) expires(lane layout.Lane) bool {
	return lane > layout.DelayedLane && !q.kind.Backlog && !q.heldAges()
}

// heldAges reports that only returned messages are in the index of expiries: those in flight
// are in memory, and those that were never received are found by their group, which is listed
// under the oldest of them.
func (q *Machine) heldAges() bool { return q.kind.FIFO && q.counters.HeldAges != 0 }

// heldExpiry is the key of a returned message in the index of expiries. It is approximate for a
// message whose record is damaged, as its send time may not be known.
func (q *Machine) heldExpiry(s *layout.State) []byte {
	return q.keys.Expiry(cmp.Or(s.Sent, s.Received), s.Sequence)
}

// schedule adds a message to the index of due times.
func (q *Machine) schedule(b *mutation.Batch, now int64, s layout.State) {
	q.due.Add(b, &q.keys, now, s)
	q.wait(s.Tenant, 1, 1)
}

// unschedule removes a message from the index of due times.
func (q *Machine) unschedule(b *mutation.Batch, now int64, s *layout.State) {
	q.due.Remove(b, &q.keys, now, s)
	q.wait(s.Tenant, -1, -1)
}

// erase deletes a message that was removed from the indexes of its state.
func (q *Machine) erase(b *mutation.Batch, s *layout.State) {
	b.SingleDelete(q.keys.Record(s.Lane, s.Sequence))
	if q.expires(s.Lane) {
		b.SingleDelete(q.keys.Expiry(s.Sent, s.Sequence))
	}
	if s.Is(layout.History) {
		b.Delete(q.keys.History(s.Sequence))
	}
	q.counters.Bytes -= min(q.counters.Bytes, uint64(s.Size))
	if q.Empty() { // also where damaged records were counted with a wrong size
		q.counters.Bytes = 0
	}
}
