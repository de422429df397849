package journal

import (
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// commitDelay decides how long a commit is held back for callers that are likely to append
// soon, as the commit_delay of PostgreSQL does.
type commitDelay struct {
	expectedWaiters atomic.Int32 // waiters of the latest commit, and of the one open meanwhile
	lastSync        atomic.Int64 // nanoseconds that the latest commit took to become durable
	replicated      bool         // a commit costs several machines some milliseconds each

	// Only the journal's goroutine uses them.
	skip    int // how many more commits are not delayed
	skipped int // what skip was set to last: it doubles while no caller comes
}

// bounds are how many waiters a commit is delayed for at most, and for how long. A replicated
// commit waits for nearly all expected ones: it costs as much as many requests, and a caller
// that misses it waits for all of it. Not for all, since some may not come again. Where commits
// take long, as many callers keep the CPUs busy, it takes those as long to come again.
func (d *commitDelay) bounds() (most int32, wait time.Duration) {
	expected := d.expectedWaiters.Load()
	if d.replicated {
		wait = replicatedSyncs * time.Duration(d.lastSync.Load())
		return expected - expected/replicatedRest, min(max(wait, replicatedTime), replicatedMost)
	}
	// A local commit costs as much CPU as a few requests. With many callers, a quarter of
	// them need not be in it, and keep the CPUs busy meanwhile.
	return max(delayManyWaiters, expected-expected/delayRest), delayTime
}

// Bounds of awaitMore.
const (
	delayMinWaiters  = 8 // with fewer expected waiters no commit is delayed
	delayManyWaiters = 16
	delayRest        = 4 // of more than delayManyWaiters, one in four is not waited for
	delayTime        = 500 * time.Microsecond
	skipMin          = 1 // commits that are not delayed after a delay without effect
	skipMax          = 1024

	replicatedRest  = 8 // one in eight is not waited for
	replicatedSyncs = 2 // a delay takes at most as long as so many latest commits,
	replicatedTime  = 3 * time.Millisecond
	replicatedMost  = 20 * time.Millisecond // or between these
)

// awaitMore delays a commit for a moment, so that the callers that were just answered share
// it with those that arrived meanwhile. Without the delay the former would find the commit in
// progress: callers would fall into two halves that take turns, at twice as many syncs and
// wake-ups. After a delay in vain, an exponentially growing number of commits is not delayed.
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
		if c.waiting.Load() >= delayManyWaiters { // the delay had an effect
			d.skipped = 0
			return
		}
		d.skipped = min(max(2*d.skipped, skipMin), skipMax)
		d.skip = d.skipped
	}
}
