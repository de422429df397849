package queue

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/queue/layout"
)

// NeedKind says what a command needs from disk.
type NeedKind byte

// The kinds of need.
const (
	NeedNothing NeedKind = iota
	NeedLane             // the next messages of a lane: Group unless it is the main lane, LaneSpan, FillHeld, FillFresh
	NeedDue              // the next scheduled messages: DueSpan, FillDue
	NeedOrder            // the next listed groups: OrderSpan, FillOrder
	NeedState            // the state of one message: its record, DueOf and Due, FillState
	NeedGroup            // whether a group is there: Group, FillGroup
)

// Need is what a command needs from disk before it can go on.
type Need struct {
	Kind     NeedKind
	Sequence uint64      // NeedState
	Lane     layout.Lane // NeedState, NeedLane, NeedGroup
	Limit    int         // NeedLane, NeedDue, NeedOrder: how many entries are enough
}

// fill is what was read for the command that is about to be repeated.
type fill struct {
	kind      NeedKind
	seq       uint64
	lane      layout.Lane
	exists    bool
	scheduled bool
	state     state
}

func (f *fill) is(kind NeedKind, lane layout.Lane, seq uint64) bool {
	return f != nil && f.kind == kind && f.lane == lane && f.seq == seq
}

// Keys are the keys of the queue's records.
func (q *Machine) Keys() *layout.Keys { return &q.keys }

// DueSpan is where the scheduled messages behind the window stand.
func (q *Machine) DueSpan() layout.Span {
	if q.dueWin.len() == 0 {
		return q.keys.DueFrom(q.dueFloor.due, q.dueFloor.seq)
	}
	last := q.dueWin.last()
	return q.keys.DueAfter(last.due, last.seq)
}

// FillDue adds the next scheduled message, read from DueSpan in order.
func (q *Machine) FillDue(key, value []byte) error {
	if len(key) < 16 {
		return fmt.Errorf("%w: due key", layout.ErrCorrupt)
	}
	s, err := decodeState(layout.KeySequence(key), value)
	if err != nil {
		return err
	}
	q.dueWin.states = append(q.dueWin.states, s)
	return nil
}

// FillEnd ends the filling of a window. With exhausted nothing stands behind
// the last entry, so that the window is the whole order: ok false says that the
// counter disagreed, which is a fault in this program; it has been set right.
func (q *Machine) FillEnd(need Need, exhausted bool) (ok bool) {
	count, have := uint64(0), 0
	switch need.Kind {
	case NeedLane:
		x := q.lane(need.Lane)
		x.loaded, x.whole = true, x.whole || exhausted
		if need.Lane != layout.MainLane {
			if x.listed == 0 { // it was not in memory, where all are that wait to be listed
				x.listed, x.at, x.returned = x.head()
			}
			if x.empty() {
				delete(q.g.byLane, x.lane)
			}
			return true
		}
		defer func() { q.c.fresh = count }()
		count, have = q.c.fresh, q.main.win.len()
	case NeedDue:
		defer func() { q.c.scheduled = count }()
		count, have = q.c.scheduled, q.dueWin.len()
	case NeedOrder:
		defer func() { q.g.listed = count }()
		count, have = q.g.listed, len(q.g.order)
	case NeedNothing, NeedState, NeedGroup:
		return true
	}
	if exhausted && count != uint64(have) {
		count = uint64(have)
		return false
	}
	return true
}

// FillState hands over what disk says of one message: whether its record
// exists, when it was sent, and, if it is scheduled, its state.
func (q *Machine) FillState(need Need, exists bool, sent int64, scheduled []byte) error {
	seq, lane := need.Sequence, need.Lane
	q.filled = &fill{
		kind: NeedState, seq: seq, lane: lane, exists: exists,
		state: state{seq: seq, lane: lane, tenant: lane, sent: sent, slot: -1},
	}
	if scheduled == nil {
		return nil
	}
	s, err := decodeState(seq, scheduled)
	if err != nil {
		return err
	}
	q.filled.scheduled, q.filled.state = true, s
	return nil
}

// AppendCounters encodes the counters, to be written at Keys().Counters() with
// every commit that touches the queue.
func (q *Machine) AppendCounters(buf []byte) []byte {
	c := q.c
	c.leased = uint64(len(q.leases))
	all := c.all()
	buf = appendCounters(buf, all[:]...)
	if q.g != nil {
		all := q.g.all()
		buf = appendCounters(buf, all[:]...)
		if len(q.g.there) > orderSize {
			clear(q.g.there)
		}
	}
	return buf
}

// Load sets an empty machine to persisted counters. It returns how many leases
// there are to be loaded by LoadLease; buckets must be loaded by LoadBucket when
// messages are scheduled. Then LoadNeeds tells what else.
func (q *Machine) Load(value []byte, now int64) (leases uint64, scheduled bool, err error) {
	all := q.c.all()
	switch len(value) {
	case countersSize + groupCountersSize:
		all := q.grouped().all()
		decodeCounters(value[countersSize:], all[:]...)
	case countersSize:
	default:
		return 0, false, fmt.Errorf("%w: counters of %d bytes", layout.ErrCorrupt, len(value))
	}
	decodeCounters(value, all[:]...)
	q.main.whole = q.c.fresh == 0
	if !q.kind.Backlog {
		q.sweepAt = max(now, 1)
	}
	return q.c.leased, q.c.scheduled > 0 || q.kind.FIFO, nil
}

// LoadNeeds tells what must be read before a machine that was loaded is used: of
// the groups that are blocked, what stands behind the leases.
func (q *Machine) LoadNeeds() []Need {
	if q.g == nil || !q.kind.FIFO {
		return nil
	}
	needs := make([]Need, 0, len(q.g.byLane))
	for _, lane := range slices.Sorted(maps.Keys(q.g.byLane)) {
		needs = append(needs, Need{Kind: NeedLane, Lane: lane, Limit: groupSize})
	}
	return needs
}

// LoadLease restores a lease.
func (q *Machine) LoadLease(key, value []byte) error {
	s, err := decodeState(layout.KeySequence(key), value)
	if err != nil {
		return err
	}
	if q.leases == nil {
		q.leases = make(map[uint64]*state)
	}
	q.leases[s.seq] = &s
	if s.due != never {
		q.expiring.push(&s)
	}
	if s.flags&flagMoving != 0 {
		q.moving++
	}
	switch {
	case q.kind.FIFO:
		x := q.lane(s.lane)
		x.held = append(x.held, &s) // they come in order
	case q.g != nil:
		q.g.tenants.count(s.tenant, s.received, 1, 0)
	}
	return nil
}

// LoadBucket restores the count of messages due in a second.
func (q *Machine) LoadBucket(key, value []byte) {
	if len(value) != 8 {
		return
	}
	if q.later == nil {
		q.later = make(map[int64]int64)
	}
	q.later[int64(layout.KeySequence(key))] = int64(binary.BigEndian.Uint64(value))
}

// Peeked is a message as an operator sees it without receiving it.
type Peeked struct {
	Sequence uint64
	Lane     layout.Lane
	Due      int64 // epoch milliseconds; 0 for a fresh message: due since it was sent
	Receives uint32
	Received int64 // epoch milliseconds of the latest receive; 0 if there was none, or if it is leased
	Leased   bool
}

// Peek lists up to limit leased messages, in order of sequence.
func (q *Machine) Peek(limit int) []Peeked {
	sequences := q.LeasedSequences()
	slices.Sort(sequences)
	peeked := make([]Peeked, 0, min(limit, len(sequences)))
	for _, seq := range sequences[:min(limit, len(sequences))] {
		s := q.leases[seq]
		peeked = append(peeked, Peeked{Sequence: seq, Lane: s.lane, Receives: s.receives, Leased: true})
	}
	return peeked
}

// OldestLeased is when the oldest of the leased messages was sent, 0 without any.
func (q *Machine) OldestLeased() (sent int64) {
	for _, s := range q.leases {
		if sent == 0 || s.sent < sent {
			sent = s.sent
		}
	}
	return sent
}

// NextSequence is the sequence that the next message gets.
func (q *Machine) NextSequence() uint64 { return q.c.next }

// HeadSpan is where all fresh messages stand.
func (q *Machine) HeadSpan() layout.Span { return q.keys.Lane(layout.MainLane, q.c.head) }

// PeekDue reads an entry of AllDue, or one at HeldState.
func PeekDue(key, value []byte) (Peeked, error) {
	s, err := decodeState(layout.KeySequence(key), value)
	return Peeked{Sequence: s.seq, Lane: s.lane, Due: s.due, Receives: s.receives, Received: s.received}, err
}

// PeekFresh reads an entry of HeadSpan or RecordsFrom.
func PeekFresh(key, _ []byte) (Peeked, error) {
	return Peeked{Sequence: layout.KeySequence(key), Lane: layout.KeyLane(key)}, nil
}
