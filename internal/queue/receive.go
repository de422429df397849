package queue

import (
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/grouping"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
)

// maxMoves bounds the dead letters of one receive, and so the size of its commit.
const maxMoves = 64

// needToReceive is what must be read before a receive of up to limit messages. A window is
// refilled before it is empty, so that the next message of a group is always known.
func (q *Machine) needToReceive(now int64, maximum int) Need {
	if q.due.Short(now, maximum) {
		return Need{kind: needDue, limit: int32(windowSize / 2)}
	}
	if !q.main.Fresh.Whole && q.main.Fresh.Len() < maximum {
		return q.needMore(&q.main)
	}
	if q.groups == nil {
		return Need{}
	}
	if !q.groups.Order.Whole && q.groups.Order.Len() < maximum {
		return Need{kind: needOrder, limit: int32(orderSize / 2)}
	}
	if !q.groups.Back.Whole && q.groups.Back.Len() < maximum {
		return Need{kind: needBack, limit: int32(orderSize / 2)}
	}
	var at cursor
	for maximum > 0 {
		x := q.groupAt(&at)
		if x == nil {
			break
		}
		at.leave()
		if q.readyAt(x) > now {
			continue
		}
		if x.Known != grouping.KnowsAll || !x.Fresh.Whole && x.Fresh.Len() <= maximum {
			return q.needMore(x)
		}
		if !q.noisy(x.Lane) {
			maximum -= q.takeable(x, now)
		}
	}
	return Need{}
}

// takeable counts the messages in memory that a receive may lease from a ready group.
func (q *Machine) takeable(x *grouping.Group, now int64) (n int) {
	if q.kind.Backlog && q.kind.FIFO {
		return 1
	}
	for _, s := range x.Held {
		if !s.Is(layout.Returned) || q.dead(&s.State) {
			return n
		}
		if !q.pastRetention(s.Sent, now) {
			n++
		}
	}
	for _, f := range x.Fresh.All() {
		if q.freshAt(f.Sent) > now {
			break
		}
		if !q.pastRetention(f.Sent, now) {
			n++
		}
	}
	return n
}

// probe reports whether a receive would find a message.
func (q *Machine) probe(now int64) (bool, Need) {
	if q.counters.Fresh > 0 || q.Empty() {
		return q.counters.Fresh > 0, Need{}
	}
	if need := q.needToReceive(now, 1); !need.Nothing() {
		return false, need
	}
	ready := func(x *grouping.Group) bool { return q.readyAt(x) <= now }
	return q.leases.Expired(now) != nil || q.firstDue(now, false) != nil ||
		q.groups != nil && (slices.ContainsFunc(q.groups.Back.All(), ready) || slices.ContainsFunc(q.groups.Order.All(), ready)), Need{}
}

// receive leases messages for c, into r.
func (q *Machine) receive(b *mutation.Batch, now int64, c *Receive, r *Result) error {
	if q.Empty() {
		return nil
	}
	q.expire(b, now)
	if q.repeat(b, now, c, r) {
		return nil
	}
	defer q.relist(b)
	var at cursor
	for len(r.Leases) < c.Max && len(r.Moves) < maxMoves {
		if q.leases.Len() >= maxInFlight {
			if len(r.Leases) == 0 {
				return ErrInFlight
			}
			break
		}
		s := q.takeNext(b, now, &at)
		if s == nil {
			break
		}
		outcome := q.take(b, now, c, r, s)
		if q.kind.FIFO && outcome != dropped {
			q.lane(s.Lane).Hold(s)
			at.pass(q.kind, outcome)
		}
	}
	q.remember(now, c, r)
	return nil
}

// cursor is the position of a receive in the listed groups of a FIFO queue. The leases of a
// receive itself do not block its groups.
type cursor struct {
	x           *grouping.Group // the current group; nil: the next one
	order, back int             // how many groups of each order were visited
	held        int             // how many messages of the current group were taken
}

// leave goes on to the next group.
func (at *cursor) leave() { at.x, at.held = nil, 0 }

// groupAt is the current group of a receive, else the next one: that whose first message
// became visible first, and of two such, the one whose first message was never received.
// nil: no further group is in memory.
func (q *Machine) groupAt(at *cursor) *grouping.Group {
	if at.x != nil {
		return at.x
	}
	order, back := q.groups.Order.All(), q.groups.Back.All()
	switch {
	case at.order < len(order) && (at.back == len(back) || q.readyAt(order[at.order]) <= q.readyAt(back[at.back])):
		at.x = order[at.order]
		at.order++
	case at.back < len(back):
		at.x = back[at.back]
		at.back++
	}
	return at.x
}

// pass goes on to the next message. A dead letter blocks its group until its transfer has
// ended. A backlog leases one message per group at a time, since attempts run concurrently.
func (at *cursor) pass(kind Kind, outcome outcome) {
	if at.held++; outcome == moved || kind.Backlog {
		at.leave()
	}
}

// takeNext dequeues the next visible message. nil: there is none, or a window must be
// refilled first.
func (q *Machine) takeNext(b *mutation.Batch, now int64, at *cursor) *leases.Item {
	if q.kind.FIFO {
		return q.takeInOrder(b, now, at)
	}
	if q.due.Unknown() || q.main.Fresh.Len() == 0 && !q.main.Fresh.Whole {
		return nil
	}
	due, fresh := q.pick(now)
	switch {
	case due != nil:
		s := leases.NewItem(*due)
		q.unschedule(b, now, &s.State)
		return s
	case fresh != nil:
		return q.takeFresh(fresh)
	}
	return nil
}

// takeInOrder is takeNext for a FIFO queue: all visible messages of a group before those of
// the next group.
func (q *Machine) takeInOrder(b *mutation.Batch, now int64, at *cursor) *leases.Item {
	if q.groups == nil {
		return nil
	}
	for x := q.groupAt(at); x != nil; x = q.groupAt(at) {
		if q.readyAt(x) > now {
			at.leave()
			continue
		}
		if x.Known != grouping.KnowsAll {
			return nil
		}
		q.groups.Touch(x)
		if at.held < len(x.Held) {
			if s := x.Held[at.held]; s.Is(layout.Returned) && (at.held == 0 || s.Due <= now) {
				q.unhold(b, now, s)
				x.Held = slices.Delete(x.Held, at.held, at.held+1)
				return s
			}
		} else if x.Fresh.Len() > 0 && q.freshAt(x.Fresh.First().Sent) <= now {
			if s := q.takeFresh(x); s != nil {
				return s
			}
		}
		at.leave()
	}
	return nil
}

// takeFresh dequeues the first fresh message of a group; nil: the window must be refilled
// first, as the group would be left without a known first message.
func (q *Machine) takeFresh(x *grouping.Group) *leases.Item {
	if x.Fresh.Len() == 0 || x.Lane != layout.MainLane && !x.Fresh.Whole && x.Fresh.Len() == 1 {
		return nil
	}
	f := x.Fresh.Pop()
	if q.leave(x); x.Lane == layout.MainLane {
		q.counters.Head = f.Sequence + 1
	}
	return leases.NewItem(layout.State{Sequence: f.Sequence, Sent: f.Sent, Lane: x.Lane, Tenant: x.Lane, Size: f.Size})
}

// pick chooses the next message of a standard queue: the visible one that was sent first, or,
// in a backlog, that became visible first. Messages of quiet tenants precede those of noisy
// ones. It is either scheduled (due) or the first of a group (fresh); both nil: there is none.
func (q *Machine) pick(now int64) (due *layout.State, fresh *grouping.Group) {
	shared := q.groups != nil && (!q.groups.tenants.None() || q.groups.Order.Len() > 0)
	for _, quiet := range [...]bool{true, false} {
		if quiet && !shared {
			continue
		}
		due, fresh = q.firstDue(now, quiet), q.firstFresh(quiet)
		switch {
		case due == nil && fresh == nil:
		case fresh == nil || due != nil && q.precedes(due, fresh.Fresh.First()):
			return due, nil
		default:
			return nil, fresh
		}
	}
	return nil, nil
}

// precedes reports that a scheduled message comes before a fresh one.
func (q *Machine) precedes(due *layout.State, fresh *grouping.Fresh) bool {
	if q.kind.Backlog {
		return due.Due <= fresh.Sent
	}
	return due.Sequence < fresh.Sequence
}

// firstDue is the first scheduled message that is due; with quiet, only of quiet tenants.
func (q *Machine) firstDue(now int64, quiet bool) *layout.State {
	if !q.kind.Backlog {
		ready := q.due.Sort(now)
		for i := range ready {
			if !quiet || !q.noisy(ready[i].Tenant) {
				return &ready[i].State
			}
		}
		return nil
	}
	window := q.due.First()
	for i := range window {
		s := &window[i]
		if s.Due > now {
			break
		}
		if !quiet || !q.noisy(s.Tenant) {
			return s
		}
	}
	return nil
}

// firstFresh is the group whose first fresh message was sent first; with quiet, only of
// quiet tenants.
func (q *Machine) firstFresh(quiet bool) (first *grouping.Group) {
	if q.main.Fresh.Len() > 0 {
		first = &q.main
	}
	if q.groups == nil {
		return first
	}
	for _, x := range q.groups.Order.All() {
		if quiet && q.noisy(x.Lane) || x.Known == grouping.KnowsAll && x.Fresh.Len() == 0 {
			continue
		}
		if x.Known == grouping.KnowsAll && (first == nil || x.Fresh.First().Sequence < first.Fresh.First().Sequence) {
			first = x
		}
		break
	}
	return first
}

// outcome is what take did with a message.
type outcome byte

const (
	dropped outcome = iota // it is past its retention
	taken
	moved // to the dead-letter queue, by maxReceiveCount
)

// dead reports that a message is to move to the dead-letter queue, by maxReceiveCount.
func (q *Machine) dead(s *layout.State) bool {
	return q.cfg.Value().MaxReceives > 0 && !q.cfg.Value().DeadLetter.IsZero() && int(s.Receives) >= q.cfg.Value().MaxReceives && !s.Is(layout.MoveRejected)
}

// take leases a message that was dequeued.
func (q *Machine) take(b *mutation.Batch, now int64, c *Receive, r *Result, s *leases.Item) outcome {
	if q.pastRetention(s.Sent, now) {
		q.erase(b, &s.State)
		return dropped
	}
	if q.kind.FIFO && !q.kind.Backlog {
		q.counters.Turn++
		s.Turn = q.counters.Turn
	}
	switch {
	case c.Task:
		s.Flags |= layout.Moving | layout.Task
		r.Leases = append(r.Leases, q.grant(b, now, s, layout.Never))
		return taken
	case q.dead(&s.State):
		s.Flags |= layout.Moving
		r.Moves = append(r.Moves, q.grant(b, now, s, layout.Never))
		return moved
	}
	s.Flags &^= layout.MoveRejected
	s.Receives++
	s.Received, s.Epoch = now, c.Epoch
	if s.First == 0 {
		s.First = now
	}
	until := now + c.Visibility
	if q.kind.Backlog {
		until = layout.Never
	}
	r.Leases = append(r.Leases, q.grant(b, now, s, until))
	return taken
}
