package queue

import (
	"godwit.dev/godwit/internal/queue/layout"
)

// A standard queue whose messages have a MessageGroupId is shared by tenants. A
// tenant is noisy while it holds much of what is in flight, or of the recent
// processing time; what is there of the others is then received first. Source:
// "Amazon SQS fair queues" in the SQS developer guide.
const (
	noisyShare    = 10 // a tenth
	noisyInFlight = 30
)

// tenant is what counts for one tenant.
type tenant struct {
	inFlight int
	busy     int64 // processing time, halved every minute, in ms
}

// tenants are those who have something in flight, or had of late.
type tenants struct {
	byLane map[layout.Lane]*tenant
	busy   int64 // of all, those without a group too
	minute int64 // when busy was last halved
}

// noisy reports whether the tenant of a lane is noisy. A message without a
// group is a tenant of its own, and never is.
func (q *Machine) noisy(lane layout.Lane) bool {
	if q.g == nil || !lane.Grouped() || q.kind.FIFO {
		return false
	}
	t := q.g.tenants.byLane[lane]
	if t == nil {
		return false
	}
	return t.inFlight >= noisyInFlight && t.inFlight*noisyShare > len(q.leases) ||
		t.busy*noisyShare > q.g.tenants.busy
}

// count notes that n messages of a tenant came in flight, or with a negative n
// that one is not any more, after busy ms.
func (t *tenants) count(lane layout.Lane, now int64, n int, busy int64) {
	t.forget(now)
	t.busy += busy
	if !lane.Grouped() {
		return
	}
	if t.byLane == nil {
		t.byLane = map[layout.Lane]*tenant{}
	}
	one := t.byLane[lane]
	if one == nil {
		one = &tenant{}
		t.byLane[lane] = one
	}
	one.inFlight += n
	one.busy += busy
	if one.inFlight <= 0 && one.busy == 0 {
		delete(t.byLane, lane)
	}
}

// forget lets the past count half with every minute.
func (t *tenants) forget(now int64) {
	minutes := min(now/60_000-t.minute, 63)
	if minutes <= 0 {
		return
	}
	t.minute = now / 60_000
	t.busy >>= minutes
	for lane, one := range t.byLane {
		if one.busy >>= minutes; one.busy == 0 && one.inFlight <= 0 {
			delete(t.byLane, lane)
		}
	}
}

// pick chooses where the next message of a standard queue comes from: what
// became available first, quiet tenants' messages before those of noisy ones.
// Exactly one of the results is set, or none.
func (q *Machine) pick(now int64) (due *state, fresh *group) {
	if q.g == nil || len(q.g.tenants.byLane) == 0 && len(q.g.order) == 0 {
		return earlier(q.firstDue(now, false), q.firstFresh(false))
	}
	if due, fresh = earlier(q.firstDue(now, true), q.firstFresh(true)); due != nil || fresh != nil {
		return due, fresh
	}
	return earlier(q.firstDue(now, false), q.firstFresh(false))
}

// firstDue is the first scheduled message that is due; with quiet, of a quiet tenant.
func (q *Machine) firstDue(now int64, quiet bool) *state {
	for i := q.dueWin.from; i < len(q.dueWin.states); i++ {
		s := &q.dueWin.states[i]
		if s.due > now {
			break
		}
		if !quiet || !q.noisy(s.tenant) {
			return s
		}
	}
	return nil
}

// firstFresh is the group whose first fresh message was sent first; with quiet,
// of the quiet tenants'.
func (q *Machine) firstFresh(quiet bool) *group {
	var first *group
	if q.main.win.len() > 0 {
		first = &q.main
	}
	if q.g == nil {
		return first
	}
	for _, x := range q.g.order {
		if quiet && q.noisy(x.lane) || x.loaded && x.win.len() == 0 {
			continue
		}
		if x.loaded && (first == nil || x.win.first().seq < first.win.first().seq) {
			first = x
		}
		break
	}
	return first
}

// earlier leaves one of the two: what became available first.
func earlier(due *state, fresh *group) (*state, *group) {
	switch {
	case due == nil || fresh == nil:
		return due, fresh
	case due.due <= fresh.win.first().sent:
		return due, nil
	}
	return nil, fresh
}

// GroupsInFlight counts the groups that have messages in flight, and those of
// them that are noisy.
func (q *Machine) GroupsInFlight() (inFlight, noisy int) {
	if q.g == nil {
		return 0, 0
	}
	for _, x := range q.g.byLane {
		if x.leased() {
			inFlight++
		}
	}
	for lane, t := range q.g.tenants.byLane {
		if t.inFlight > 0 {
			inFlight++
		}
		if q.noisy(lane) {
			noisy++
		}
	}
	return inFlight, noisy
}
