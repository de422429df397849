// Package grouping keeps the groups of a queue: which messages each has, and the order in
// which something can be received from them.
package grouping

import (
	"cmp"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
	"godwit.dev/godwit/internal/queue/order"
)

// Fresh is one that was never received.
type Fresh struct {
	Sequence uint64
	Sent     int64
	Size     uint32 // of its record, in bytes
}

// Compare orders fresh messages by sequence.
func (f Fresh) Compare(o Fresh) int { return cmp.Compare(f.Sequence, o.Sequence) }

// Knowledge is what memory knows of a Group, more with every step.
type Knowledge byte

// What memory can know of a group.
const (
	KnowsNothing Knowledge = iota
	KnowsStart             // where it begins
	KnowsHeld              // the held messages
	KnowsAll               // the first fresh messages: none in the window means that there are none
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
	Held []*leases.Item

	listed  rank // where it stands among the listed ones; zero: it does not
	Listing layout.Listing
	unsaved int // how often it was listed since its record was written
}

// rank is where a group is listed: by the sequence of its first message or, in a queue
// that has those apart whose first messages came back, by when that did.
type rank struct {
	back  bool
	at    int64
	order uint64 // a sequence; with back, a turn
}

// Compare orders the groups that are listed together.
func (x *Group) Compare(o *Group) int {
	return cmp.Or(cmp.Compare(x.listed.at, o.listed.at), cmp.Compare(x.listed.order, o.listed.order))
}

// leased reports that a message of a group that blocks is in flight.
func (x *Group) leased() bool {
	return slices.ContainsFunc(x.Held, func(l *leases.Item) bool { return !l.Is(layout.Returned) })
}

// empty reports that the group has no message.
func (x *Group) empty() bool { return len(x.Held) == 0 && x.Fresh.Len() == 0 && x.Fresh.Whole }

// Find finds the place of a message among the held ones.
func (x *Group) Find(seq uint64) (i int, found bool) {
	return slices.BinarySearchFunc(x.Held, seq, func(l *leases.Item, seq uint64) int { return cmp.Compare(l.Sequence, seq) })
}

// Hold adds a message to the held ones.
func (x *Group) Hold(l *leases.Item) {
	i, _ := x.Find(l.Sequence)
	x.Held = slices.Insert(x.Held, i, l)
}

// Unread is the sequence from which those messages stand that memory does not know.
func (x *Group) Unread() uint64 {
	switch n := len(x.Held); {
	case x.Fresh.Len() > 0:
		return x.Fresh.Last().Sequence + 1
	case n > 0:
		return x.Held[n-1].Sequence + 1
	}
	return x.Start
}

// LastSent is when the last message was sent that memory knows; 0: it knows none.
func (x *Group) LastSent() int64 {
	switch n := len(x.Held); {
	case x.Fresh.Len() > 0:
		return x.Fresh.Last().Sent
	case n > 0:
		return x.Held[n-1].Sent
	case x.Listing.Returned:
		return 0
	}
	return x.Listing.At
}

// head is the sequence of the first message of a Group, by which it is to be listed; 0
// if that is in flight, and blocks it, or there is none.
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

// place is where a group with that head is to be listed.
func (s *Set) place(x *Group, seq uint64, l layout.Listing) rank {
	if s.apart && l.Returned {
		return rank{back: true, at: l.At, order: x.Held[0].Turn}
	}
	return rank{order: seq}
}

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

	// apart: those whose first messages came back are so many more, in an order by
	// when these did.
	apart    bool
	Returned uint64
	Back     order.Window[*Group]

	limit  int  // of each window
	blocks bool // a message in flight blocks those behind it
	byLane map[layout.Lane]*Group
	// Groups that are not in memory and not empty: those noted last, and those
	// before them. The store may not show yet what the command under way began.
	there, before map[layout.Lane]struct{}
	touched       []*Group // to be listed again
}

// New makes the set of a queue of which so many groups are listed, in the one
// order and the other, and of each of which memory holds at most limit. Those that block
// are in memory beside it. blocks: a message in flight blocks those behind it; apart:
// groups whose first messages came back are in an order of their own.
func New(blocks, apart bool, listed, returned uint64, limit int) *Set {
	s := &Set{
		Listed: listed, Returned: returned, limit: limit, blocks: blocks, apart: apart,
		byLane: map[layout.Lane]*Group{}, there: map[layout.Lane]struct{}{},
	}
	s.Order.Whole, s.Back.Whole = listed == 0, returned == 0
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
	x.Known, x.Fresh.Whole = KnowsAll, true
	return x
}

// Lanes lists the groups in memory, in order.
func (s *Set) Lanes() []layout.Lane { return slices.Sorted(maps.Keys(s.byLane)) }

// Blocked counts those that have messages in flight, where these block.
func (s *Set) Blocked() (n int) {
	for _, x := range s.byLane {
		if x.leased() {
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
	return there, there || s.Order.Whole && s.Back.Whole
}

// Note remembers that a group that is not in memory has messages, until so many
// others have been noted as the window holds.
func (s *Set) Note(lane layout.Lane) {
	if len(s.there) >= s.limit {
		s.there, s.before = map[layout.Lane]struct{}{}, s.there
	}
	s.there[lane] = struct{}{}
}

// forgetNote is the end of note: the group is in memory, or gone.
func (s *Set) forgetNote(lane layout.Lane) {
	delete(s.there, lane)
	delete(s.before, lane)
}

// Touch has a group listed again at the end of the command.
func (s *Set) Touch(x *Group) { s.touched = append(s.touched, x) }

// RelistTouched brings the order of groups, on disk and in memory, up to what has
// become of those that were touched.
func (s *Set) RelistTouched(b *mutation.Batch, keys *layout.Keys) {
	for _, x := range s.touched {
		if x.Known == KnowsAll { // else it has only been added to
			s.relist(b, keys, x)
		}
	}
	s.touched = s.touched[:0]
}

func (s *Set) relist(b *mutation.Batch, keys *layout.Keys, x *Group) {
	seq, listing := x.head()
	to := rank{}
	if seq != 0 {
		to = s.place(x, seq, listing)
	}
	if to == x.listed && listing == x.Listing && !x.empty() {
		return
	}
	if x.listed != (rank{}) {
		s.unlist(b, keys, x)
	}
	s.byLane[x.Lane] = x // it may have been put out of the window by another
	s.forgetNote(x.Lane)
	x.listed, x.Listing = to, listing
	switch {
	case seq != 0:
		if !s.blocks || x.unsaved%saveEvery == 0 {
			layout.PutNumber(b, keys.Group(x.Lane), seq)
		}
		x.unsaved++
		s.list(b, keys, x, seq)
	case x.empty():
		b.Delete(keys.Group(x.Lane))
		delete(s.byLane, x.Lane)
	case len(s.byLane) > 2*s.limit: // very many are blocked
		x.Fresh.Trim(1)
	}
}

// list adds a group to the order in which it belongs.
func (s *Set) list(b *mutation.Batch, keys *layout.Keys, x *Group, seq uint64) {
	window := &s.Order
	if x.listed.back {
		layout.PutReturned(b, keys.Returned(x.listed.at, x.listed.order), x.Lane, seq)
		s.Returned++
		window = &s.Back
	} else {
		layout.PutListing(b, keys.Listed(seq), x.Listing)
		s.Listed++
	}
	if left, out := window.Insert(x, s.limit); out {
		s.forget(left)
	}
}

// unlist is the end of list.
func (s *Set) unlist(b *mutation.Batch, keys *layout.Keys, x *Group) {
	if x.listed.back {
		b.SingleDelete(keys.Returned(x.listed.at, x.listed.order))
		s.Returned--
		s.Back.Remove(x)
		return
	}
	b.SingleDelete(keys.Listed(x.listed.order))
	s.Listed--
	s.Order.Remove(x)
}

// forget drops a group from memory, unless it has leases.
func (s *Set) forget(x *Group) {
	if !x.leased() {
		delete(s.byLane, x.Lane)
		s.Note(x.Lane)
	}
}

// Next is the sequence from which those listings stand that are not in memory.
func (s *Set) Next() uint64 {
	if s.Order.Len() == 0 {
		return 0
	}
	return (*s.Order.Last()).listed.order + 1
}

// UnreadBack is where those listings stand of groups whose first messages came back that
// are not in memory.
func (s *Set) UnreadBack(keys *layout.Keys) layout.Span {
	if s.Back.Len() == 0 {
		return keys.ReturnedFrom(0, 0)
	}
	last := (*s.Back.Last()).listed
	return keys.ReturnedFrom(last.at, last.order+1)
}

// FillBack adds the next of them.
func (s *Set) FillBack(key, value []byte) error {
	lane, seq, err := layout.DecodeReturned(value)
	if err != nil {
		return err
	}
	x := s.Make(lane)
	x.listed = rank{back: true, at: layout.KeyTime(key), order: layout.KeySequence(key)}
	x.Listing = layout.Listing{Lane: lane, At: x.listed.at, Returned: true}
	if x.Known == KnowsNothing {
		x.Start, x.Known = seq, KnowsStart
	}
	s.Back.Append(x)
	s.forgetNote(x.Lane)
	return nil
}

// Fill adds the next listing.
func (s *Set) Fill(key, value []byte) error {
	listing, err := layout.DecodeListing(value)
	if err != nil {
		return err
	}
	x := s.Make(listing.Lane)
	x.listed, x.Listing = rank{order: layout.KeySequence(key)}, listing
	if x.Known == KnowsNothing {
		x.Start, x.Known = x.listed.order, KnowsStart
	}
	if x.Known == KnowsStart && !listing.Returned {
		x.Known = KnowsHeld // there are none: they would come first
	}
	s.Order.Append(x)
	s.forgetNote(x.Lane)
	return nil
}

// Filled ends the reading of a group's first messages.
func (s *Set) Filled(x *Group) {
	if x.listed == (rank{}) { // it was not in memory, where all are that wait to be listed
		seq, listing := x.head()
		if x.Listing = listing; seq != 0 {
			x.listed = s.place(x, seq, listing)
		}
	}
	if x.empty() {
		delete(s.byLane, x.Lane)
	}
}
