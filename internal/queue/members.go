package queue

import (
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/fair"
	"godwit.dev/godwit/internal/queue/grouping"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
)

// Bounds of what a machine holds in memory: messages of the main lane and of the index of due
// times (windowSize), listed groups (orderSize), messages of one group (groupSize), and tenants
// whose waiting messages are counted (waitsSize). They are variables for the tests.
var windowSize, orderSize, groupSize, waitsSize = 512, 4096, 64, 1024

// groups is the state that only a queue with groups has.
type groups struct {
	*grouping.Set
	tenants  fair.Shares[layout.Lane] // of a queue whose groups do not block
	waits    fair.Waits[layout.Lane]  // likewise
	attempts attempts                 // of one whose groups do
}

func (q *Machine) grouped() *groups {
	if q.groups == nil {
		q.groups = &groups{Set: grouping.New(q.kind.FIFO, q.kind.FIFO && !q.kind.Backlog, q.counters.Listed, q.counters.Back, orderSize), waits: fair.NewWaits[layout.Lane](waitsSize)}
	}
	return q.groups
}

// lane finds the group of a lane. One that is not in memory is made, to be filled.
func (q *Machine) lane(lane layout.Lane) *grouping.Group {
	if lane == layout.MainLane {
		return &q.main
	}
	return q.grouped().Make(lane)
}

// join appends a fresh message to its group.
func (q *Machine) join(lane layout.Lane, f grouping.Fresh) {
	if lane == layout.MainLane {
		if q.counters.Fresh++; q.counters.Fresh == 1 {
			q.counters.Head = f.Sequence
		}
		q.main.Fresh.Insert(f, windowSize)
		return
	}
	g := q.grouped()
	q.counters.Grouped++
	q.wait(lane, 1, 0)
	x := g.Get(lane)
	if x == nil {
		if exists, _ := g.Exists(lane); exists {
			return
		}
		x = g.Begin(lane)
	}
	x.Fresh.Insert(f, groupSize)
	g.Touch(x)
}

// leave updates a group after its fresh message was removed or received.
func (q *Machine) leave(x *grouping.Group) {
	if x.Lane == layout.MainLane {
		q.counters.Fresh--
		return
	}
	q.counters.Grouped--
	q.wait(x.Lane, -1, 0)
	q.groups.Touch(x)
}

// relist updates the order of the groups that the command has touched, at its end.
func (q *Machine) relist(b *mutation.Batch) {
	if q.groups != nil {
		q.groups.RelistTouched(b, &q.keys)
	}
}

// hold returns a message to its place in a blocking group.
func (q *Machine) hold(b *mutation.Batch, now int64, s *leases.Item) {
	s.Flags |= layout.Returned
	q.counters.Returned++
	q.due.CountLater(b, &q.keys, now, &s.State)
	layout.PutState(b, q.keys.HeldState(s.Lane, s.Sequence), &s.State)
	if q.heldAges() {
		layout.PutNumber(b, q.heldExpiry(&s.State), uint64(s.Lane))
	}
	q.groups.Touch(q.groups.Get(s.Lane))
}

// unhold undoes hold.
func (q *Machine) unhold(b *mutation.Batch, now int64, s *leases.Item) {
	if s.Is(layout.Returned) {
		s.Flags &^= layout.Returned
		q.counters.Returned--
		q.due.UncountLater(b, &q.keys, now, &s.State)
		b.SingleDelete(q.keys.HeldState(s.Lane, s.Sequence))
		if q.heldAges() {
			b.SingleDelete(q.heldExpiry(&s.State))
		}
	}
}

// dropHeld removes a deleted message from its group, if the queue's groups block.
func (q *Machine) dropHeld(b *mutation.Batch, now int64, s *leases.Item) {
	if !q.kind.FIFO {
		return
	}
	x := q.groups.Get(s.Lane)
	i, _ := x.Find(s.Sequence)
	x.Held = slices.Delete(x.Held, i, i+1)
	q.unhold(b, now, s)
	q.groups.Touch(x)
}

// readyAt is when the first message of a listed group can be received.
func (q *Machine) readyAt(x *grouping.Group) int64 {
	if first := x.Listing; first.Returned {
		return first.At
	}
	return q.freshAt(x.Listing.At)
}

// freshAt is when a fresh message becomes visible. The delay of a FIFO queue also applies to
// messages that were sent before it was set.
func (q *Machine) freshAt(sent int64) int64 {
	if !q.kind.FIFO || q.kind.Backlog {
		return sent
	}
	return sent + q.cfg.Value().Delay.Milliseconds()
}

// nextReady is when the next listed group becomes ready to be received from; 0: all are.
func (q *Machine) nextReady(now int64) (next int64) {
	if q.groups.Order.Len() == 0 && !q.groups.Order.Whole || q.groups.Back.Len() == 0 && !q.groups.Back.Whole {
		return now // unknown until the window is filled
	}
	if q.cfg.Value().Delay == 0 && !q.kind.Backlog {
		return 0
	}
	for _, x := range q.groups.Order.All() {
		if at := q.readyAt(x); at > now {
			if next == 0 || at < next {
				next = at
			}
			if !x.Listing.Returned {
				break // the order is by send time
			}
		}
	}
	return next
}
