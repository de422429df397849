// Package grouping keeps the groups of a queue: the messages of each group, and the order in
// which groups are received from.
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

// Fresh is a message that was never received.
type Fresh struct {
	Sequence uint64
	Sent     int64
	Size     uint32 // of its record, in bytes
}

// Compare orders fresh messages by sequence.
func (f Fresh) Compare(o Fresh) int { return cmp.Compare(f.Sequence, o.Sequence) }

// Knowledge is how much of a Group is in memory. Each value includes those before it.
type Knowledge byte

// What can be in memory of a group.
const (
	KnowsNothing Knowledge = iota
	KnowsStart             // a lower bound of its sequences
	KnowsHeld              // the held messages
	KnowsAll               // the first fresh messages: an empty window means that there are none
)

// Group has the fresh messages of one lane, by sequence. In a FIFO queue it also holds those
// that were received and not deleted.
type Group struct {
	Lane  layout.Lane
	Known Knowledge
	Start uint64 // a lower bound of its sequences; of use until KnowsAll
	Fresh order.Window[Fresh]
	// Held are the received messages of a FIFO queue's group, leased or returned, by
	// sequence. All precede the fresh ones.
	Held []*leases.Item

	listed  rank // its place in an order of groups; zero: it is not listed
	Listing layout.Listing
	unsaved int // how often it was listed since its record was last written
}

// rank is the place of a group in its order: the sequence of its first message, or, with back,
// the time at which that was returned.
type rank struct {
	back  bool
	at    int64
	order uint64 // a sequence; with back, the Turn of the first message
}

// Compare orders the groups of one order.
func (x *Group) Compare(o *Group) int {
	return cmp.Or(cmp.Compare(x.listed.at, o.listed.at), cmp.Compare(x.listed.order, o.listed.order))
}

// leased reports that a held message is in flight, which blocks the group.
func (x *Group) leased() bool {
	return slices.ContainsFunc(x.Held, func(l *leases.Item) bool { return !l.Is(layout.Returned) })
}

// empty reports that the group has no message.
func (x *Group) empty() bool { return len(x.Held) == 0 && x.Fresh.Len() == 0 && x.Fresh.Whole }

// Find finds the index of a message in Held.
func (x *Group) Find(seq uint64) (i int, found bool) {
	return slices.BinarySearchFunc(x.Held, seq, func(l *leases.Item, seq uint64) int { return cmp.Compare(l.Sequence, seq) })
}

// Hold inserts a message into Held.
func (x *Group) Hold(l *leases.Item) {
	i, _ := x.Find(l.Sequence)
	x.Held = slices.Insert(x.Held, i, l)
}

// Unread is the first sequence that may be on disk only.
func (x *Group) Unread() uint64 {
	switch n := len(x.Held); {
	case x.Fresh.Len() > 0:
		return x.Fresh.Last().Sequence + 1
	case n > 0:
		return x.Held[n-1].Sequence + 1
	}
	return x.Start
}

// LastSent is the send time of the last message in memory; 0: it is not known.
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

// head is the sequence of the first message of a group, by which it is listed; 0: the group is
// empty, or its first message is in flight and blocks it.
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

// place is the rank of a group with that head.
func (s *Set) place(x *Group, seq uint64, l layout.Listing) rank {
	if s.apart && l.Returned {
		return rank{back: true, at: l.At, order: x.Held[0].Turn}
	}
	return rank{order: seq}
}

// saveEvery is after how many listings the record of a FIFO queue's group is written again. It
// is the lower bound for reads, and may lag: all messages before the first fresh one are deleted
// or held. That is not so for a tenant, whose messages may be leased or scheduled.
const saveEvery = 32

// Set is the groups of a queue.
type Set struct {
	Listed uint64 // length of the order, in memory and on disk
	// Order is the window on the listed groups, by the sequence of their first messages.
	// A group is listed unless it is empty or blocked.
	Order order.Window[*Group]

	// With apart, groups whose first message was returned are in another order, by the
	// time of the return: Returned is its length, Back the window on it.
	apart    bool
	Returned uint64
	Back     order.Window[*Group]

	limit  int  // of each window
	blocks bool // a message in flight blocks its group
	byLane map[layout.Lane]*Group
	// Groups that are not empty and not in memory, in two generations. Reads do not show
	// yet which groups the command under way has begun.
	there, before map[layout.Lane]struct{}
	touched       []*Group // to be listed again at the end of the command
}

// New makes the set of a queue. listed and returned are the lengths of the two orders, and
// limit bounds the window on each; blocked groups are in memory beside them. blocks and apart
// are as in Set.
func New(blocks, apart bool, listed, returned uint64, limit int) *Set {
	s := &Set{
		Listed: listed, Returned: returned, limit: limit, blocks: blocks, apart: apart,
		byLane: map[layout.Lane]*Group{}, there: map[layout.Lane]struct{}{},
	}
	s.Order.Whole, s.Back.Whole = listed == 0, returned == 0
	return s
}

// Get returns a group; nil: it is not in memory.
func (s *Set) Get(lane layout.Lane) *Group { return s.byLane[lane] }

// Make returns a group. One that is not in memory is made, to be read.
func (s *Set) Make(lane layout.Lane) *Group {
	x := s.byLane[lane]
	if x == nil {
		x = &Group{Lane: lane}
		s.byLane[lane] = x
	}
	return x
}

// Begin makes a group that is empty.
func (s *Set) Begin(lane layout.Lane) *Group {
	x := s.Make(lane)
	x.Known, x.Fresh.Whole = KnowsAll, true
	return x
}

// Lanes lists the groups in memory, in ascending order.
func (s *Set) Lanes() []layout.Lane { return slices.Sorted(maps.Keys(s.byLane)) }

// Blocked counts the groups of a FIFO queue that have messages in flight.
func (s *Set) Blocked() (n int) {
	for _, x := range s.byLane {
		if x.leased() {
			n++
		}
	}
	return n
}

// Exists reports whether a group that is not in memory has messages, if that is known.
func (s *Set) Exists(lane layout.Lane) (exists, known bool) {
	_, there := s.there[lane]
	if !there {
		_, there = s.before[lane]
	}
	return there, there || s.Order.Whole && s.Back.Whole
}

// Note remembers that a group that is not in memory has messages. It forgets the older
// generation of groups when the newer is as large as a window.
func (s *Set) Note(lane layout.Lane) {
	if len(s.there) >= s.limit {
		s.there, s.before = map[layout.Lane]struct{}{}, s.there
	}
	s.there[lane] = struct{}{}
}

// forgetNote undoes Note: the group is in memory, or empty.
func (s *Set) forgetNote(lane layout.Lane) {
	delete(s.there, lane)
	delete(s.before, lane)
}

// Touch has a group listed again at the end of the command.
func (s *Set) Touch(x *Group) { s.touched = append(s.touched, x) }

// RelistTouched updates the orders of groups, on disk and in memory, for the groups that were
// touched.
func (s *Set) RelistTouched(b *mutation.Batch, keys *layout.Keys) {
	for _, x := range s.touched {
		if x.Known == KnowsAll { // else its head is unchanged: messages were only appended
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
	s.byLane[x.Lane] = x // it may have been evicted from the window
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
	case len(s.byLane) > 2*s.limit: // bound the memory of blocked groups
		x.Fresh.Trim(1)
	}
}

// list inserts a group into its order.
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

// unlist undoes list.
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

// Next is the first sequence of the order that is not in memory.
func (s *Set) Next() uint64 {
	if s.Order.Len() == 0 {
		return 0
	}
	return (*s.Order.Last()).listed.order + 1
}

// UnreadBack is the part of the other order, of returned first messages, that is not in memory.
func (s *Set) UnreadBack(keys *layout.Keys) layout.Span {
	if s.Back.Len() == 0 {
		return keys.ReturnedFrom(0, 0)
	}
	last := (*s.Back.Last()).listed
	return keys.ReturnedFrom(last.at, last.order+1)
}

// FillBack appends its next entry to Back.
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

// Fill appends the next entry of the order to Order.
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
		x.Known = KnowsHeld // nothing is held: a held message would be the first
	}
	s.Order.Append(x)
	s.forgetNote(x.Lane)
	return nil
}

// Filled ends the reading of a group's first messages.
func (s *Set) Filled(x *Group) {
	if x.listed == (rank{}) { // it was not in memory, so no Touch will list it
		seq, listing := x.head()
		if x.Listing = listing; seq != 0 {
			x.listed = s.place(x, seq, listing)
		}
	}
	if x.empty() {
		delete(s.byLane, x.Lane)
	}
}
