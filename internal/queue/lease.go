package queue

import (
	"cmp"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/sorted"
)

// item is a message with its state: leased, or held by its group, or on its way from
// one order to another.
type item struct {
	layout.State
	place int32
}

// Lease is a message given to a consumer: what that is told, and by which the lease is
// known again.
type Lease struct {
	Sequence uint64
	Moving   bool // on its way to another queue
	Task     bool // and a move task carries it
	Lane     layout.Lane
	Receives uint32 // in this queue, including this one
	Epoch    uint32
	First    int64 // epoch milliseconds of the first receive in this queue
	Sent     int64
}

// lease is what a consumer is told of the item's lease.
func (l *item) lease() Lease {
	return Lease{
		Sequence: l.Sequence, Moving: l.Is(layout.Moving), Task: l.Is(layout.Task), Lane: l.Lane,
		Receives: l.Receives, Epoch: l.Epoch, First: l.First, Sent: l.Sent,
	}
}

func newItem(s layout.State) *item { return &item{State: s, place: sorted.Outside} }

// Before orders leased messages by the time at which they run out.
func (l *item) Before(o *item) bool { return l.Due < o.Due }

// Place is for the heap.
func (l *item) Place() *int32 { return &l.place }

// leaseSet is the leases of a queue. The zero value is empty.
type leaseSet struct {
	bySequence map[uint64]*item
	expiring   sorted.Heap[*item]
	moving     int
}

// len is how many there are.
func (s *leaseSet) len() int { return len(s.bySequence) }

// movingCount is how many of them are on their way to another queue.
func (s *leaseSet) movingCount() int { return s.moving }

// get finds the lease of a message; nil: it is not leased.
func (s *leaseSet) get(seq uint64) *item { return s.bySequence[seq] }

// all lists them in order of sequence.
func (s *leaseSet) all() []*item {
	all := slices.Collect(maps.Values(s.bySequence))
	slices.SortFunc(all, func(a, b *item) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}

// lowest is the lowest sequence of a leased message, but at most one.
func (s *leaseSet) lowest(most uint64) uint64 {
	for seq := range s.bySequence {
		most = min(most, seq)
	}
	return most
}

// next is the one that runs out first; nil: none does by itself.
func (s *leaseSet) next() *item {
	if len(s.expiring) == 0 {
		return nil
	}
	return s.expiring[0]
}

// expired is the one that ran out first; nil: none has.
func (s *leaseSet) expired(now int64) *item {
	if l := s.next(); l != nil && l.Due <= now {
		return l
	}
	return nil
}

// add keeps a lease. What matters here does not change until remove.
func (s *leaseSet) add(l *item) {
	if s.bySequence == nil {
		s.bySequence = map[uint64]*item{}
	}
	s.bySequence[l.Sequence] = l
	if l.Due != layout.Never {
		s.expiring.Push(l)
	}
	if l.Is(layout.Moving) {
		s.moving++
	}
}

// remove ends a lease.
func (s *leaseSet) remove(l *item) {
	s.expiring.Remove(l)
	delete(s.bySequence, l.Sequence)
	if l.Is(layout.Moving) {
		s.moving--
	}
	if len(s.bySequence) == 0 {
		s.bySequence, s.expiring = nil, nil // one that has shrunk keeps its memory
	}
}

// grant writes and keeps a lease that runs out at due.
func (q *Machine) grant(b *mutation.Batch, now int64, s *item, due int64) Lease {
	s.Due = due
	q.lookup = nil // of this message it would not be true any more
	q.addLease(s, now)
	layout.PutState(b, q.keys.Lease(s.Sequence), &s.State)
	return s.lease()
}

func (q *Machine) addLease(s *item, now int64) {
	q.leases.add(s)
	if s.Tenant.Grouped() && !q.kind.FIFO {
		q.grouped().tenants.Leased(s.Tenant, now)
	}
}

// endLease ends a lease; the message is in no order afterwards, but in its group
// if that blocks.
func (q *Machine) endLease(b *mutation.Batch, now int64, s *item) {
	q.leases.remove(s)
	s.Flags &^= layout.Moving | layout.Task
	b.SingleDelete(q.keys.Lease(s.Sequence))
	if q.g == nil || q.kind.FIFO {
		return
	}
	if busy := max(now-s.Received, 0); s.Tenant.Grouped() {
		q.g.tenants.Released(s.Tenant, now, busy)
	} else {
		q.g.tenants.ReleasedAlone(now, busy)
	}
}

// requeue puts a message back, to be received again once due has come.
func (q *Machine) requeue(b *mutation.Batch, now int64, s *item, due int64) {
	s.Due = due
	if q.kind.FIFO {
		q.hold(b, now, s)
		return
	}
	q.schedule(b, now, s.State)
}

// maxExpire bounds the leases that run out in one command.
const maxExpire = 1000

// expire returns the leases that have run out to the queue.
func (q *Machine) expire(b *mutation.Batch, now int64) {
	for range maxExpire {
		s := q.leases.expired(now)
		if s == nil {
			break
		}
		q.endLease(b, now, s)
		q.requeue(b, now, s, s.Due)
	}
	q.relist(b)
	q.due.forget(b, &q.keys, now)
}

// returned runs Return: it ends a lease that is still the one of the command.
func (q *Machine) returned(b *mutation.Batch, now int64, c *Return) error {
	s := q.leases.get(c.Lease.Sequence)
	if s == nil || s.lease() != c.Lease {
		return ErrNotLeased
	}
	if c.Uncounted && s.Receives > 0 {
		s.Receives--
		if s.Receives == 0 {
			s.First = 0
		}
	}
	if c.History {
		s.Flags |= layout.History
	}
	q.release(b, now, s, max(c.Due, 0))
	return nil
}

// quarantine leases a message that is leased already as a move task does.
func (q *Machine) quarantine(b *mutation.Batch, now int64, l Lease) error {
	s := q.leases.get(l.Sequence)
	if s == nil || s.lease() != l {
		return ErrNotLeased
	}
	q.endLease(b, now, s)
	s.Flags |= layout.Moving | layout.Task
	q.grant(b, now, s, layout.Never)
	return nil
}

// rejectMove gives back a message on its way to the dead-letter queue.
func (q *Machine) rejectMove(b *mutation.Batch, now int64, seq uint64) error {
	s := q.leases.get(seq)
	if s == nil || !s.Is(layout.Moving) {
		return ErrNotLeased
	}
	s.Flags |= layout.MoveRejected
	q.release(b, now, s, now)
	return nil
}

// release ends a lease: the message can be received again once due has come.
func (q *Machine) release(b *mutation.Batch, now int64, s *item, due int64) {
	q.endLease(b, now, s)
	q.requeue(b, now, s, due)
	q.relist(b)
}

// Leased returns the lease of a message, ok false if it is not leased.
func (q *Machine) Leased(seq uint64) (l Lease, ok bool) {
	if s := q.leases.get(seq); s != nil {
		return s.lease(), true
	}
	return Lease{}, false
}

// Leases lists all leases, in order of sequence.
func (q *Machine) Leases() []Lease {
	all := make([]Lease, 0, q.leases.len())
	for _, s := range q.leases.all() {
		all = append(all, s.lease())
	}
	return all
}

// Moving is the number of messages on their way to another queue.
func (q *Machine) Moving() int { return q.leases.movingCount() }
