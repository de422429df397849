package queue

import "godwit.dev/godwit/internal/queue/layout"

// shared reports that the queue's groups are tenants.
func (q *Machine) shared() bool { return !q.kind.FIFO && !q.kind.Backlog }

// wait updates the counts of tenants' waiting messages.
func (q *Machine) wait(tenant layout.Lane, messages, scheduled int64) {
	if tenant.Grouped() && q.shared() {
		q.grouped().waits.Add(tenant, messages, scheduled)
	}
}

// noisy reports whether the lane is that of a noisy tenant.
func (q *Machine) noisy(lane layout.Lane) bool {
	return q.groups != nil && !q.kind.FIFO && q.groups.tenants.Noisy(lane, q.leases.Len())
}

// Groups are gauges of a queue's groups.
type Groups struct {
	InFlight int           // those that have messages in flight
	Noisy    []layout.Lane // the noisy tenants, fewer than twenty
	Quiet    Counts        // the queue's, without the messages of noisy tenants
}

// Groups measures the groups, at a cost that does not depend on the number of messages. If
// more messages are scheduled than memory holds, the delayed ones are divided between noisy
// and quiet tenants in proportion to their scheduled messages.
func (q *Machine) Groups(now int64) (g Groups) {
	g.Quiet = q.Counts(now)
	if q.groups == nil {
		return g
	}
	if g.InFlight, g.Noisy = q.groups.tenants.Count(q.leases.Len()); q.kind.FIFO {
		g.InFlight = q.groups.Blocked()
	}
	if len(g.Noisy) == 0 {
		return g
	}
	theirs, inFlight := q.groups.waits.Of(g.Noisy...), q.groups.tenants.InFlight(g.Noisy...)
	delayed := q.due.DelayedOf(now, g.Quiet.Delayed, g.Noisy, theirs.Scheduled)
	g.Quiet.Visible = max(g.Quiet.Visible-max(theirs.Messages-delayed, 0), 0)
	g.Quiet.InFlight = max(g.Quiet.InFlight-int64(inFlight), 0)
	g.Quiet.Delayed = max(g.Quiet.Delayed-delayed, 0)
	return g
}
