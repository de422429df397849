package queue

import (
	"errors"
	"fmt"

	"godwit.dev/godwit/internal/queue/grouping"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
	"godwit.dev/godwit/internal/queue/message"
)

// ErrRead reports records that a command needed and that could not be read. The
// machine cannot be used any more.
var ErrRead = errors.New("queue: records cannot be read")

// Reader reads the records of a queue.
type Reader interface {
	// Flush comes before the reads for one Need. It makes what the command under way
	// has written to its batch so far visible to them: the batch is empty afterwards.
	// For a command that must be one commit it does nothing, which is right if what
	// came before it in the batch was not about this queue, or was Accepts only.
	Flush() error
	// Get reads a record; ok is false if there is none. The key is valid until it
	// returns.
	Get(key []byte) (value []byte, ok bool, err error)
	// Scan calls f for each record of a span, in the order of their keys, until it
	// returns false. The slices are valid until then.
	Scan(span layout.Span, f func(key, value []byte) bool) error
}

// Need is what a command needs from disk before it can continue.
type Need struct {
	kind     needKind
	limit    int32       // how many entries of the span are enough; 0: all are needed
	sequence uint64      // needState
	lane     layout.Lane // needState, needLane, needHeld, needGroup
}

// Nothing reports that the command came to its end.
func (n *Need) Nothing() bool { return n.kind == needNothing }

type needKind byte

const (
	needNothing needKind = iota
	// Of these the entries of a span are read, in order.
	needLane    // the next messages of a lane
	needHeld    // the returned messages of a group that blocks
	needDue     // the next scheduled messages
	needOrder   // the next listed groups
	needBack    // the next of those that are listed by when their first messages came back
	needLeases  // all leases
	needBuckets // all counts of messages by the second
	needTenants // what all tenants have waiting
	// These have ways of their own.
	needGroup   // whether a group is there, and where it begins
	needState   // the state of one message
	needExpired // messages that are past their retention
	needOldest  // the oldest message
	needListed  // listings of an older version
	needSizes   // the records of all messages, for their size
)

// fillBytes bounds the records that are walked to fill a window.
const fillBytes = 1 << 20

// Fill reads what a need asks for. corrected says that a counter disagreed with the
// records, and was set right. The error is ErrRead with its cause.
func (q *Machine) Fill(r Reader, need Need) (corrected bool, err error) {
	if err = r.Flush(); err == nil {
		q.wake()
		switch need.kind {
		case needGroup:
			err = q.readGroup(r, need.lane)
		case needState:
			err = q.readState(r, need)
		case needExpired:
			err = q.findExpired(r)
		case needOldest:
			err = q.searchOldest(r)
		case needListed:
			err = q.readListed(r)
		case needSizes:
			err = q.readSizes(r)
		default:
			corrected, err = q.readSpan(r, need)
		}
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrRead, err)
	}
	return corrected, err
}

// readSpan reads the first entries of a need's span.
func (q *Machine) readSpan(r Reader, need Need) (corrected bool, err error) {
	n, size, exhausted := 0, 0, true
	var failed error
	err = r.Scan(q.span(need), func(key, value []byte) bool {
		if need.limit > 0 && (n == int(need.limit) || size > fillBytes) {
			exhausted = false
			return false
		}
		n++
		size += len(value)
		failed = q.fill(r, need, key, value)
		return failed == nil
	})
	if err = errors.Join(failed, err); err != nil {
		return false, err
	}
	return !q.filled(need, exhausted), nil
}

// needMore is what must be read next to know the first messages of a group.
func (q *Machine) needMore(x *grouping.Group) Need {
	switch {
	case x.Lane == layout.MainLane:
		return Need{kind: needLane, lane: x.Lane, limit: int32(windowSize / 2)}
	case x.Known == grouping.KnowsNothing:
		return Need{kind: needGroup, lane: x.Lane}
	case x.Known == grouping.KnowsStart && q.kind.FIFO:
		return Need{kind: needHeld, lane: x.Lane}
	}
	return Need{kind: needLane, lane: x.Lane, limit: int32(groupSize)}
}

// span is where the entries stand that a need asks for.
func (q *Machine) span(need Need) layout.Span {
	switch need.kind {
	case needDue:
		return q.due.Unread(&q.keys)
	case needOrder:
		return q.keys.ListedFrom(q.g.Next())
	case needBack:
		return q.g.UnreadBack(&q.keys)
	case needLeases:
		return q.keys.Of(layout.KindLease)
	case needBuckets:
		return q.keys.Of(layout.KindBucket)
	case needTenants:
		return q.keys.Of(layout.KindTenant)
	case needHeld:
		return q.keys.Held(need.lane, q.lane(need.lane).Start)
	default:
		x := q.lane(need.lane)
		if x == &q.main {
			return q.keys.Lane(need.lane, max(q.head(), x.Unread()))
		}
		return q.keys.Lane(need.lane, x.Unread())
	}
}

// fill adds the next entry, read from the span in order.
func (q *Machine) fill(r Reader, need Need, key, value []byte) error {
	switch need.kind {
	case needOrder:
		return q.grouped().Fill(key, value)
	case needBack:
		return q.grouped().FillBack(key, value)
	case needBuckets:
		q.due.FillSecond(int64(layout.KeySequence(key)), int64(layout.Number(value)))
	case needTenants:
		q.grouped().waits.Set(layout.Lane(layout.KeySequence(key)), layout.DecodeWait(value))
	case needDue, needHeld, needLeases:
		s, err := layout.DecodeState(key, value)
		if err == nil {
			err = q.sized(r, &s)
		}
		if err != nil {
			return err
		}
		if need.kind == needDue {
			q.due.Fill(s)
			return nil
		}
		if s.Turn == 0 && q.kind.FIFO { // received by an older version
			s.Turn = s.Sequence
		}
		l := leases.NewItem(s)
		if need.kind == needLeases {
			q.addLease(l, s.Received)
		}
		if q.kind.FIFO {
			q.lane(s.Lane).Hold(l)
		}
	default:
		x := q.lane(need.lane)
		sent, ok := message.RecordSent(value)
		if !ok && q.kind.FIFO { // it is damaged
			sent = x.LastSent()
		}
		x.Fresh.Append(grouping.Fresh{Sequence: layout.KeySequence(key), Sent: sent, Size: uint32(len(value))})
	}
	return nil
}

// filled ends the filling of a span. With exhausted nothing stands behind the
// last entry, so that the window is the whole order: ok false says that the
// counter disagreed; it has been set right.
func (q *Machine) filled(need Need, exhausted bool) (ok bool) {
	var count *uint64
	var have int
	switch need.kind {
	case needLane:
		x := q.lane(need.lane)
		x.Known, x.Fresh.Whole = grouping.KnowsAll, exhausted
		if x != &q.main {
			q.g.Filled(x)
			return true
		}
		count, have = &q.c.Fresh, x.Fresh.Len()
	case needDue:
		return q.due.Filled(exhausted)
	case needOrder:
		q.g.Order.Whole = exhausted
		count, have = &q.g.Listed, q.g.Order.Len()
	case needBack:
		q.g.Back.Whole = exhausted
		count, have = &q.g.Returned, q.g.Back.Len()
	case needHeld:
		q.lane(need.lane).Known = grouping.KnowsHeld
		return true
	default:
		return true
	}
	if ok = !exhausted || *count == uint64(have); !ok {
		*count = uint64(have)
	}
	return ok
}

// readGroup reads the record of a group; there is none of one that is empty.
func (q *Machine) readGroup(r Reader, lane layout.Lane) error {
	value, _, err := r.Get(q.keys.Group(lane))
	if err == nil {
		q.fillGroup(lane, value)
	}
	return err
}

func (q *Machine) fillGroup(lane layout.Lane, value []byte) {
	switch x := q.grouped().Get(lane); {
	case x != nil && x.Known == grouping.KnowsNothing:
		x.Start, x.Known = layout.Number(value), grouping.KnowsStart
	case x == nil && value != nil:
		q.g.Note(lane)
	case x == nil:
		q.g.Begin(lane)
	}
}

// lookup is what was read of a message for the command that is about to be repeated.
type lookup struct {
	need      Need
	exists    bool
	scheduled bool
	state     layout.State
}

// readState reads what disk says of one message: whether its record exists, when it
// was sent, and, if it is scheduled, its state.
func (q *Machine) readState(r Reader, need Need) error {
	record, exists, err := r.Get(q.keys.Record(need.lane, need.sequence))
	if err != nil {
		return err
	}
	sent, _ := message.RecordSent(record)
	due, isDue, err := r.Get(q.keys.DueOf(need.sequence))
	if err != nil {
		return err
	}
	var scheduled []byte
	if isDue {
		if scheduled, _, err = r.Get(q.keys.Due(int64(layout.Number(due)), need.sequence)); err != nil {
			return err
		}
	}
	return q.fillState(need, exists, sent, uint32(len(record)), scheduled)
}

// sized sets the size of a message of whose record an older version did not note it.
func (q *Machine) sized(r Reader, s *layout.State) error {
	if s.Size != 0 {
		return nil
	}
	keys := q.keys // a span that is being read may lie in those of the machine
	record, _, err := r.Get(keys.Record(s.Lane, s.Sequence))
	s.Size = uint32(len(record))
	return err
}

// readSizes adds up the records of all messages.
func (q *Machine) readSizes(r Reader) error {
	q.c.Bytes = 0
	return r.Scan(q.keys.Of(layout.KindRecord), func(_, value []byte) bool {
		q.c.Bytes += uint64(len(value))
		return true
	})
}

func (q *Machine) fillState(need Need, exists bool, sent int64, size uint32, scheduled []byte) error {
	s := layout.State{Sequence: need.sequence, Lane: need.lane, Tenant: need.lane, Sent: sent}
	if scheduled != nil {
		var err error
		if s, err = layout.DecodeState(q.keys.DueOf(need.sequence), scheduled); err != nil {
			return err
		}
	}
	if s.Size == 0 {
		s.Size = size
	}
	q.lookup = &lookup{need: need, exists: exists, scheduled: scheduled != nil, state: s}
	return nil
}
