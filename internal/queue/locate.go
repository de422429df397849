package queue

import (
	"cmp"
	"fmt"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/grouping"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
)

// Handle identifies one receive of a message: what a receipt handle carries.
type Handle struct {
	Sequence uint64
	Lane     layout.Lane
	Receives uint32
	Epoch    uint32
}

// where is the state of a located message.
type where byte

const (
	gone where = iota
	isLeased
	isScheduled
	isFresh
	isHeld // returned, in a FIFO queue
)

// locate finds a message in any state. The state of a message that is not in memory is read;
// with exact, its group is read as well, to know whether the message is fresh or held.
func (q *Machine) locate(lane layout.Lane, seq uint64, exact bool) (where, *leases.Item, Need) {
	if s := q.leases.Get(seq); s != nil {
		return isLeased, s, Need{}
	}
	if q.Empty() {
		return gone, nil, Need{}
	}
	var x *grouping.Group
	if q.groups != nil {
		x = q.groups.Get(lane)
	}
	if x != nil && x.Known == grouping.KnowsAll {
		if i, found := x.Find(seq); found {
			q.lookup = nil
			return isHeld, x.Held[i], Need{}
		}
	}
	need := Need{kind: needState, sequence: seq, lane: lane}
	if q.lookup == nil || q.lookup.need != need {
		return gone, nil, need
	}
	f, at := q.lookup, gone
	switch {
	case !f.exists:
	case f.scheduled:
		at = isScheduled
	case lane == layout.MainLane && seq >= q.head():
		at = isFresh
	case lane.Grouped():
		// The window's last message must stay until the ones after it are loaded.
		if exact && (x == nil || x.Known != grouping.KnowsAll || !x.Fresh.Whole && x.Fresh.Len() <= 1) {
			return gone, nil, q.needMore(q.lane(lane))
		}
		at = isFresh
	}
	q.lookup = nil
	return at, leases.NewItem(f.state), Need{}
}

// remove deletes a message whatever its state, even if its record cannot be read.
func (q *Machine) remove(b *mutation.Batch, now int64, e expired) (Need, error) {
	at, s, need := q.locate(e.lane, e.sequence, true)
	if !need.Nothing() {
		return need, nil
	}
	switch at {
	case gone:
		return Need{}, ErrGone
	case isScheduled:
		q.unschedule(b, now, &s.State)
	case isLeased:
		q.endLease(b, now, s)
		q.dropHeld(b, now, s)
	case isHeld:
		q.dropHeld(b, now, s)
	case isFresh:
		x := q.lane(e.lane)
		x.Fresh.Remove(grouping.Fresh{Sequence: e.sequence})
		q.leave(x)
	}
	s.Sent = cmp.Or(e.sent, s.Sent)
	q.erase(b, &s.State)
	q.relist(b)
	return Need{}, nil
}

// delete deletes a message by the handle of a receive.
func (q *Machine) delete(b *mutation.Batch, now int64, h Handle) (Need, error) {
	if q.kind.FIFO {
		q.expire(b, now)
		at, s, need := q.locate(h.Lane, h.Sequence, false)
		if !need.Nothing() {
			return need, nil
		}
		if err := q.check(at, s, h); err != nil {
			return Need{}, err
		}
	}
	return q.remove(b, now, expired{lane: h.Lane, sequence: h.Sequence})
}

// check refuses the handle of a deleted message, and in a FIFO queue one that is not of the
// current lease.
func (q *Machine) check(at where, s *leases.Item, h Handle) error {
	switch {
	case at == gone:
		return ErrGone
	case q.kind.FIFO && (at != isLeased || !latest(s, h)):
		return ErrExpired
	}
	return nil
}

// latest reports that h is of the latest receive.
func latest(s *leases.Item, h Handle) bool { return s.Receives == h.Receives && s.Epoch == h.Epoch }

// changeVisibility sets the visibility timeout of a received message, from now.
func (q *Machine) changeVisibility(b *mutation.Batch, now int64, h Handle, timeout int64) (Need, error) {
	q.expire(b, now)
	at, s, need := q.locate(h.Lane, h.Sequence, false)
	if !need.Nothing() {
		return need, nil
	}
	if err := q.check(at, s, h); err != nil {
		return Need{}, err
	}
	leased := at == isLeased
	switch {
	case !leased && at != isScheduled:
		return Need{}, nil // a crash lost the lease, and the message is visible already
	case s.Is(layout.Moving):
		return Need{}, ErrNotLeased
	case now+timeout-s.Received > maxVisibility:
		return Need{}, ErrVisibility
	case leased && timeout == 0:
		q.release(b, now, s, now)
		return Need{}, nil
	case timeout == 0:
		return Need{}, nil
	case leased:
		q.endLease(b, now, s)
	case q.leases.Len() >= maxInFlight:
		return Need{}, ErrInFlight
	default:
		q.unschedule(b, now, &s.State)
	}
	q.grant(b, now, s, now+timeout)
	return Need{}, nil
}

// makeDueNow makes a message due now that was returned with a later due time.
func (q *Machine) makeDueNow(b *mutation.Batch, now int64, c *MakeDueNow) (changed bool, need Need, err error) {
	at, s, need := q.locate(c.Lane, c.Sequence, true)
	if need.kind == needState && c.State != nil {
		q.wake()
		if err := q.fillState(need, true, 0, 0, c.State); err != nil {
			return false, Need{}, fmt.Errorf("%w: %w", ErrRead, err)
		}
		if q.lookup.state.Size == 0 { // an older version did not note it: it is read
			q.lookup = nil
		}
		at, s, need = q.locate(c.Lane, c.Sequence, true)
	}
	switch {
	case !need.Nothing():
		return false, need, nil
	case at == gone:
		return false, Need{}, ErrGone
	case at == isLeased, at == isFresh, s.Due <= now:
		return false, Need{}, nil
	case at == isHeld:
		q.unhold(b, now, s)
	default:
		q.unschedule(b, now, &s.State)
	}
	q.requeue(b, now, s, now)
	q.relist(b)
	return true, Need{}, nil
}
