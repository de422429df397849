package journal

import (
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// commitDelay estimates how many callers will append soon.
type commitDelay struct {
	expectedWaiters atomic.Int32 // how many were answered last, or came while that was being made durable
	skip            int          // so many commits do not wait for them
	skipped         int          // so many did not, the last time that no caller came
	replicated      bool         // a commit costs several machines some milliseconds each
}

// bounds are how many callers a commit is delayed for at most, and for how long. A commit
// that goes over a network is worth nearly all of them: it costs as much as many requests,
// and each that it does not take waits for all of it. Some may have nothing more to ask.
func (d *commitDelay) bounds() (most int32, wait time.Duration) {
	expected := d.expectedWaiters.Load()
	if d.replicated {
		return expected - expected/replicatedRest, replicatedTime
	}
	// A commit costs the processors as much as some requests do. Of many callers a part need
	// not wait for it, and keeps them busy meanwhile.
	return max(delayManyWaiters, expected-expected/delayRest), delayTime
}

// Bounds of awaitMore: from how many expected waiters on a commit is delayed, how many
// are many, how few of more than these are not waited for, for how long, and how many
// commits are not delayed when no caller came.
const (
	delayMinWaiters  = 8
	delayManyWaiters = 16
	delayRest        = 4 // one in so many
	delayTime        = 500 * time.Microsecond
	skipMin          = 1
	skipMax          = 1024

	replicatedRest = 8 // a commit does not wait for one in so many
	replicatedTime = 3 * time.Millisecond
)

// awaitMore delays a commit for a moment, so that those who have just been answered
// share it with those who have come meanwhile. Without that they find it under way, and
// two halves of the callers take turns, at twice as many syncs and wake-ups, each
// waiting for the other's. Where they do not come again, commits go on without waiting
// for a while.
func (j *Journal) awaitMore() {
	d := &j.delay
	most, wait := d.bounds()
	want := min(d.expectedWaiters.Load(), most)
	if want < delayMinWaiters {
		return
	}
	if d.skip > 0 {
		d.skip--
		return
	}
	j.mu.Lock()
	c := j.open
	j.mu.Unlock()
	c.want.Store(want)
	defer c.want.Store(0)
	if c.waiting.Load() >= want {
		return
	}
	over := make(chan struct{})
	timer := clock.System.AfterFunc(wait, func() { close(over) })
	defer timer.Stop()
	select {
	case <-c.enough:
		d.skipped = 0
	case <-over:
		if c.waiting.Load() >= delayManyWaiters { // it was worth the while
			d.skipped = 0
			return
		}
		d.skipped = min(max(2*d.skipped, skipMin), skipMax)
		d.skip = d.skipped
	}
}
