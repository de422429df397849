// Package group holds what memory knows of the groups of a queue, and the order in
// which something can be received from them.
package group

import (
	"cmp"
	"slices"

	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/lease"
	"godwit.dev/godwit/internal/queue/order"
)

// Fresh is a message that was never received.
type Fresh struct {
	Sequence uint64
	Sent     int64
}

// Compare orders fresh messages by sequence.
func (f Fresh) Compare(o Fresh) int { return cmp.Compare(f.Sequence, o.Sequence) }

// Knowledge is what memory knows of a group, more with every step.
type Knowledge byte

// The steps.
const (
	Nothing Knowledge = iota
	Start             // where it begins
	Held              // the held messages
	All               // the first fresh messages: none in the window means that there are none
)

// Group is the fresh messages of one lane, in order of sequence, and, where they
// block, those of it that were received and are not gone.
type Group struct {
	Lane  layout.Lane
	Known Knowledge
	Start uint64 // no message of it stands before that; of use until all is known
	Fresh order.Window[Fresh]
	// Held are the messages of a group that blocks which were received: leased
	// or returned, in order of sequence, all before the fresh ones.
	Held []*lease.Lease

	listed  uint64 // the sequence under which it stands in the order; 0: it does not
	listing layout.Listing
	unsaved int // how often it was listed since its record was written
}

// Compare orders listed groups by their first messages.
func (x *Group) Compare(o *Group) int { return cmp.Compare(x.listed, o.listed) }

// Listing is how the group is listed.
func (x *Group) Listing() layout.Listing { return x.listing }

// Leased reports that a message of a group that blocks is in flight.
func (x *Group) Leased() bool {
	return slices.ContainsFunc(x.Held, func(l *lease.Lease) bool { return !l.Is(layout.Returned) })
}

// Empty reports that the group has no message.
func (x *Group) Empty() bool { return len(x.Held) == 0 && x.Fresh.Len() == 0 && x.Fresh.Whole }

// Find finds the place of a message among the held ones.
func (x *Group) Find(seq uint64) (i int, found bool) {
	return slices.BinarySearchFunc(x.Held, seq, func(l *lease.Lease, seq uint64) int { return cmp.Compare(l.Sequence, seq) })
}

// Hold adds a message to the held ones.
func (x *Group) Hold(l *lease.Lease) {
	i, _ := x.Find(l.Sequence)
	x.Held = slices.Insert(x.Held, i, l)
}

// Rest is the sequence from which those messages stand that memory does not know.
func (x *Group) Rest() uint64 {
	switch n := len(x.Held); {
	case x.Fresh.Len() > 0:
		return x.Fresh.Last().Sequence + 1
	case n > 0:
		return x.Held[n-1].Sequence + 1
	}
	return x.Start
}

// head is how a group is to be listed: by its first message; 0 if that is in
// flight, and blocks it, or there is none.
func (x *Group) head() (seq uint64, l layout.Listing) {
	l.Lane = x.Lane
	switch {
	case len(x.Held) > 0 && x.Held[0].Is(layout.Returned):
		seq, l.At, l.Returned = x.Held[0].Sequence, x.Held[0].Due, true
	case len(x.Held) == 0 && x.Fresh.Len() > 0:
		seq, l.At = x.Fresh.First().Sequence, x.Fresh.First().Sent
	}
	return seq, l
}
