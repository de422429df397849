package monitor

import (
	"sync/atomic"

	"godwit.dev/godwit/internal/shard"
)

// checkEvery is after how many minutes a queue at rest is checked all the same: its
// counts may have been corrected without an event.
const checkEvery = 5

// rest says whether a queue has to be checked. A queue without an event since the last
// check, whose metrics time alone does not change, continues to report the same.
type rest struct {
	still atomic.Bool // so far
	phase int64       // the minute, by checkEvery, in which it is checked
	holds bool        // messages, at the last check; guarded by Queues.ticking
}

// stir has the queue checked with the next minute.
func (r *rest) stir() {
	if r.still.Load() {
		r.still.Store(false)
	}
}

// rests reports that the queue need not be checked after a minute.
func (r *rest) rests(minute int64) bool {
	return r.still.Load() && (minute+r.phase)%checkEvery != 0
}

// observe takes in the result of a check that began with still set. steady says that the
// result is stored as what the queue reports until it changes. Messages in flight, delayed
// ones and noisy groups change by time alone.
func (r *rest) observe(g *shard.QueueGauges, steady bool) {
	r.holds = g.Visible > 0
	if !steady || g.InFlight > 0 || g.Delayed > 0 || g.GroupsInFlight > 0 || g.NoisyGroups > 0 {
		r.still.Store(false)
	}
}
