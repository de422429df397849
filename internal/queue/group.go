package queue

import (
	"encoding/binary"
	"fmt"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
)

// orderSize is how many groups memory holds of the order of listed groups, and
// groupSize how many messages of one of them are read at once.
var orderSize, groupSize = 4096, 64 // variables for the tests' sake

// group is the fresh messages of one lane, in order of sequence, and, where they
// block, those of it that were received and are not gone. The main lane is a
// group that is in no order.
type group struct {
	lane   layout.Lane
	win    freshWindow // the first fresh messages
	whole  bool        // win holds all of them
	loaded bool        // win and held have been read: win is empty only if whole
	// held are the messages of a group that blocks which were received: leased
	// or returned, in order of sequence, all before the fresh ones.
	held []*state

	listed   uint64 // the sequence under which it stands in the order; 0: it does not
	at       int64  // when the first message was sent, or, returned, can be received
	returned bool   // the first message was returned
	unsaved  int    // how often it was listed since its record was written
}

// saveEvery is how often a group that blocks is listed until its record is written
// again. The record says where reading begins, and may lag there: what is before
// the first fresh message is gone or held. A tenant's may be leased or scheduled.
const saveEvery = 32

// groups is what a queue with groups has beyond one without.
type groups struct {
	groupCounters
	// byLane holds the groups of the window and those that are blocked.
	byLane map[layout.Lane]*group
	order  []*group // the window on the order of listed groups, by their first messages
	// there remembers of groups that are not in memory that they are not empty.
	there    map[layout.Lane]struct{}
	touched  []*group // to be listed anew at the end of the command
	tenants  tenants
	attempts map[string]attempt
}

func (q *Machine) grouped() *groups {
	if q.g == nil {
		q.g = &groups{byLane: map[layout.Lane]*group{}, there: map[layout.Lane]struct{}{}}
	}
	return q.g
}

// PrepareAccept says what must be read before a message enters a group.
func (q *Machine) PrepareAccept(lane layout.Lane) Need {
	if !lane.Grouped() || q.g == nil {
		return Need{}
	}
	g := q.g
	_, there := g.there[lane]
	if g.byLane[lane] != nil || there || len(g.order) == int(g.listed) || q.filled.is(NeedGroup, lane, 0) {
		return Need{}
	}
	return Need{Kind: NeedGroup, Lane: lane}
}

// join adds a fresh message to its group.
func (q *Machine) join(lane layout.Lane, r ref) {
	g := q.grouped()
	g.fresh++
	x := g.byLane[lane]
	if x == nil {
		_, there := g.there[lane]
		f := q.filled
		if q.filled = nil; there || f.is(NeedGroup, lane, 0) && f.exists {
			g.there[lane] = struct{}{}
			return
		}
		x = &group{lane: lane, whole: true, loaded: true}
		g.byLane[lane] = x
	}
	x.push(r, groupSize)
	q.touch(x)
}

// push adds the newest message, if the window reaches to it and has room.
func (x *group) push(r ref, limit int) {
	if x.whole = x.whole && x.win.len() < limit; x.whole {
		x.win.push(r)
	}
}

// touch has a group listed anew at the end of the command.
func (q *Machine) touch(x *group) { q.g.touched = append(q.g.touched, x) }

// blocked reports that nothing can be received before a lease of the group ends.
func (x *group) blocked() bool { return len(x.held) > 0 && x.held[0].flags&flagReturned == 0 }

func (x *group) empty() bool { return len(x.held) == 0 && x.win.len() == 0 && x.whole }

// head is the listing of a group: its first message; 0 if that cannot be received.
func (x *group) head() (seq uint64, at int64, returned bool) {
	switch {
	case x.blocked():
	case len(x.held) > 0:
		return x.held[0].seq, x.held[0].due, true
	case x.win.len() > 0:
		return x.win.first().seq, x.win.first().sent, false
	}
	return 0, 0, false
}

// relist brings the order of groups, on disk and in memory, up to what has
// become of the groups that a command touched.
func (q *Machine) relist(b *mutation.Batch) {
	if q.g == nil {
		return
	}
	for _, x := range q.g.touched {
		q.relistOne(b, x)
	}
	q.g.touched = q.g.touched[:0]
}

func (q *Machine) relistOne(b *mutation.Batch, x *group) {
	if !x.loaded {
		return // it has only been added to
	}
	g := q.g
	head, at, returned := x.head()
	if head == x.listed && at == x.at && returned == x.returned && !x.empty() {
		return
	}
	if x.listed != 0 {
		b.SingleDelete(q.keys.Listed(x.listed))
		g.listed--
		if i, found := g.place(x.listed); found {
			g.order = slices.Delete(g.order, i, i+1)
		}
	}
	g.byLane[x.lane] = x // it may have been put out of the window by another
	delete(g.there, x.lane)
	x.listed, x.at, x.returned = head, at, returned
	switch {
	case head != 0:
		q.scratch = binary.BigEndian.AppendUint64(q.scratch[:0], uint64(x.lane))
		q.scratch = binary.BigEndian.AppendUint64(q.scratch, uint64(at))
		q.scratch = append(q.scratch, flagOf(returned))
		b.Set(q.keys.Listed(head), q.scratch)
		if !q.kind.FIFO || x.unsaved%saveEvery == 0 {
			b.Set(q.keys.Group(x.lane), binary.BigEndian.AppendUint64(q.scratch[:0], head))
		}
		x.unsaved++
		g.insert(x)
	case x.empty():
		b.Delete(q.keys.Group(x.lane))
		delete(g.byLane, x.lane)
	case len(g.byLane) > 2*orderSize: // very many are blocked
		x.trim(1)
	}
}

func flagOf(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// trim drops what the window holds beyond n messages.
func (x *group) trim(n int) {
	if x.win.len() > n {
		x.win = freshWindow{refs: slices.Clone(x.win.refs[x.win.from : x.win.from+n])}
		x.whole = false
	}
}

// place finds a group in the window.
func (g *groups) place(listed uint64) (int, bool) {
	return slices.BinarySearchFunc(g.order, listed, func(x *group, listed uint64) int {
		switch {
		case x.listed < listed:
			return -1
		case x.listed > listed:
			return 1
		}
		return 0
	})
}

// insert adds a group to the order, and to the window if it belongs there.
func (g *groups) insert(x *group) {
	whole := len(g.order) == int(g.listed)
	g.listed++
	i, _ := g.place(x.listed)
	if !whole && i == len(g.order) {
		g.forget(x) // it stands behind the window, on disk only
		return
	}
	g.order = slices.Insert(g.order, i, x)
	if last := len(g.order) - 1; last >= orderSize {
		g.forget(g.order[last])
		g.order = g.order[:last]
	}
}

// leased reports that a message of a group that blocks is in flight.
func (x *group) leased() bool {
	return slices.ContainsFunc(x.held, func(s *state) bool { return s.flags&flagReturned == 0 })
}

// forget drops a group from memory, unless it has leases.
func (g *groups) forget(x *group) {
	if x.leased() {
		return
	}
	delete(g.byLane, x.lane)
	g.there[x.lane] = struct{}{}
}

// ripe reports that the first message of a listed group can be received.
func (q *Machine) ripe(x *group, now int64) bool { return q.ripeAt(x) <= now }

func (q *Machine) ripeAt(x *group) int64 {
	if x.returned || !q.kind.FIFO {
		return x.at
	}
	return x.at + q.cfg.Delay.Milliseconds() // a FIFO queue's delay also holds for what is there
}

// prepareGroups says what must be read before up to most messages are taken
// from the groups. A window is read before it is used up, so that a group's
// next message is always known.
func (q *Machine) prepareGroups(now int64, most int) Need {
	g := q.g
	if n := len(g.order); n < most && n < int(g.listed) {
		return Need{Kind: NeedOrder, Limit: orderSize / 2}
	}
	for _, x := range g.order {
		if most <= 0 {
			break
		}
		if !q.ripe(x, now) {
			continue
		}
		if !x.loaded || !x.whole && x.win.len() <= most {
			return Need{Kind: NeedLane, Lane: x.lane, Limit: groupSize}
		}
		if q.kind.FIFO || !q.noisy(x.lane) {
			most -= q.takeable(x, now)
		}
	}
	return Need{}
}

// takeable counts the messages in memory that a receive may take of a ripe group.
func (q *Machine) takeable(x *group, now int64) int {
	if q.kind.Backlog && q.kind.FIFO {
		return 1
	}
	n := 0
	for _, s := range x.held {
		if s.flags&flagReturned == 0 || q.dead(s) {
			return n
		}
		if !q.over(s.sent, now) {
			n++
		}
	}
	for _, f := range x.win.refs[x.win.from:] {
		if q.kind.FIFO && f.sent+q.cfg.Delay.Milliseconds() > now {
			break
		}
		if !q.over(f.sent, now) {
			n++
		}
	}
	return n
}

// takeFresh takes the first fresh message out of a group; nil if what comes
// behind it must be read first.
func (q *Machine) takeFresh(x *group) *state {
	if x.win.len() == 0 || x.lane != layout.MainLane && !x.whole && x.win.len() == 1 {
		return nil
	}
	f := x.win.first()
	x.win.pop()
	if x.lane == layout.MainLane {
		q.c.fresh--
		q.c.head = f.seq + 1
	} else {
		q.g.fresh--
		q.touch(x)
	}
	return &state{seq: f.seq, sent: f.sent, lane: x.lane, tenant: x.lane, slot: -1}
}

// receiveGroups is Receive for a queue whose groups block: as much of a group as
// there is, in order, before the next one.
func (q *Machine) receiveGroups(b *mutation.Batch, now int64, r *Receive) error {
	for _, x := range q.g.order {
		if len(r.Leases) >= r.Max || len(r.Moves) >= maxMoves {
			break
		}
		if !q.ripe(x, now) {
			continue
		}
		if !x.loaded {
			break
		}
		q.touch(x)
		if full := q.takeGroup(b, now, r, x); full && len(r.Leases) == 0 {
			return ErrInFlight
		} else if full {
			break
		}
	}
	return nil
}

// takeGroup takes messages from the front of a group until one is in its way.
// Of a backlog it takes one: attempts run side by side, and the next message of
// the group waits for the end of this one's.
func (q *Machine) takeGroup(b *mutation.Batch, now int64, r *Receive, x *group) (full bool) {
	for i := 0; len(r.Leases) < r.Max && len(r.Moves) < maxMoves; {
		if len(q.leases) >= MaxInFlight {
			return true
		}
		var s *state
		switch {
		case i < len(x.held):
			s = x.held[i]
			if s.flags&flagReturned == 0 || i > 0 && s.due > now {
				return false
			}
			q.unhold(b, now, s)
			x.held = slices.Delete(x.held, i, i+1)
		case x.win.len() > 0 && (x.win.first().sent+q.cfg.Delay.Milliseconds() <= now || q.kind.Backlog):
			if s = q.takeFresh(x); s == nil {
				return false
			}
		default:
			return false
		}
		switch q.take(b, now, r, s) {
		case taken:
			x.held = slices.Insert(x.held, i, s)
			if i++; q.kind.Backlog {
				return false
			}
		case moved: // what follows it waits until it has arrived
			x.held = slices.Insert(x.held, i, s)
			return false
		case dropped:
		}
	}
	return false
}

// hold puts a message of a group that blocks back into its place.
func (q *Machine) hold(b *mutation.Batch, now int64, s *state) {
	s.flags |= flagReturned
	q.g.returned++
	q.await(b, now, s)
	q.scratch = s.appendTo(q.scratch[:0])
	b.Set(q.keys.HeldState(s.lane, s.seq), q.scratch)
	q.touch(q.g.byLane[s.lane])
}

// unhold is the end of hold.
func (q *Machine) unhold(b *mutation.Batch, now int64, s *state) {
	s.flags &^= flagReturned
	q.g.returned--
	q.unawait(b, now, s)
	b.SingleDelete(q.keys.HeldState(s.lane, s.seq))
}

// unhand drops a message that is gone from its group.
func (q *Machine) unhand(b *mutation.Batch, now int64, s *state) {
	x := q.g.byLane[s.lane]
	x.held = slices.DeleteFunc(x.held, func(h *state) bool { return h.seq == s.seq })
	if s.flags&flagReturned != 0 {
		q.unhold(b, now, s)
	}
	q.touch(x)
}

// findHeld finds a returned message of a group that is in memory.
func (x *group) findHeld(seq uint64) *state {
	for _, s := range x.held {
		if s.seq == seq {
			return s
		}
	}
	return nil
}

// OrderSpan is where the listed groups behind the window stand.
func (q *Machine) OrderSpan() layout.Span {
	if n := len(q.g.order); n > 0 {
		return q.keys.ListedFrom(q.g.order[n-1].listed + 1)
	}
	return q.keys.ListedFrom(0)
}

// FillOrder adds the next listed group, read from OrderSpan in order.
func (q *Machine) FillOrder(key, value []byte) error {
	if len(value) != 17 {
		return fmt.Errorf("%w: listing of %d bytes", layout.ErrCorrupt, len(value))
	}
	x := q.lane(layout.Lane(binary.BigEndian.Uint64(value)))
	x.listed, x.at, x.returned = layout.KeySequence(key), int64(binary.BigEndian.Uint64(value[8:])), value[16] != 0
	q.g.order = append(q.g.order, x)
	delete(q.g.there, x.lane)
	return nil
}

// HeldSpan is where the returned messages of a group stand, given where the
// group's record says that it begins; ok false if they are known.
func (q *Machine) HeldSpan(lane layout.Lane, begins uint64) (span layout.Span, ok bool) {
	if !lane.Grouped() || !q.kind.FIFO || q.lane(lane).loaded {
		return layout.Span{}, false
	}
	return q.keys.Held(lane, begins), true
}

// LaneSpan is where the fresh messages of a lane behind its window stand. HeldSpan
// comes first.
func (q *Machine) LaneSpan(lane layout.Lane, begins uint64) layout.Span {
	x := q.lane(lane)
	switch n := len(x.held); {
	case x.win.len() > 0:
		begins = x.win.last().seq + 1
	case lane == layout.MainLane:
		begins = q.c.head
	case n > 0:
		begins = x.held[n-1].seq + 1
	}
	return q.keys.Lane(lane, begins)
}

// lane finds the group of a lane. One that is not in memory is made, to be filled.
func (q *Machine) lane(lane layout.Lane) *group {
	if lane == layout.MainLane {
		return &q.main
	}
	g := q.grouped()
	x := g.byLane[lane]
	if x == nil {
		x = &group{lane: lane}
		g.byLane[lane] = x
	}
	return x
}

// FillHeld adds a returned message of a group, read from HeldSpan in order.
func (q *Machine) FillHeld(key, value []byte) error {
	s, err := decodeState(layout.KeySequence(key), value)
	if err != nil {
		return err
	}
	x := q.lane(s.lane)
	i, _ := slices.BinarySearchFunc(x.held, s.seq, func(h *state, seq uint64) int { return int(int64(h.seq) - int64(seq)) })
	x.held = slices.Insert(x.held, i, &s)
	return nil
}

// FillFresh adds the next fresh message of a lane, read from LaneSpan in order.
func (q *Machine) FillFresh(lane layout.Lane, seq uint64, sent int64) {
	q.lane(lane).win.push(ref{seq: seq, sent: sent})
}

// FillGroup says whether a group is there, for PrepareAccept.
func (q *Machine) FillGroup(lane layout.Lane, exists bool) {
	q.filled = &fill{kind: NeedGroup, lane: lane, exists: exists}
}
