package queue

import (
	"errors"
	"fmt"

	"godwit.dev/godwit/internal/queue/grouping"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
	"godwit.dev/godwit/internal/queue/message"
)

// ErrRead reports that records that a command needed could not be read. The machine must
// not be used any more.
var ErrRead = errors.New("queue: records cannot be read")

// Reader reads the records of a queue.
type Reader interface {
	// Flush is called before the reads for one Need. It applies what the command has
	// written to its batch so far, so that the reads see it; the batch is empty
	// afterwards. For a command that must be one commit, Flush does nothing. That is
	// correct if the batch holds nothing of this queue, or only its Accepts.
	Flush() error
	// Get reads a record; ok is false if there is none. It does not keep the key.
	Get(key []byte) (value []byte, ok bool, err error)
	// Scan calls f for each record of a span, in key order, until f returns false.
	// The slices are valid until f returns.
	Scan(span layout.Span, f func(key, value []byte) bool) error
}

// Need names the records that a command needs from the store before it can continue.
type Need struct {
	kind     needKind
	limit    int32       // at most so many entries of the span are read; 0: all
	sequence uint64      // needState
	lane     layout.Lane // needState, needLane, needHeld, needGroup
}

// Nothing reports that the command is complete.
func (n *Need) Nothing() bool { return n.kind == needNothing }

type needKind byte

const (
	needNothing needKind = iota
	// Read by a scan of one span.
	needLane    // the next messages of a lane
	needHeld    // the returned messages of a group that blocks
	needDue     // the next scheduled messages
	needOrder   // the next listed groups
	needBack    // the next groups in the index of returned first messages
	needLeases  // all leases
	needBuckets // the counts of delayed messages by the second
	needTenants // the waiting messages of each tenant, counted
	// Read by a function of their own.
	needGroup   // whether a group exists, and its first sequence
	needState   // the state of one message
	needExpired // messages past their retention
	needOldest  // the oldest message
	needListed  // the index of groups in the form of an older version
	needSizes   // the sizes of all records
	needDelays  // when the next messages of a recount were sent
)

// fillBytes bounds the bytes of records that are scanned to fill a window.
const fillBytes = 1 << 20

// Fill reads the records of a need into memory. corrected says that a counter disagreed
// with the records, and was corrected. The error is ErrRead with its cause.
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
		case needDelays:
			err = q.readDelays(r)
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

// needMore is the next read on the way to a group's first messages.
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

// span is the key range of a need's entries.
func (q *Machine) span(need Need) layout.Span {
	switch need.kind {
	case needDue:
		return q.due.Unread(&q.keys)
	case needOrder:
		return q.keys.ListedFrom(q.groups.Next())
	case needBack:
		return q.groups.UnreadBack(&q.keys)
	case needLeases:
		return q.keys.Of(layout.TagLease)
	case needBuckets:
		return q.keys.Of(layout.TagBucket)
	case needTenants:
		return q.keys.Of(layout.TagTenant)
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

// fill adds the next entry of the span to memory.
func (q *Machine) fill(r Reader, need Need, key, value []byte) error {
	switch need.kind {
	case needOrder:
		return q.grouped().Fill(key, value)
	case needBack:
		return q.grouped().FillBack(key, value)
	case needBuckets:
		second := int64(layout.KeySequence(key))
		if second == recounting {
			q.beginRecount(nil)
			return nil
		}
		q.due.FillSecond(second, int64(layout.Number(value)))
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

// filled is called after the scan of a span. exhausted says that the scan reached the end, so
// that the window holds the whole order and its length must equal the counter. ok is false if
// it did not; the counter has been corrected.
func (q *Machine) filled(need Need, exhausted bool) (ok bool) {
	var count *uint64
	var have int
	switch need.kind {
	case needLane:
		x := q.lane(need.lane)
		x.Known, x.Fresh.Whole = grouping.KnowsAll, exhausted
		if x != &q.main {
			q.groups.Filled(x)
			return true
		}
		count, have = &q.counters.Fresh, x.Fresh.Len()
	case needDue:
		return q.due.Filled(exhausted)
	case needOrder:
		q.groups.Order.Whole = exhausted
		count, have = &q.groups.Listed, q.groups.Order.Len()
	case needBack:
		q.groups.Back.Whole = exhausted
		count, have = &q.groups.Returned, q.groups.Back.Len()
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

// readGroup reads the record of a group. An empty group has none.
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
		q.groups.Note(lane)
	case x == nil:
		q.groups.Begin(lane)
	}
}

// lookup is the state of a message that was read for the command, which is stepped again.
type lookup struct {
	need      Need
	exists    bool
	scheduled bool
	state     layout.State
}

// readState reads one message: whether its record exists, when it was sent, and its state
// if it is scheduled.
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

// sized sets the size of a message whose state was written by an older version, without it.
func (q *Machine) sized(r Reader, s *layout.State) error {
	if s.Size != 0 {
		return nil
	}
	keys := q.keys // a copy: the span of the scan under way may be in the buffer of the machine's
	record, _, err := r.Get(keys.Record(s.Lane, s.Sequence))
	s.Size = uint32(len(record))
	return err
}

// readSizes adds up the records of all messages.
func (q *Machine) readSizes(r Reader) error {
	q.counters.Bytes = 0
	return r.Scan(q.keys.Of(layout.TagRecord), func(_, value []byte) bool {
		q.counters.Bytes += uint64(len(value))
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
