package queue

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// NeedKind says what a command needs from disk.
type NeedKind byte

// The kinds of need.
const (
	NeedNothing NeedKind = iota
	NeedFresh            // the next fresh messages: FreshSpan, FillFresh
	NeedDue              // the next scheduled messages: DueSpan, FillDue
	NeedState            // the state of one message: its record, DueOf and Due, FillState
)

// Need is what a command needs from disk before it can go on.
type Need struct {
	Kind     NeedKind
	Sequence uint64 // NeedState
	Lane     Lane   // NeedState
}

// fill is a state read for the command that is about to be repeated.
type fill struct {
	ok        bool
	seq       uint64
	exists    bool
	scheduled bool
	state     state
}

// FetchSize is how many entries a fill needs at most.
func FetchSize() int { return windowSize / 2 }

// Keys are the keys of the queue's records.
func (q *Machine) Keys() *Keys { return &q.keys }

// FreshSpan is where the fresh messages behind the window stand.
func (q *Machine) FreshSpan() Span {
	from := q.c.head
	if q.freshWin.len() > 0 {
		from = q.freshWin.last().seq + 1
	}
	return q.keys.Lane(MainLane, from)
}

// DueSpan is where the scheduled messages behind the window stand.
func (q *Machine) DueSpan() Span {
	if q.dueWin.len() == 0 {
		return q.keys.DueFrom(q.dueFloor.due, q.dueFloor.seq)
	}
	last := q.dueWin.last()
	return q.keys.DueAfter(last.due, last.seq)
}

// FillFresh adds the next fresh message, read from FreshSpan in order. Done
// ends the filling; with exhausted nothing is behind the last one, and then the
// count must be right: ok false says that it was not, and has been mended.
func (q *Machine) FillFresh(seq uint64, sent int64) {
	q.freshWin.push(ref{seq: seq, sent: sent})
}

// FillDue adds the next scheduled message, read from DueSpan in order.
func (q *Machine) FillDue(key, value []byte) error {
	if len(key) < 16 {
		return fmt.Errorf("%w: due key", ErrCorruptRecord)
	}
	s, err := decodeState(KeySequence(key), value)
	if err != nil {
		return err
	}
	q.dueWin.states = append(q.dueWin.states, s)
	return nil
}

// FillEnd ends the filling of a window. With exhausted nothing stands behind
// the last entry, so that the window is the whole order: ok false says that the
// counter disagreed, which is a fault in this program; it has been set right.
func (q *Machine) FillEnd(kind NeedKind, exhausted bool) (ok bool) {
	if !exhausted {
		return true
	}
	switch kind {
	case NeedFresh:
		ok = q.c.fresh == uint64(q.freshWin.len())
		q.c.fresh = uint64(q.freshWin.len())
	case NeedDue:
		ok = q.c.scheduled == uint64(q.dueWin.len())
		q.c.scheduled = uint64(q.dueWin.len())
	case NeedNothing, NeedState:
	}
	return ok
}

// FillState hands over what disk says of one message: whether its record
// exists, when it was sent, and, if it is scheduled, its state.
func (q *Machine) FillState(seq uint64, exists bool, sent int64, scheduled []byte) error {
	q.filled = fill{ok: true, seq: seq, exists: exists, state: state{seq: seq, sent: sent, slot: -1}}
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
	return c.appendTo(buf)
}

// Load sets an empty machine to persisted counters. It returns how many leases
// there are to be loaded by LoadLease; buckets must be loaded by LoadBucket when
// messages are scheduled.
func (q *Machine) Load(value []byte, now int64) (leases uint64, scheduled bool, err error) {
	c, err := decodeCounters(value)
	if err != nil {
		return 0, false, err
	}
	q.c = c
	if !q.backlog {
		q.sweepAt = max(now, 1)
	}
	return c.leased, c.scheduled > 0, nil
}

// LoadLease restores a lease.
func (q *Machine) LoadLease(key, value []byte) error {
	s, err := decodeState(KeySequence(key), value)
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
	q.later[int64(KeySequence(key))] = int64(binary.BigEndian.Uint64(value))
}

// DecodeDue reads the value of a DueOf key; 0 for anything else.
func DecodeDue(value []byte) int64 {
	if len(value) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(value))
}

// Peeked is a message as an operator sees it without receiving it.
type Peeked struct {
	Sequence uint64
	Lane     Lane
	Due      int64 // epoch milliseconds; 0 for a fresh message: due since it was sent
	Receives uint32
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

// HeadSpan is where all fresh messages stand.
func (q *Machine) HeadSpan() Span { return q.keys.Lane(MainLane, q.c.head) }

// PeekDue reads an entry of AllDue.
func PeekDue(key, value []byte) (Peeked, error) {
	s, err := decodeState(KeySequence(key), value)
	return Peeked{Sequence: s.seq, Lane: s.lane, Due: s.due, Receives: s.receives}, err
}

// PeekFresh reads an entry of HeadSpan.
func PeekFresh(key, _ []byte) (Peeked, error) {
	return Peeked{Sequence: KeySequence(key), Lane: MainLane}, nil
}
