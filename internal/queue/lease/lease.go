// Package lease keeps the messages of a queue that are in somebody's hands.
package lease

import (
	"cmp"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/sorted"
)

// Lease is a message that is leased, or was and is held by its group.
type Lease struct {
	layout.State
	place int32
}

// Terms are what a consumer is told of a lease, and by which it is known again.
type Terms struct {
	Sequence uint64
	Moving   bool // on its way to another queue
	Task     bool // and a move task carries it
	Lane     layout.Lane
	Receives uint32 // in this queue, including this one
	Epoch    uint32
	First    int64 // epoch milliseconds of the first receive in this queue
	Sent     int64
}

// Terms are those of the lease.
func (l *Lease) Terms() Terms {
	return Terms{
		Sequence: l.Sequence, Moving: l.Is(layout.Moving), Task: l.Is(layout.Task), Lane: l.Lane,
		Receives: l.Receives, Epoch: l.Epoch, First: l.First, Sent: l.Sent,
	}
}

// New makes the lease of a message that nobody has yet.
func New(s layout.State) *Lease { return &Lease{State: s, place: sorted.Outside} }

// Before orders leases by the time at which they run out.
func (l *Lease) Before(o *Lease) bool { return l.Due < o.Due }

// Place is for the heap.
func (l *Lease) Place() *int32 { return &l.place }

// Set is the leases of a queue. The zero value is empty.
type Set struct {
	bySequence map[uint64]*Lease
	expiring   sorted.Heap[*Lease]
	moving     int
}

// Len is how many there are.
func (s *Set) Len() int { return len(s.bySequence) }

// Moving is how many of them are on their way to another queue.
func (s *Set) Moving() int { return s.moving }

// Get finds the lease of a message; nil: it is not leased.
func (s *Set) Get(seq uint64) *Lease { return s.bySequence[seq] }

// All lists them in order of sequence.
func (s *Set) All() []*Lease {
	all := slices.Collect(maps.Values(s.bySequence))
	slices.SortFunc(all, func(a, b *Lease) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}

// Lowest is the lowest sequence of a leased message, but at most one.
func (s *Set) Lowest(most uint64) uint64 {
	for seq := range s.bySequence {
		most = min(most, seq)
	}
	return most
}

// Next is the one that runs out first; nil: none does by itself.
func (s *Set) Next() *Lease {
	if len(s.expiring) == 0 {
		return nil
	}
	return s.expiring[0]
}

// Expired is the one that ran out first; nil: none has.
func (s *Set) Expired(now int64) *Lease {
	if l := s.Next(); l != nil && l.Due <= now {
		return l
	}
	return nil
}

// Add keeps a lease. What matters here does not change until Remove.
func (s *Set) Add(l *Lease) {
	if s.bySequence == nil {
		s.bySequence = map[uint64]*Lease{}
	}
	s.bySequence[l.Sequence] = l
	if l.Due != layout.Never {
		s.expiring.Push(l)
	}
	if l.Is(layout.Moving) {
		s.moving++
	}
}

// Remove ends a lease.
func (s *Set) Remove(l *Lease) {
	s.expiring.Remove(l)
	delete(s.bySequence, l.Sequence)
	if l.Is(layout.Moving) {
		s.moving--
	}
	if len(s.bySequence) == 0 {
		s.bySequence, s.expiring = nil, nil // one that has shrunk keeps its memory
	}
}
