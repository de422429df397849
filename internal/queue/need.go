package queue

import (
	"iter"

	"godwit.dev/godwit/internal/queue/group"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/lease"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/queue/schedule"
)

// NeedKind says what a command needs from disk.
type NeedKind byte

// The kinds of need.
const (
	NeedNothing NeedKind = iota
	NeedLane             // the next messages of a lane: Span, Fill
	NeedHeld             // the returned messages of a group that blocks: Span, Fill
	NeedDue              // the next scheduled messages: Span, Fill
	NeedOrder            // the next listed groups: Span, Fill
	NeedLeases           // all leases: Span, Fill
	NeedBuckets          // all counts of messages by the second: Span, Fill
	NeedTenants          // what all tenants have waiting: Span, Fill
	NeedGroup            // whether a group is there: Keys().Group, FillGroup
	NeedState            // the state of one message: its record, DueOf and Due, FillState
)

// Need is what a command needs from disk before it can go on.
type Need struct {
	Kind     NeedKind
	Sequence uint64      // NeedState
	Lane     layout.Lane // NeedState, NeedLane, NeedHeld, NeedGroup
	Limit    int         // how many entries of the span are enough; 0: all are needed
}

// fill is what was read of a message for the command that is about to be repeated.
type fill struct {
	need      Need
	exists    bool
	scheduled bool
	state     layout.State
}

// more is what must be read next to know the first messages of a group.
func (q *Machine) more(x *group.Group) Need {
	switch {
	case x.Lane == layout.MainLane:
		return Need{Kind: NeedLane, Lane: x.Lane, Limit: windowSize / 2}
	case x.Known == group.Nothing:
		return Need{Kind: NeedGroup, Lane: x.Lane}
	case x.Known == group.Start && q.kind.FIFO:
		return Need{Kind: NeedHeld, Lane: x.Lane}
	}
	return Need{Kind: NeedLane, Lane: x.Lane, Limit: groupSize}
}

// Span is where the entries stand that a need asks for.
func (q *Machine) Span(need Need) layout.Span {
	switch need.Kind {
	case NeedDue:
		return q.due.Rest(&q.keys)
	case NeedOrder:
		return q.keys.ListedFrom(q.g.Next())
	case NeedLeases:
		return q.keys.Of(layout.KindLease)
	case NeedBuckets:
		return q.keys.Of(layout.KindBucket)
	case NeedTenants:
		return q.keys.Of(layout.KindTenant)
	case NeedHeld:
		return q.keys.Held(need.Lane, q.lane(need.Lane).Start)
	default:
		x := q.lane(need.Lane)
		if x == &q.main {
			return q.keys.Lane(need.Lane, max(q.head(), x.Rest()))
		}
		return q.keys.Lane(need.Lane, x.Rest())
	}
}

// Fill adds the next entry, read from Span in order.
func (q *Machine) Fill(need Need, key, value []byte) error {
	q.wake()
	switch need.Kind {
	case NeedOrder:
		return q.grouped().Fill(key, value)
	case NeedBuckets:
		q.due.FillSecond(int64(layout.KeySequence(key)), int64(layout.Number(value)))
	case NeedTenants:
		q.grouped().waits.Set(layout.Lane(layout.KeySequence(key)), layout.DecodeWait(value))
	case NeedDue, NeedHeld, NeedLeases:
		s, err := layout.DecodeState(key, value)
		if err != nil {
			return err
		}
		if need.Kind == NeedDue {
			q.due.Fill(s)
			return nil
		}
		l := lease.New(s)
		if need.Kind == NeedLeases {
			q.addLease(l, s.Received)
		}
		if q.kind.FIFO {
			q.lane(s.Lane).Hold(l)
		}
	default:
		sent, _ := message.RecordSent(value) // of a damaged record unknown
		q.lane(need.Lane).Fresh.Append(group.Fresh{Sequence: layout.KeySequence(key), Sent: sent})
	}
	return nil
}

// FillEnd ends the filling of a span. With exhausted nothing stands behind the
// last entry, so that the window is the whole order: ok false says that the
// counter disagreed, which is a fault in this program; it has been set right.
func (q *Machine) FillEnd(need Need, exhausted bool) (ok bool) {
	q.wake()
	var count *uint64
	var have int
	switch need.Kind {
	case NeedLane:
		x := q.lane(need.Lane)
		x.Known, x.Fresh.Whole = group.All, exhausted
		if x != &q.main {
			q.g.Filled(x)
			return true
		}
		count, have = &q.c.Fresh, x.Fresh.Len()
	case NeedDue:
		return q.due.Filled(exhausted)
	case NeedOrder:
		q.g.Order.Whole = exhausted
		count, have = &q.g.Listed, q.g.Order.Len()
	case NeedHeld:
		q.lane(need.Lane).Known = group.Held
		return true
	default:
		return true
	}
	if ok = !exhausted || *count == uint64(have); !ok {
		*count = uint64(have)
	}
	return ok
}

// FillGroup hands over the record of a group; nil if there is none.
func (q *Machine) FillGroup(lane layout.Lane, value []byte) {
	q.wake()
	switch x := q.grouped().Get(lane); {
	case x != nil && x.Known == group.Nothing:
		x.Start, x.Known = layout.Number(value), group.Start
	case x == nil && value != nil:
		q.g.Note(lane)
	case x == nil:
		q.g.Begin(lane)
	}
}

// FillState hands over what disk says of one message: whether its record
// exists, when it was sent, and, if it is scheduled, its state.
func (q *Machine) FillState(need Need, exists bool, sent int64, scheduled []byte) error {
	q.wake()
	s := layout.State{Sequence: need.Sequence, Lane: need.Lane, Tenant: need.Lane, Sent: sent}
	if scheduled != nil {
		var err error
		if s, err = layout.DecodeState(q.keys.DueOf(need.Sequence), scheduled); err != nil {
			return err
		}
	}
	q.filled = &fill{need: need, exists: exists, scheduled: scheduled != nil, state: s}
	return nil
}

// AppendCounters encodes the counters, to be written at Keys().Counters() with
// every commit that touches the queue.
func (q *Machine) AppendCounters(buf []byte) []byte {
	c := q.c
	c.Next, c.Head, c.Scheduled, c.Leased = q.next, q.head(), q.due.Count, uint64(q.leases.Len())
	if q.g != nil {
		c.Listed = q.g.Listed
	}
	return c.Append(buf)
}

// Load sets an empty machine to persisted counters. LoadNeeds tells what else.
func (q *Machine) Load(value []byte, now int64) error {
	c, err := layout.DecodeCounters(value)
	if err != nil {
		return err
	}
	q.content = newContent()
	q.c, q.next, q.due = c, c.Next, schedule.New(c.Scheduled, windowSize)
	q.main.Fresh.Whole = c.Fresh == 0
	if c.Grouped+c.Returned+c.Listed > 0 {
		q.grouped()
	}
	if !q.kind.Backlog {
		q.sweepAt = max(now, 1)
	}
	if c.Leased == 0 {
		q.Rest()
	}
	return nil
}

// LoadNeeds tells what must be read, one after the other, before a machine that
// was loaded is used: leases, counts, what tenants have, and of the groups that are blocked what
// stands behind the leases.
func (q *Machine) LoadNeeds() iter.Seq[Need] {
	return func(yield func(Need) bool) {
		if q.c.Leased > 0 && !yield(Need{Kind: NeedLeases}) {
			return
		}
		if q.shared() && q.due.Count+q.c.Grouped > 0 && !yield(Need{Kind: NeedTenants}) {
			return
		}
		if (q.due.Count > 0 || q.kind.FIFO) && !yield(Need{Kind: NeedBuckets}) {
			return
		}
		q.Rest() // an empty FIFO queue has looked for buckets, too
		if q.g == nil || !q.kind.FIFO {
			return
		}
		for _, lane := range q.g.Lanes() {
			for x := q.g.Get(lane); x.Known != group.All; {
				if !yield(q.more(x)) {
					return
				}
			}
		}
	}
}
