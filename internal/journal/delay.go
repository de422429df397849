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
}

// Bounds of awaitMore: from how many expected waiters on a commit is delayed, how many
// are enough, for how long, and how many commits are not delayed when no caller came.
const (
	delayMinWaiters = 8
	delayMaxWaiters = 16
	delayTime       = 500 * time.Microsecond
	skipMin         = 1
	skipMax         = 1024
)

// awaitMore delays a commit for a moment, so that those who have just been answered
// share it with those who have come meanwhile. Without that they find it under way, and
// two halves of the callers take turns, at twice as many syncs and wake-ups, each
// waiting for the other's. Where they do not come again, commits go on without waiting
// for a while.
func (j *Journal) awaitMore() {
	d := &j.delay
	want := min(d.expectedWaiters.Load(), delayMaxWaiters)
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
	timer := clock.System.AfterFunc(delayTime, func() { close(over) })
	defer timer.Stop()
	select {
	case <-c.enough:
		d.skipped = 0
	case <-over:
		d.skipped = min(max(2*d.skipped, skipMin), skipMax)
		d.skip = d.skipped
	}
}
