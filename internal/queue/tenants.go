package queue

import "godwit.dev/godwit/internal/queue/layout"

// shared reports that the queue's groups are tenants.
func (q *Machine) shared() bool { return !q.kind.FIFO && !q.kind.Backlog }

// wait counts what tenants have waiting.
func (q *Machine) wait(tenant layout.Lane, messages, scheduled int64) {
	if tenant.Grouped() && q.shared() {
		q.grouped().waits.Add(tenant, messages, scheduled)
	}
}

// noisy reports whether the lane is that of a noisy tenant.
func (q *Machine) noisy(lane layout.Lane) bool {
	return q.g != nil && !q.kind.FIFO && q.g.tenants.Noisy(lane, q.leases.Len())
}

// Groups is how the groups of a queue stand.
type Groups struct {
	InFlight int           // those that have messages in flight
	Noisy    []layout.Lane // the noisy tenants, fewer than twenty
	Quiet    Counts        // the queue's, without the messages of noisy tenants
}

// Groups counts, at a cost that does not depend on how many messages wait.
// Delayed ones are shared out between noisy and quiet tenants by what they have
// scheduled when more of these are there than memory holds.
func (q *Machine) Groups(now int64) (g Groups) {
	g.Quiet = q.Counts(now)
	if q.g == nil {
		return g
	}
	if g.InFlight, g.Noisy = q.g.tenants.Count(q.leases.Len()); q.kind.FIFO {
		g.InFlight = q.g.Blocked()
	}
	if len(g.Noisy) == 0 {
		return g
	}
	theirs, inFlight := q.g.waits.Of(g.Noisy...), q.g.tenants.InFlight(g.Noisy...)
	delayed := q.due.DelayedOf(now, g.Quiet.Delayed, g.Noisy, theirs.Scheduled)
	g.Quiet.Visible = max(g.Quiet.Visible-max(theirs.Messages-delayed, 0), 0)
	g.Quiet.InFlight = max(g.Quiet.InFlight-int64(inFlight), 0)
	g.Quiet.Delayed = max(g.Quiet.Delayed-delayed, 0)
	return g
}
