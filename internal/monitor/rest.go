package monitor

import (
	"sync/atomic"

	"godwit.dev/godwit/internal/shard"
)

// checkEvery is the interval in minutes at which a queue at rest is checked all the same: its
// counts may have been corrected without an event.
const checkEvery = 5

// rest says whether a queue must be checked. A queue without an event since the last check,
// whose metrics do not change by time alone, continues to report the same values.
type rest struct {
	still atomic.Bool // no event so far
	phase int64       // the minute, modulo checkEvery, in which it is checked
	holds bool        // it had messages at the last check; guarded by Queues.ticking
}

// stir schedules a check of the queue at the end of the minute.
func (r *rest) stir() {
	if r.still.Load() {
		r.still.Store(false)
	}
}

// rests reports that the queue need not be checked after a minute.
func (r *rest) rests(minute int64) bool {
	return r.still.Load() && (minute+r.phase)%checkEvery != 0
}

// observe takes over the result of a check that began with still set. steady says that the
// result is stored as the queue's report until it changes. Messages in flight, delayed ones and
// noisy groups change by time alone.
func (r *rest) observe(g *shard.QueueGauges, steady bool) {
	r.holds = g.Visible > 0
	if !steady || g.InFlight > 0 || g.Delayed > 0 || g.GroupsInFlight > 0 || g.NoisyGroups > 0 {
		r.still.Store(false)
	}
}
