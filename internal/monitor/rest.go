package monitor

import (
	"sync/atomic"

	"godwit.dev/godwit/internal/shard"
)

// lookEvery is after how many minutes a queue that rests is looked at all the same, in
// which its numbers may have been set right.
const lookEvery = 5

// rest says of a queue whether it has to be looked at. It need not if nothing was told of
// it since the last look, and time alone does not change what it tells: then it continues
// to tell the same.
type rest struct {
	still atomic.Bool // so far
	turn  int64       // the minute, by lookEvery, in which it is looked at
	holds bool        // messages, at the last look; guarded by Queues.ticking
}

// stir has the queue looked at with the next minute.
func (r *rest) stir() {
	if r.still.Load() {
		r.still.Store(false)
	}
}

// rests reports that the queue need not be looked at after a minute.
func (r *rest) rests(minute int64) bool {
	return r.still.Load() && (minute+r.turn)%lookEvery != 0
}

// observe notes what a look has found that began with still set: steady says that it is
// written as what the queue tells until that changes. What is in flight, delayed or
// noisy changes by time.
func (r *rest) observe(g *shard.QueueGauges, steady bool) {
	r.holds = g.Visible > 0
	if !steady || g.InFlight > 0 || g.Delayed > 0 || g.GroupsInFlight > 0 || g.NoisyGroups > 0 {
		r.still.Store(false)
	}
}
