package group

import (
	"maps"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/order"
)

// saveEvery is how often a group that blocks is listed until its record is written
// again. The record says where reading begins, and may lag there: what is before
// the first fresh message is gone or held. A tenant's may be leased or scheduled.
const saveEvery = 32

// Set is the groups of a queue.
type Set struct {
	Listed uint64 // how many can be received from, in memory or not
	// Order is the window on them. A group is listed, under its first message,
	// unless it is empty or blocked.
	Order order.Window[*Group]

	limit  int  // of the window
	blocks bool // a message in flight blocks those behind it
	byLane map[layout.Lane]*Group
	// Groups that are not in memory and not empty: those noted last, and those
	// before them. The store may not show yet what the command under way began.
	there, before map[layout.Lane]struct{}
	touched       []*Group // to be listed anew
}

// NewSet makes the set of a queue of which so many groups are listed, and of whose
// order memory holds at most limit. Those that block are in memory beside it.
func NewSet(blocks bool, listed uint64, limit int) *Set {
	s := &Set{Listed: listed, limit: limit, blocks: blocks, byLane: map[layout.Lane]*Group{}, there: map[layout.Lane]struct{}{}}
	s.Order.Whole = listed == 0
	return s
}

// Get finds a group; nil: it is not in memory.
func (s *Set) Get(lane layout.Lane) *Group { return s.byLane[lane] }

// Make finds a group. One that is not in memory is made, to be read.
func (s *Set) Make(lane layout.Lane) *Group {
	x := s.byLane[lane]
	if x == nil {
		x = &Group{Lane: lane}
		s.byLane[lane] = x
	}
	return x
}

// Begin makes a group that is known to be empty.
func (s *Set) Begin(lane layout.Lane) *Group {
	x := s.Make(lane)
	x.Known, x.Fresh.Whole = All, true
	return x
}

// Lanes lists the groups in memory, in order.
func (s *Set) Lanes() []layout.Lane { return slices.Sorted(maps.Keys(s.byLane)) }

// Leased counts those that have messages in flight, where these block.
func (s *Set) Leased() (n int) {
	for _, x := range s.byLane {
		if x.Leased() {
			n++
		}
	}
	return n
}

// Exists reports whether a group that is not in memory has messages, if known.
func (s *Set) Exists(lane layout.Lane) (exists, known bool) {
	_, there := s.there[lane]
	if !there {
		_, there = s.before[lane]
	}
	return there, there || s.Order.Whole
}

// Note remembers that a group that is not in memory has messages, until so many
// others have been noted as the window holds.
func (s *Set) Note(lane layout.Lane) {
	if len(s.there) >= s.limit {
		s.there, s.before = map[layout.Lane]struct{}{}, s.there
	}
	s.there[lane] = struct{}{}
}

// forgetNote is the end of Note: the group is in memory, or gone.
func (s *Set) forgetNote(lane layout.Lane) {
	delete(s.there, lane)
	delete(s.before, lane)
}

// Touch has a group listed anew at the end of the command.
func (s *Set) Touch(x *Group) { s.touched = append(s.touched, x) }

// Relist brings the order of groups, on disk and in memory, up to what has
// become of those that were touched.
func (s *Set) Relist(b *mutation.Batch, keys *layout.Keys) {
	for _, x := range s.touched {
		if x.Known == All { // else it has only been added to
			s.relist(b, keys, x)
		}
	}
	s.touched = s.touched[:0]
}

func (s *Set) relist(b *mutation.Batch, keys *layout.Keys, x *Group) {
	seq, listing := x.head()
	if seq == x.listed && listing == x.listing && !x.Empty() {
		return
	}
	if x.listed != 0 {
		b.SingleDelete(keys.Listed(x.listed))
		s.Listed--
		s.Order.Remove(x)
	}
	s.byLane[x.Lane] = x // it may have been put out of the window by another
	s.forgetNote(x.Lane)
	x.listed, x.listing = seq, listing
	switch {
	case seq != 0:
		layout.PutListing(b, keys.Listed(seq), listing)
		if !s.blocks || x.unsaved%saveEvery == 0 {
			layout.PutNumber(b, keys.Group(x.Lane), seq)
		}
		x.unsaved++
		s.Listed++
		if left, out := s.Order.Insert(x, s.limit); out {
			s.forget(left)
		}
	case x.Empty():
		b.Delete(keys.Group(x.Lane))
		delete(s.byLane, x.Lane)
	case len(s.byLane) > 2*s.limit: // very many are blocked
		x.Fresh.Trim(1)
	}
}

// forget drops a group from memory, unless it has leases.
func (s *Set) forget(x *Group) {
	if !x.Leased() {
		delete(s.byLane, x.Lane)
		s.Note(x.Lane)
	}
}

// Next is the sequence from which those listings stand that are not in memory.
func (s *Set) Next() uint64 {
	if s.Order.Len() == 0 {
		return 0
	}
	return (*s.Order.Last()).listed + 1
}

// Fill adds the next listing.
func (s *Set) Fill(key, value []byte) error {
	listing, err := layout.DecodeListing(value)
	if err != nil {
		return err
	}
	x := s.Make(listing.Lane)
	x.listed, x.listing = layout.KeySequence(key), listing
	if x.Known == Nothing {
		x.Start, x.Known = x.listed, Start
	}
	if x.Known == Start && !listing.Returned {
		x.Known = Held // there are none: they would come first
	}
	s.Order.Append(x)
	s.forgetNote(x.Lane)
	return nil
}

// Filled ends the reading of a group's first messages.
func (s *Set) Filled(x *Group) {
	if x.listed == 0 { // it was not in memory, where all are that wait to be listed
		x.listed, x.listing = x.head()
	}
	if x.Empty() {
		delete(s.byLane, x.Lane)
	}
}
