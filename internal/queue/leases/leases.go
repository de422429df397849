// Package leases keeps the messages of a queue that are leased, by their sequences and in
// the order in which the leases run out.
package leases

import (
	"cmp"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/sorted"
)

// Item is a message with its state: leased, held by its group, or between two indexes.
type Item struct {
	layout.State
	place int32
}

// NewItem makes an item that is in no index.
func NewItem(s layout.State) *Item { return &Item{State: s, place: sorted.Outside} }

// Before orders leased messages by the time at which they run out.
func (l *Item) Before(o *Item) bool { return l.Due < o.Due }

// Place is for the heap.
func (l *Item) Place() *int32 { return &l.place }

// Set is the leases of a queue. The zero value is empty.
type Set struct {
	bySequence map[uint64]*Item
	expiring   sorted.Heap[*Item]
	moving     int
}

// Len is how many there are.
func (s *Set) Len() int { return len(s.bySequence) }

// Moving is how many of them are being moved to another queue.
func (s *Set) Moving() int { return s.moving }

// Get finds the lease of a message; nil: it is not leased.
func (s *Set) Get(seq uint64) *Item { return s.bySequence[seq] }

// All lists them in order of sequence.
func (s *Set) All() []*Item {
	all := slices.Collect(maps.Values(s.bySequence))
	slices.SortFunc(all, func(a, b *Item) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return all
}

// Each calls f for each of them, in no order.
func (s *Set) Each(f func(*Item)) {
	for _, l := range s.bySequence {
		f(l)
	}
}

// Lowest is the lowest sequence of a leased message, or limit if that is lower.
func (s *Set) Lowest(limit uint64) uint64 {
	for seq := range s.bySequence {
		limit = min(limit, seq)
	}
	return limit
}

// Next is the lease that expires first; nil: none expires.
func (s *Set) Next() *Item {
	if len(s.expiring) == 0 {
		return nil
	}
	return s.expiring[0]
}

// Expired is the lease that expired first, by now, in epoch milliseconds; nil: none has.
func (s *Set) Expired(now int64) *Item {
	if l := s.Next(); l != nil && l.Due <= now {
		return l
	}
	return nil
}

// Add adds a lease. Its Due and Moving must not change until Remove.
func (s *Set) Add(l *Item) {
	if s.bySequence == nil {
		s.bySequence = map[uint64]*Item{}
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
func (s *Set) Remove(l *Item) {
	s.expiring.Remove(l)
	delete(s.bySequence, l.Sequence)
	if l.Is(layout.Moving) {
		s.moving--
	}
	if len(s.bySequence) == 0 {
		s.bySequence, s.expiring = nil, nil // one that has shrunk keeps its memory
	}
}
