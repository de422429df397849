package queue

import (
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/lease"
)

// Lease is a message given to a consumer.
type Lease = lease.Terms

// lease writes and keeps a lease that runs out at due.
func (q *Machine) lease(b *mutation.Batch, now int64, s *lease.Lease, due int64) Lease {
	s.Due = due
	q.filled = nil // of this message it would not be true any more
	q.addLease(s, now)
	layout.PutState(b, q.keys.Lease(s.Sequence), &s.State)
	return s.Terms()
}

func (q *Machine) addLease(s *lease.Lease, now int64) {
	q.leases.Add(s)
	if s.Tenant.Grouped() && !q.kind.FIFO {
		q.grouped().tenants.Took(s.Tenant, now)
	}
}

// unlease ends a lease; the message is in no order afterwards, but in its group
// if that blocks.
func (q *Machine) unlease(b *mutation.Batch, now int64, s *lease.Lease) {
	q.leases.Remove(s)
	s.Flags &^= layout.Moving | layout.Task
	b.SingleDelete(q.keys.Lease(s.Sequence))
	if q.g == nil || q.kind.FIFO {
		return
	}
	if busy := max(now-s.Received, 0); s.Tenant.Grouped() {
		q.g.tenants.Gave(s.Tenant, now, busy)
	} else {
		q.g.tenants.GaveAlone(now, busy)
	}
}

// putBack gives a message back, to be received again once due has come.
func (q *Machine) putBack(b *mutation.Batch, now int64, s *lease.Lease, due int64) {
	s.Due = due
	if q.kind.FIFO {
		q.hold(b, now, s)
		return
	}
	q.schedule(b, now, s.State)
}

// maxExpire bounds the leases that run out in one command.
const maxExpire = 1000

// Expire returns the leases that have run out to the queue. It handles a
// bounded number; NextTimer says whether there are more.
func (q *Machine) Expire(b *mutation.Batch, now int64) {
	for range maxExpire {
		s := q.leases.Expired(now)
		if s == nil {
			break
		}
		q.unlease(b, now, s)
		q.putBack(b, now, s, s.Due)
	}
	q.relist(b)
	q.due.Forget(b, &q.keys, now)
}

// Return gives a leased message back, to be received again at due. With
// uncounted the receive that leased it never was: nobody saw the message.
// With history a history record stands beside it from now on. ErrNotLeased: the
// lease l is over, and the message may be somebody else's.
func (q *Machine) Return(b *mutation.Batch, now int64, l Lease, due int64, uncounted, history bool) error {
	s := q.leases.Get(l.Sequence)
	if s == nil || s.Terms() != l {
		return ErrNotLeased
	}
	if uncounted && s.Receives > 0 {
		s.Receives--
		if s.Receives == 0 {
			s.First = 0
		}
	}
	if history {
		s.Flags |= layout.History
	}
	q.giveBack(b, now, s, max(due, 0))
	return nil
}

// SetAside keeps a leased message from everybody, as if a move task carried it,
// which at the next start it does not. A lease that is over changes nothing.
func (q *Machine) SetAside(b *mutation.Batch, now int64, l Lease) {
	if s := q.leases.Get(l.Sequence); s != nil && s.Terms() == l {
		q.unlease(b, now, s)
		s.Flags |= layout.Moving | layout.Task
		q.lease(b, now, s, layout.Never)
	}
}

// Stay gives back a message that the dead-letter queue would not have: it is
// delivered here once more.
func (q *Machine) Stay(b *mutation.Batch, now int64, seq uint64) error {
	s := q.leases.Get(seq)
	if s == nil || !s.Is(layout.Moving) {
		return ErrNotLeased
	}
	s.Flags |= layout.Stay
	q.giveBack(b, now, s, now)
	return nil
}

func (q *Machine) giveBack(b *mutation.Batch, now int64, s *lease.Lease, due int64) {
	q.unlease(b, now, s)
	q.putBack(b, now, s, due)
	q.relist(b)
}

// Leased returns the lease of a message, ok false if it is not leased.
func (q *Machine) Leased(seq uint64) (l Lease, ok bool) {
	if s := q.leases.Get(seq); s != nil {
		return s.Terms(), true
	}
	return Lease{}, false
}

// NoneLeased reports that no message is leased.
func (q *Machine) NoneLeased() bool { return q.leases.Len() == 0 }

// Leases lists all leases, in order of sequence.
func (q *Machine) Leases() []Lease {
	all := make([]Lease, 0, q.leases.Len())
	for _, s := range q.leases.All() {
		all = append(all, s.Terms())
	}
	return all
}

// Moving is the number of messages on their way to another queue.
func (q *Machine) Moving() int { return q.leases.Moving() }
