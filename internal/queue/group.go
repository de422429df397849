package queue

import (
	"cmp"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/order"
)

// freshMessage is one that was never received.
type freshMessage struct {
	sequence uint64
	sent     int64
}

// Compare orders fresh messages by sequence.
func (f freshMessage) Compare(o freshMessage) int { return cmp.Compare(f.sequence, o.sequence) }

// knowledge is what memory knows of a group, more with every step.
type knowledge byte

const (
	knowsNothing knowledge = iota
	knowsStart             // where it begins
	knowsHeld              // the held messages
	knowsAll               // the first fresh messages: none in the window means that there are none
)

// group is the fresh messages of one lane, in order of sequence, and, where they
// block, those of it that were received and are not gone.
type group struct {
	lane  layout.Lane
	known knowledge
	start uint64 // no message of it stands before that; of use until all is known
	fresh order.Window[freshMessage]
	// held are the messages of a group that blocks which were received: leased
	// or returned, in order of sequence, all before the fresh ones.
	held []*item

	listed  rank // where it stands among the listed ones; zero: it does not
	listing layout.Listing
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
func (x *group) Compare(o *group) int {
	return cmp.Or(cmp.Compare(x.listed.at, o.listed.at), cmp.Compare(x.listed.order, o.listed.order))
}

// leased reports that a message of a group that blocks is in flight.
func (x *group) leased() bool {
	return slices.ContainsFunc(x.held, func(l *item) bool { return !l.Is(layout.Returned) })
}

// empty reports that the group has no message.
func (x *group) empty() bool { return len(x.held) == 0 && x.fresh.Len() == 0 && x.fresh.Whole }

// find finds the place of a message among the held ones.
func (x *group) find(seq uint64) (i int, found bool) {
	return slices.BinarySearchFunc(x.held, seq, func(l *item, seq uint64) int { return cmp.Compare(l.Sequence, seq) })
}

// hold adds a message to the held ones.
func (x *group) hold(l *item) {
	i, _ := x.find(l.Sequence)
	x.held = slices.Insert(x.held, i, l)
}

// unread is the sequence from which those messages stand that memory does not know.
func (x *group) unread() uint64 {
	switch n := len(x.held); {
	case x.fresh.Len() > 0:
		return x.fresh.Last().sequence + 1
	case n > 0:
		return x.held[n-1].Sequence + 1
	}
	return x.start
}

// lastSent is when the last message was sent that memory knows; 0: it knows none.
func (x *group) lastSent() int64 {
	switch n := len(x.held); {
	case x.fresh.Len() > 0:
		return x.fresh.Last().sent
	case n > 0:
		return x.held[n-1].Sent
	case x.listing.Returned:
		return 0
	}
	return x.listing.At
}

// head is the sequence of the first message of a group, by which it is to be listed; 0
// if that is in flight, and blocks it, or there is none.
func (x *group) head() (seq uint64, l layout.Listing) {
	l.Lane = x.lane
	switch {
	case len(x.held) > 0 && x.held[0].Is(layout.Returned):
		seq, l.At, l.Returned = x.held[0].Sequence, x.held[0].Due, true
	case len(x.held) == 0 && x.fresh.Len() > 0:
		seq, l.At = x.fresh.First().sequence, x.fresh.First().sent
	}
	return seq, l
}

// place is where a group with that head is to be listed.
func (s *groupSet) place(x *group, seq uint64, l layout.Listing) rank {
	if s.apart && l.Returned {
		return rank{back: true, at: l.At, order: x.held[0].Turn}
	}
	return rank{order: seq}
}

// saveEvery is how often a group that blocks is listed until its record is written
// again. The record says where reading begins, and may lag there: what is before
// the first fresh message is gone or held. A tenant's may be leased or scheduled.
const saveEvery = 32

// groupSet is the groups of a queue.
type groupSet struct {
	listed uint64 // how many can be received from, in memory or not
	// order is the window on them. A group is listed, under its first message,
	// unless it is empty or blocked.
	order order.Window[*group]

	// apart: those whose first messages came back are so many more, in an order by
	// when these did.
	apart    bool
	returned uint64
	back     order.Window[*group]

	limit  int  // of each window
	blocks bool // a message in flight blocks those behind it
	byLane map[layout.Lane]*group
	// Groups that are not in memory and not empty: those noted last, and those
	// before them. The store may not show yet what the command under way began.
	there, before map[layout.Lane]struct{}
	touched       []*group // to be listed anew
}

// newGroupSet makes the set of a queue of which so many groups are listed, in the one
// order and the other, and of each of which memory holds at most limit. Those that block
// are in memory beside it.
func newGroupSet(kind Kind, listed, returned uint64, limit int) *groupSet {
	s := &groupSet{
		listed: listed, returned: returned, limit: limit, blocks: kind.FIFO, apart: kind.FIFO && !kind.Backlog,
		byLane: map[layout.Lane]*group{}, there: map[layout.Lane]struct{}{},
	}
	s.order.Whole, s.back.Whole = listed == 0, returned == 0
	return s
}

// get finds a group; nil: it is not in memory.
func (s *groupSet) get(lane layout.Lane) *group { return s.byLane[lane] }

// make finds a group. One that is not in memory is made, to be read.
func (s *groupSet) make(lane layout.Lane) *group {
	x := s.byLane[lane]
	if x == nil {
		x = &group{lane: lane}
		s.byLane[lane] = x
	}
	return x
}

// begin makes a group that is known to be empty.
func (s *groupSet) begin(lane layout.Lane) *group {
	x := s.make(lane)
	x.known, x.fresh.Whole = knowsAll, true
	return x
}

// lanes lists the groups in memory, in order.
func (s *groupSet) lanes() []layout.Lane { return slices.Sorted(maps.Keys(s.byLane)) }

// blocked counts those that have messages in flight, where these block.
func (s *groupSet) blocked() (n int) {
	for _, x := range s.byLane {
		if x.leased() {
			n++
		}
	}
	return n
}

// exists reports whether a group that is not in memory has messages, if known.
func (s *groupSet) exists(lane layout.Lane) (exists, known bool) {
	_, there := s.there[lane]
	if !there {
		_, there = s.before[lane]
	}
	return there, there || s.order.Whole && s.back.Whole
}

// note remembers that a group that is not in memory has messages, until so many
// others have been noted as the window holds.
func (s *groupSet) note(lane layout.Lane) {
	if len(s.there) >= s.limit {
		s.there, s.before = map[layout.Lane]struct{}{}, s.there
	}
	s.there[lane] = struct{}{}
}

// forgetNote is the end of note: the group is in memory, or gone.
func (s *groupSet) forgetNote(lane layout.Lane) {
	delete(s.there, lane)
	delete(s.before, lane)
}

// touch has a group listed anew at the end of the command.
func (s *groupSet) touch(x *group) { s.touched = append(s.touched, x) }

// relistTouched brings the order of groups, on disk and in memory, up to what has
// become of those that were touched.
func (s *groupSet) relistTouched(b *mutation.Batch, keys *layout.Keys) {
	for _, x := range s.touched {
		if x.known == knowsAll { // else it has only been added to
			s.relist(b, keys, x)
		}
	}
	s.touched = s.touched[:0]
}

func (s *groupSet) relist(b *mutation.Batch, keys *layout.Keys, x *group) {
	seq, listing := x.head()
	to := rank{}
	if seq != 0 {
		to = s.place(x, seq, listing)
	}
	if to == x.listed && listing == x.listing && !x.empty() {
		return
	}
	if x.listed != (rank{}) {
		s.unlist(b, keys, x)
	}
	s.byLane[x.lane] = x // it may have been put out of the window by another
	s.forgetNote(x.lane)
	x.listed, x.listing = to, listing
	switch {
	case seq != 0:
		if !s.blocks || x.unsaved%saveEvery == 0 {
			layout.PutNumber(b, keys.Group(x.lane), seq)
		}
		x.unsaved++
		s.list(b, keys, x, seq)
	case x.empty():
		b.Delete(keys.Group(x.lane))
		delete(s.byLane, x.lane)
	case len(s.byLane) > 2*s.limit: // very many are blocked
		x.fresh.Trim(1)
	}
}

// list adds a group to the order in which it belongs.
func (s *groupSet) list(b *mutation.Batch, keys *layout.Keys, x *group, seq uint64) {
	window := &s.order
	if x.listed.back {
		layout.PutReturned(b, keys.Returned(x.listed.at, x.listed.order), x.lane, seq)
		s.returned++
		window = &s.back
	} else {
		layout.PutListing(b, keys.Listed(seq), x.listing)
		s.listed++
	}
	if left, out := window.Insert(x, s.limit); out {
		s.forget(left)
	}
}

// unlist is the end of list.
func (s *groupSet) unlist(b *mutation.Batch, keys *layout.Keys, x *group) {
	if x.listed.back {
		b.SingleDelete(keys.Returned(x.listed.at, x.listed.order))
		s.returned--
		s.back.Remove(x)
		return
	}
	b.SingleDelete(keys.Listed(x.listed.order))
	s.listed--
	s.order.Remove(x)
}

// forget drops a group from memory, unless it has leases.
func (s *groupSet) forget(x *group) {
	if !x.leased() {
		delete(s.byLane, x.lane)
		s.note(x.lane)
	}
}

// next is the sequence from which those listings stand that are not in memory.
func (s *groupSet) next() uint64 {
	if s.order.Len() == 0 {
		return 0
	}
	return (*s.order.Last()).listed.order + 1
}

// unreadBack is where those listings stand of groups whose first messages came back that
// are not in memory.
func (s *groupSet) unreadBack(keys *layout.Keys) layout.Span {
	if s.back.Len() == 0 {
		return keys.ReturnedFrom(0, 0)
	}
	last := (*s.back.Last()).listed
	return keys.ReturnedFrom(last.at, last.order+1)
}

// fillBack adds the next of them.
func (s *groupSet) fillBack(key, value []byte) error {
	lane, seq, err := layout.DecodeReturned(value)
	if err != nil {
		return err
	}
	x := s.make(lane)
	x.listed = rank{back: true, at: layout.KeyTime(key), order: layout.KeySequence(key)}
	x.listing = layout.Listing{Lane: lane, At: x.listed.at, Returned: true}
	if x.known == knowsNothing {
		x.start, x.known = seq, knowsStart
	}
	s.back.Append(x)
	s.forgetNote(x.lane)
	return nil
}

// fill adds the next listing.
func (s *groupSet) fill(key, value []byte) error {
	listing, err := layout.DecodeListing(value)
	if err != nil {
		return err
	}
	x := s.make(listing.Lane)
	x.listed, x.listing = rank{order: layout.KeySequence(key)}, listing
	if x.known == knowsNothing {
		x.start, x.known = x.listed.order, knowsStart
	}
	if x.known == knowsStart && !listing.Returned {
		x.known = knowsHeld // there are none: they would come first
	}
	s.order.Append(x)
	s.forgetNote(x.lane)
	return nil
}

// filled ends the reading of a group's first messages.
func (s *groupSet) filled(x *group) {
	if x.listed == (rank{}) { // it was not in memory, where all are that wait to be listed
		seq, listing := x.head()
		if x.listing = listing; seq != 0 {
			x.listed = s.place(x, seq, listing)
		}
	}
	if x.empty() {
		delete(s.byLane, x.lane)
	}
}
