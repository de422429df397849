package queue

import (
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
)

// Lease is a leased message as its consumer gets it; it also identifies the lease.
type Lease struct {
	Sequence uint64
	Moving   bool // being moved to another queue
	Task     bool // by a move task
	Lane     layout.Lane
	Receives uint32 // in this queue, including this one
	Epoch    uint32
	First    int64 // epoch milliseconds of the first receive in this queue
	Sent     int64
}

// leaseOf is an item as the Lease that its consumer gets.
func leaseOf(l *leases.Item) Lease {
	return Lease{
		Sequence: l.Sequence, Moving: l.Is(layout.Moving), Task: l.Is(layout.Task), Lane: l.Lane,
		Receives: l.Receives, Epoch: l.Epoch, First: l.First, Sent: l.Sent,
	}
}

// grant leases a message until due, in epoch milliseconds, on disk and in memory.
func (q *Machine) grant(b *mutation.Batch, now int64, s *leases.Item, due int64) Lease {
	s.Due = due
	q.lookup = nil // it may be of this message, and is stale now
	q.addLease(s, now)
	layout.PutState(b, q.keys.Lease(s.Sequence), &s.State)
	return leaseOf(s)
}

func (q *Machine) addLease(s *leases.Item, now int64) {
	q.leases.Add(s)
	if s.Tenant.Grouped() && !q.kind.FIFO {
		q.grouped().tenants.Leased(s.Tenant, now)
	}
}

// endLease ends a lease. Afterwards the message is in no index, except in a FIFO queue in its
// group.
func (q *Machine) endLease(b *mutation.Batch, now int64, s *leases.Item) {
	q.leases.Remove(s)
	s.Flags &^= layout.Moving | layout.Task
	b.SingleDelete(q.keys.Lease(s.Sequence))
	if q.groups == nil || q.kind.FIFO {
		return
	}
	if busy := max(now-s.Received, 0); s.Tenant.Grouped() {
		q.groups.tenants.Released(s.Tenant, now, busy)
	} else {
		q.groups.tenants.ReleasedAlone(now, busy)
	}
}

// requeue makes a message that is in no index visible again from due on.
func (q *Machine) requeue(b *mutation.Batch, now int64, s *leases.Item, due int64) {
	s.Due = due
	if q.kind.FIFO {
		q.hold(b, now, s)
		return
	}
	q.schedule(b, now, s.State)
}

// maxExpire bounds the leases that one command expires.
const maxExpire = 1000

// expire returns the messages whose leases have run out.
func (q *Machine) expire(b *mutation.Batch, now int64) {
	for range maxExpire {
		s := q.leases.Expired(now)
		if s == nil {
			break
		}
		q.endLease(b, now, s)
		q.requeue(b, now, s, s.Due)
	}
	q.relist(b)
	q.due.Forget(b, &q.keys, now)
}

// returned runs Return: it ends a lease that is still the one of the command.
func (q *Machine) returned(b *mutation.Batch, now int64, c *Return) error {
	s := q.leases.Get(c.Lease.Sequence)
	if s == nil || leaseOf(s) != c.Lease {
		return ErrNotLeased
	}
	if c.Attempt != "" && q.groups != nil && !q.groups.attempts.giveUp(now, c.Attempt, c.Lease) {
		return nil
	}
	if c.Uncounted {
		uncount(s)
	}
	if c.History {
		s.Flags |= layout.History
	}
	q.release(b, now, s, max(c.Due, 0))
	return nil
}

// uncount takes back a receive of a message.
func uncount(s *leases.Item) {
	if s.Receives > 0 {
		s.Receives--
	}
	if s.Receives == 0 {
		s.First = 0
	}
}

// withhold runs Withhold.
func (q *Machine) withhold(b *mutation.Batch, now int64, c *Withhold) error {
	s := q.leases.Get(c.Lease.Sequence)
	if s == nil || leaseOf(s) != c.Lease {
		return ErrNotLeased
	}
	if c.Attempt != "" && q.groups != nil && !q.groups.attempts.giveUp(now, c.Attempt, c.Lease) {
		return nil
	}
	q.endLease(b, now, s)
	uncount(s)
	q.grant(b, now, s, min(s.Due, now+q.cfg.Value().Visibility.Milliseconds()))
	return nil
}

// quarantine leases a message that is leased already as a move task does.
func (q *Machine) quarantine(b *mutation.Batch, now int64, l Lease) error {
	s := q.leases.Get(l.Sequence)
	if s == nil || leaseOf(s) != l {
		return ErrNotLeased
	}
	q.endLease(b, now, s)
	s.Flags |= layout.Moving | layout.Task
	q.grant(b, now, s, layout.Never)
	return nil
}

// rejectMove returns a message that was being moved to the dead-letter queue.
func (q *Machine) rejectMove(b *mutation.Batch, now int64, seq uint64) error {
	s := q.leases.Get(seq)
	if s == nil || !s.Is(layout.Moving) {
		return ErrNotLeased
	}
	s.Flags |= layout.MoveRejected
	q.release(b, now, s, now)
	return nil
}

// release ends a lease, and makes the message visible again from due on.
func (q *Machine) release(b *mutation.Batch, now int64, s *leases.Item, due int64) {
	q.endLease(b, now, s)
	q.requeue(b, now, s, due)
	q.relist(b)
}

// Leased returns the lease of a message, ok false if it is not leased.
func (q *Machine) Leased(seq uint64) (l Lease, ok bool) {
	if s := q.leases.Get(seq); s != nil {
		return leaseOf(s), true
	}
	return Lease{}, false
}

// Leases lists all leases, in order of sequence.
func (q *Machine) Leases() []Lease {
	all := make([]Lease, 0, q.leases.Len())
	for _, s := range q.leases.All() {
		all = append(all, leaseOf(s))
	}
	return all
}

// Moving is the number of messages that are being moved to another queue.
func (q *Machine) Moving() int { return q.leases.Moving() }

// LeasedUntil is when the lease of a message runs out, in epoch milliseconds, and how often
// it was received; ok is false for one that is not leased.
func (q *Machine) LeasedUntil(seq uint64) (due int64, l Lease, ok bool) {
	if s := q.leases.Get(seq); s != nil {
		return s.Due, leaseOf(s), true
	}
	return 0, Lease{}, false
}

// Lowest is a lower bound of the sequences of the messages in the main lane, and one of those in
// the delayed lane.
func (q *Machine) Lowest() (main, late uint64) { return q.firstSequences() }
