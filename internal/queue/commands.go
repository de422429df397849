package queue

import (
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
)

// Handle identifies one receive of a message: what a receipt handle carries.
type Handle struct {
	Sequence uint64
	Lane     layout.Lane
	Receives uint32
	Epoch    uint32
}

// where is the state that a message was found in.
type where byte

const (
	gone where = iota
	isLeased
	isScheduled
	isFresh
	isHeld // returned, in a group that blocks
)

// locate finds a message of any state. A message that is not in memory needs
// its state from disk.
func (q *Machine) locate(lane layout.Lane, seq uint64) (where, *state, Need) {
	if s, ok := q.leases[seq]; ok {
		return isLeased, s, Need{}
	}
	var x *group
	if q.g != nil {
		if x = q.g.byLane[lane]; x != nil && x.findHeld(seq) != nil {
			q.filled = nil
			return isHeld, x.findHeld(seq), Need{}
		}
	}
	if !q.filled.is(NeedState, lane, seq) {
		return gone, nil, Need{Kind: NeedState, Sequence: seq, Lane: lane}
	}
	f := q.filled
	switch {
	case !f.exists:
	case f.scheduled:
		q.filled = nil
		return isScheduled, &f.state, Need{}
	case lane == layout.MainLane && seq >= q.c.head:
		q.filled = nil
		return isFresh, &f.state, Need{}
	case lane.Grouped():
		// It is fresh, or held by a group that is not in memory. The last message of
		// a window stays until those behind it are known.
		if x == nil || !x.loaded || !x.whole && x.win.len() <= 1 {
			return gone, nil, Need{Kind: NeedLane, Lane: lane, Limit: groupSize}
		}
		q.filled = nil
		return isFresh, &f.state, Need{}
	}
	q.filled = nil
	return gone, nil, Need{}
}

// Remove deletes a message whatever its state. ErrGone says that there is none.
func (q *Machine) Remove(b *mutation.Batch, now int64, lane layout.Lane, seq uint64) (Need, error) {
	at, s, need := q.locate(lane, seq)
	if need.Kind != NeedNothing {
		return need, nil
	}
	switch at {
	case gone:
		return Need{}, ErrGone
	case isLeased:
		q.unlease(b, now, s)
		if q.kind.FIFO {
			q.unhand(b, now, s)
		}
	case isScheduled:
		q.unschedule(b, now, s)
	case isHeld:
		q.unhand(b, now, s)
	case isFresh:
		q.lane(lane).win.remove(seq)
		if lane == layout.MainLane {
			q.c.fresh--
		} else {
			q.g.fresh--
			q.touch(q.lane(lane))
		}
	}
	q.erase(b, s)
	q.relist(b)
	return Need{}, nil
}

// Delete deletes a message that was received, with the handle of any of its
// receives. One on its way to another queue does not arrive there: its transfer
// finds nothing to move. In a FIFO queue the handle must be of the latest
// receive, and that not over: else ErrExpired.
func (q *Machine) Delete(b *mutation.Batch, now int64, h Handle) (Need, error) {
	if q.kind.FIFO {
		q.Expire(b, now)
		if need, err := q.holds(h); need.Kind != NeedNothing || err != nil {
			return need, err
		}
	}
	return q.Remove(b, now, h.Lane, h.Sequence)
}

// holds checks that a handle is that of a lease.
func (q *Machine) holds(h Handle) (Need, error) {
	at, s, need := q.locate(h.Lane, h.Sequence)
	switch {
	case need.Kind == NeedLane: // it is there, but not leased
		q.filled = nil
		return Need{}, ErrExpired
	case need.Kind != NeedNothing:
		return need, nil
	case at == gone:
		return Need{}, ErrGone
	case at != isLeased || s.receives != h.Receives || s.epoch != h.Epoch:
		return Need{}, ErrExpired
	}
	return Need{}, nil
}

// ChangeVisibility hides a received message for timeout ms from now; 0 returns
// it at once. A message whose visibility has run out is hidden again while h is
// its latest receive. ErrGone: it was deleted. ErrNotLeased: it is on its way to
// another queue. ErrVisibility: more than 12 h in all.
func (q *Machine) ChangeVisibility(b *mutation.Batch, now int64, h Handle, timeout int64) (Need, error) {
	q.Expire(b, now)
	if q.kind.FIFO {
		if need, err := q.holds(h); need.Kind != NeedNothing || err != nil {
			return need, err
		}
	}
	at, s, need := q.locate(h.Lane, h.Sequence)
	if need.Kind == NeedLane {
		q.filled, at, need = nil, isFresh, Need{}
	}
	if need.Kind != NeedNothing {
		return need, nil
	}
	switch at {
	case gone:
		return Need{}, ErrGone
	case isFresh, isHeld:
		return Need{}, nil // its lease was lost with a crash: it is visible already
	case isLeased, isScheduled:
	}
	if s.flags&flagMoving != 0 {
		return Need{}, ErrNotLeased
	}
	if s.receives != h.Receives || s.epoch != h.Epoch {
		return Need{}, nil // somebody else has it now
	}
	if now+timeout-s.received > maxVisibility {
		return Need{}, ErrVisibility
	}
	switch {
	case at == isLeased:
		q.unlease(b, now, s)
	case timeout == 0:
		return Need{}, nil
	default:
		if len(q.leases) >= MaxInFlight {
			return Need{}, ErrInFlight
		}
		q.unschedule(b, now, s)
	}
	s.due = now + timeout
	if timeout == 0 {
		q.putBack(b, now, s)
		q.relist(b)
		return Need{}, nil
	}
	q.lease(b, now, s)
	return Need{}, nil
}

// Return gives a leased message back, to be received again at due. With
// uncounted the receive that leased it never was: nobody saw the message.
// With history a history record stands beside it from now on. ErrNotLeased: the
// lease l is over, and the message may be somebody else's.
func (q *Machine) Return(b *mutation.Batch, now int64, l Lease, due int64, uncounted, history bool) error {
	s, ok := q.leases[l.Sequence]
	if !ok || q.leaseOf(s) != l {
		return ErrNotLeased
	}
	q.unlease(b, now, s)
	if uncounted && s.receives > 0 {
		s.receives--
		if s.receives == 0 {
			s.first = 0
		}
	}
	if history {
		s.flags |= flagHistory
	}
	s.due = max(due, 0)
	q.putBack(b, now, s)
	q.relist(b)
	return nil
}

// Hasten makes a message that was returned for later due now. changed is false if
// it is due already, is leased, or was never received. ErrGone says that there is
// none.
func (q *Machine) Hasten(b *mutation.Batch, now int64, lane layout.Lane, seq uint64) (changed bool, need Need, err error) {
	at, s, need := q.locate(lane, seq)
	switch {
	case need.Kind != NeedNothing:
		return false, need, nil
	case at == gone:
		return false, Need{}, ErrGone
	case at == isLeased, at == isFresh, s.due <= now:
		return false, Need{}, nil
	case at == isHeld:
		q.unhold(b, now, s)
	default:
		q.unschedule(b, now, s)
	}
	s.due = now
	q.putBack(b, now, s)
	q.relist(b)
	return true, Need{}, nil
}

// Stay gives back a message that the dead-letter queue would not have: it is
// delivered here once more.
func (q *Machine) Stay(b *mutation.Batch, now int64, seq uint64) error {
	s, ok := q.leases[seq]
	if !ok || s.flags&flagMoving == 0 {
		return ErrNotLeased
	}
	q.unlease(b, now, s)
	s.flags |= flagStay
	s.due = now
	q.putBack(b, now, s)
	q.relist(b)
	return nil
}

// Leased returns the lease of a message, ok false if it is not leased.
func (q *Machine) Leased(seq uint64) (Lease, bool) {
	s, ok := q.leases[seq]
	if !ok {
		return Lease{}, false
	}
	return q.leaseOf(s), true
}

// MovingLeases lists the messages on their way to the dead-letter queue, for a
// restart to go on with.
func (q *Machine) MovingLeases() []Lease {
	var moving []Lease
	for _, s := range q.leases {
		if s.flags&(flagMoving|flagTask) == flagMoving {
			moving = append(moving, q.leaseOf(s))
		}
	}
	return moving
}

// InTask reports whether a move task carries the message.
func (q *Machine) InTask(seq uint64) bool {
	s, ok := q.leases[seq]
	return ok && s.flags&flagTask != 0
}

// TaskSequences lists the messages that a move task carries, in order.
func (q *Machine) TaskSequences() []uint64 {
	var all []uint64
	for seq, s := range q.leases {
		if s.flags&flagTask != 0 {
			all = append(all, seq)
		}
	}
	slices.Sort(all)
	return all
}

// LeasedSequences lists all leases, in no order.
func (q *Machine) LeasedSequences() []uint64 {
	all := make([]uint64, 0, len(q.leases))
	for seq := range q.leases {
		all = append(all, seq)
	}
	return all
}

// Expired is a message that a sweep found to be past its retention.
type Expired struct {
	Lane     layout.Lane
	Sequence uint64
}

// SweepDue reports whether messages may have expired, and the time before
// which a message must have been sent to be one of them.
func (q *Machine) SweepDue(now int64) (cutoff int64, due bool) {
	if q.sweepAt == 0 || q.sweepAt > now || q.total() == 0 || q.kind.Backlog || q.cfg.Retention == 0 {
		return 0, false
	}
	return now - q.cfg.Retention.Milliseconds(), true
}

// Lows are the sequences at which the main and the delayed lane begin.
func (q *Machine) Lows() (mainLane, delayed uint64) {
	if q.c.scheduled > 0 {
		return q.c.lowMain, q.c.lowDelayed
	}
	// Then all that is not leased is fresh: no need to pass what was deleted.
	mainLane, delayed = q.c.head, q.c.next
	for seq, s := range q.leases {
		switch s.lane { //nolint:exhaustive // there are as many lanes as groups
		case layout.MainLane:
			mainLane = min(mainLane, seq)
		case layout.DelayedLane:
			delayed = min(delayed, seq)
		}
	}
	return max(mainLane, q.c.lowMain), max(delayed, q.c.lowDelayed)
}

// Swept ends a sweep: nothing is below the given sequences any more, and the
// oldest message that is left was sent at oldest; 0 if none is left. more says
// that the sweep stopped early.
func (q *Machine) Swept(now int64, mainLane, delayed uint64, oldest int64, more bool) {
	q.c.lowMain = max(q.c.lowMain, mainLane)
	q.c.lowDelayed = max(q.c.lowDelayed, delayed)
	switch {
	case more:
		q.sweepAt = now
	case oldest == 0:
		q.sweepAt = 0
	default:
		q.sweepAt = oldest + q.cfg.Retention.Milliseconds()
	}
}
