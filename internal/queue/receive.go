package queue

import (
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
)

// maxMoves bounds the dead letters that one receive comes upon, and so the
// size of its commit.
const maxMoves = 64

// needToReceive says what must be read before a receive of up to most messages. A
// window is read before it is used up, so that a group's next message is always
// known.
func (q *Machine) needToReceive(now int64, most int) Need {
	if q.due.short(now, most) {
		return Need{kind: needDue, limit: int32(windowSize / 2)}
	}
	if !q.main.fresh.Whole && q.main.fresh.Len() < most {
		return q.needMore(&q.main)
	}
	if q.g == nil {
		return Need{}
	}
	if !q.g.order.Whole && q.g.order.Len() < most {
		return Need{kind: needOrder, limit: int32(orderSize / 2)}
	}
	if !q.g.back.Whole && q.g.back.Len() < most {
		return Need{kind: needBack, limit: int32(orderSize / 2)}
	}
	var at cursor
	for most > 0 {
		x := q.groupAt(&at)
		if x == nil {
			break
		}
		at.leave()
		if q.readyAt(x) > now {
			continue
		}
		if x.known != knowsAll || !x.fresh.Whole && x.fresh.Len() <= most {
			return q.needMore(x)
		}
		if !q.noisy(x.lane) {
			most -= q.takeable(x, now)
		}
	}
	return Need{}
}

// takeable counts the messages in memory that a receive may take of a ready group.
func (q *Machine) takeable(x *group, now int64) (n int) {
	if q.kind.Backlog && q.kind.FIFO {
		return 1
	}
	for _, s := range x.held {
		if !s.Is(layout.Returned) || q.dead(&s.State) {
			return n
		}
		if !q.pastRetention(s.Sent, now) {
			n++
		}
	}
	for _, f := range x.fresh.All() {
		if q.freshAt(f.sent) > now {
			break
		}
		if !q.pastRetention(f.sent, now) {
			n++
		}
	}
	return n
}

// probe reports whether a receive would find something.
func (q *Machine) probe(now int64) (bool, Need) {
	if q.c.Fresh > 0 || q.Empty() {
		return q.c.Fresh > 0, Need{}
	}
	if need := q.needToReceive(now, 1); !need.Nothing() {
		return false, need
	}
	ready := func(x *group) bool { return q.readyAt(x) <= now }
	return q.leases.expired(now) != nil || q.firstDue(now, false) != nil ||
		q.g != nil && (slices.ContainsFunc(q.g.back.All(), ready) || slices.ContainsFunc(q.g.order.All(), ready)), Need{}
}

// receive leases messages for c, and tells r.
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
		if q.leases.len() >= MaxInFlight {
			if len(r.Leases) == 0 {
				return ErrInFlight
			}
			break
		}
		s := q.takeNext(b, now, &at)
		if s == nil {
			break
		}
		fate := q.take(b, now, c, r, s)
		if q.kind.FIFO && fate != dropped {
			q.lane(s.Lane).hold(s)
			at.pass(q.kind, fate)
		}
	}
	q.remember(now, c, r)
	return nil
}

// cursor is where a receive stands among the groups that block: what it has
// taken itself does not.
type cursor struct {
	x           *group // where it stands; nil: behind those that it has left
	order, back int    // how many of each order it has come to
	held        int    // how many of the group's messages have been taken
}

// leave goes on behind a group.
func (at *cursor) leave() { at.x, at.held = nil, 0 }

// groupAt is the group at which a receive stands: of those to come the one whose first
// message became available first, and of two the one that was never received; nil: there
// is none in memory.
func (q *Machine) groupAt(at *cursor) *group {
	if at.x != nil {
		return at.x
	}
	order, back := q.g.order.All(), q.g.back.All()
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

// pass goes on behind a message. A dead letter blocks its group until it has
// arrived. Of a backlog's group one message is taken: attempts run side by side,
// and the next of the group waits for the end of this one's.
func (at *cursor) pass(kind Kind, fate fate) {
	if at.held++; fate == moved || kind.Backlog {
		at.leave()
	}
}

// takeNext takes the next message that can be received out of its order; nil if
// none can, or what comes behind it must be read first.
func (q *Machine) takeNext(b *mutation.Batch, now int64, at *cursor) *item {
	if q.kind.FIFO {
		return q.takeInOrder(b, now, at)
	}
	if q.due.unknown() || q.main.fresh.Len() == 0 && !q.main.fresh.Whole {
		return nil
	}
	due, fresh := q.pick(now)
	switch {
	case due != nil:
		s := newItem(*due)
		q.unschedule(b, now, &s.State)
		return s
	case fresh != nil:
		return q.takeFresh(fresh)
	}
	return nil
}

// takeInOrder is takeNext for a queue whose groups block: as much of a group as
// there is before the next one.
func (q *Machine) takeInOrder(b *mutation.Batch, now int64, at *cursor) *item {
	if q.g == nil {
		return nil
	}
	for x := q.groupAt(at); x != nil; x = q.groupAt(at) {
		if q.readyAt(x) > now {
			at.leave()
			continue
		}
		if x.known != knowsAll {
			return nil
		}
		q.g.touch(x)
		if at.held < len(x.held) {
			if s := x.held[at.held]; s.Is(layout.Returned) && (at.held == 0 || s.Due <= now) {
				q.unhold(b, now, s)
				x.held = slices.Delete(x.held, at.held, at.held+1)
				return s
			}
		} else if x.fresh.Len() > 0 && q.freshAt(x.fresh.First().sent) <= now {
			if s := q.takeFresh(x); s != nil {
				return s
			}
		}
		at.leave()
	}
	return nil
}

// takeFresh takes the first fresh message out of a group; nil if what comes
// behind it must be read first.
func (q *Machine) takeFresh(x *group) *item {
	if x.fresh.Len() == 0 || x.lane != layout.MainLane && !x.fresh.Whole && x.fresh.Len() == 1 {
		return nil
	}
	f := x.fresh.Pop()
	if q.leave(x); x.lane == layout.MainLane {
		q.c.Head = f.sequence + 1
	}
	return newItem(layout.State{Sequence: f.sequence, Sent: f.sent, Lane: x.lane, Tenant: x.lane})
}

// pick chooses where the next message of a queue without blocking groups comes from:
// of what is available, what was sent first, and in a backlog what became available
// first; quiet tenants' messages before those of noisy ones. One of the results is
// set, or none.
func (q *Machine) pick(now int64) (due *layout.State, fresh *group) {
	shared := q.g != nil && (!q.g.tenants.None() || q.g.order.Len() > 0)
	for _, quiet := range [...]bool{true, false} {
		if quiet && !shared {
			continue
		}
		due, fresh = q.firstDue(now, quiet), q.firstFresh(quiet)
		switch {
		case due == nil && fresh == nil:
		case fresh == nil || due != nil && q.precedes(due, fresh.fresh.First()):
			return due, nil
		default:
			return nil, fresh
		}
	}
	return nil, nil
}

// precedes reports that a scheduled message comes before a fresh one.
func (q *Machine) precedes(due *layout.State, fresh *freshMessage) bool {
	if q.kind.Backlog {
		return due.Due <= fresh.sent
	}
	return due.Sequence < fresh.sequence
}

// firstDue is the first scheduled message that is due; with quiet, of a quiet tenant.
func (q *Machine) firstDue(now int64, quiet bool) *layout.State {
	if !q.kind.Backlog {
		ready := q.due.sort(now)
		for i := range ready {
			if !quiet || !q.noisy(ready[i].Tenant) {
				return &ready[i].State
			}
		}
		return nil
	}
	window := q.due.first()
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

// firstFresh is the group whose first fresh message was sent first; with quiet,
// of the quiet tenants'.
func (q *Machine) firstFresh(quiet bool) (first *group) {
	if q.main.fresh.Len() > 0 {
		first = &q.main
	}
	if q.g == nil {
		return first
	}
	for _, x := range q.g.order.All() {
		if quiet && q.noisy(x.lane) || x.known == knowsAll && x.fresh.Len() == 0 {
			continue
		}
		if x.known == knowsAll && (first == nil || x.fresh.First().sequence < first.fresh.First().sequence) {
			first = x
		}
		break
	}
	return first
}

// fate is what take made of a message.
type fate byte

const (
	dropped fate = iota // its retention is over
	taken
	moved // to the dead-letter queue: it was received often enough
)

// dead reports that a message belongs to the dead letters.
func (q *Machine) dead(s *layout.State) bool {
	return q.cfg.Value().MaxReceives > 0 && !q.cfg.Value().DeadLetter.IsZero() && int(s.Receives) >= q.cfg.Value().MaxReceives && !s.Is(layout.MoveRejected)
}

// take leases a message that is in no order any more.
func (q *Machine) take(b *mutation.Batch, now int64, c *Receive, r *Result, s *item) fate {
	if q.pastRetention(s.Sent, now) {
		q.erase(b, &s.State)
		return dropped
	}
	if q.kind.FIFO && !q.kind.Backlog {
		q.c.Turn++
		s.Turn = q.c.Turn
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
