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
	lastSync        atomic.Int64 // nanoseconds that the latest Sync waited for the store
	replicated      bool         // a commit costs several machines some milliseconds each

	// Only the journal's goroutine uses them.
	none backoff // of commits that are not delayed, while no caller comes
	long longDelay
}

// longDelay decides which replicated commits are delayed for longer than replicatedMinTime.
// Where callers keep the CPUs busy, they take as long to come again as a commit takes, or
// longer, and no more of them come the longer a commit waits: each waits for its answer. More do
// of callers that pause between their requests, and gain nothing from a longer delay.
type longDelay struct {
	backoff
	is      bool  // the latest commit's was one
	without int32 // how many waiters are expected without
	useful  int   // how many in succession did not bring more
}

// next decides on the next commit, given how many waiters the latest led to expect.
func (l *longDelay) next(expected int32) bool {
	switch {
	case !l.is:
		l.without = expected
	case expected > l.without+l.without/longGrowth:
		l.failed(longSkipMin)
		l.useful = 0
	default:
		if l.useful++; l.useful == longUseful {
			*l = longDelay{backoff: backoff{left: 1}} // to see how many come without now
		}
	}
	l.is = !l.skip()
	return l.is
}

// backoff counts how often something is left out after it was in vain: exponentially more often.
type backoff struct {
	left int // how many more times
	last int // what left was set to last
}

// skip reports whether it is left out this time.
func (b *backoff) skip() bool {
	if b.left == 0 {
		return false
	}
	b.left--
	return true
}

// failed notes that it was in vain: it is left out for least times, or twice the last number.
func (b *backoff) failed(least int) {
	b.last = min(max(2*b.last, least), skipMax)
	b.left = b.last
}

// bounds are how many waiters a commit is delayed for, and for how long at most. A replicated
// commit waits for nearly all expected ones: it costs as much as many requests, and a caller
// that misses it waits for all of it. Not for all, since some may not come again. It is called
// once a commit.
func (d *commitDelay) bounds() (want int32, wait time.Duration) {
	expected := d.expectedWaiters.Load()
	if d.replicated {
		want, wait = expected-expected/replicatedRest, replicatedMinTime
		long := min(replicatedSyncs*time.Duration(d.lastSync.Load()), replicatedMaxTime)
		if long <= wait {
			d.long.is = false
		} else if d.long.next(expected) {
			wait = long
		}
		return want, wait
	}
	// A local commit costs as much CPU as a few requests. With many callers, a quarter of
	// them need not be in it, and keep the CPUs busy meanwhile.
	return min(expected, max(delayManyWaiters, expected-expected/delayRest)), delayTime
}

// Bounds of awaitMore.
const (
	delayMinWaiters  = 8 // with fewer expected waiters no commit is delayed
	delayManyWaiters = 16
	delayRest        = 4 // of more than delayManyWaiters, one in four is not waited for
	delayTime        = 500 * time.Microsecond
	skipMax          = 1024 // commits at most without a delay, or a longer one, after one in vain

	replicatedRest = 8 // one in eight is not waited for
	// A delay lasts this many times as long as the latest Sync at most, within these bounds.
	replicatedSyncs   = 2
	replicatedMinTime = 3 * time.Millisecond
	replicatedMaxTime = 20 * time.Millisecond

	longGrowth  = 4  // long delays are in vain where they bring a quarter more callers, or more
	longSkipMin = 8  // how many are left out then, at least
	longUseful  = 64 // after so many that were not in vain, one is left out, and others are forgotten
)

// awaitMore delays a commit for a moment, so that the callers that were just answered share
// it with those that arrived meanwhile. Without the delay the former would find the commit in
// progress: callers would fall into two halves that take turns, at twice as many syncs and
// wake-ups. After a delay in vain, an exponentially growing number of commits is not delayed.
func (j *Journal) awaitMore() {
	d := &j.delay
	want, wait := d.bounds()
	if want < delayMinWaiters || d.none.skip() {
		return
	}
	j.mu.Lock()
	c := j.open
	c.want.Store(want) // with j.mu held: a flush sees it
	j.mu.Unlock()
	defer c.want.Store(0)
	if c.waiting.Load() >= want {
		return
	}
	over, stop := clock.After(clock.System, wait)
	defer stop()
	select {
	case <-c.enough:
		if c.waiting.Load() < want { // somebody flushed the commit: nothing can be told
			return
		}
		d.none.last = 0
	case <-over:
		if c.waiting.Load() >= delayManyWaiters { // the delay had an effect
			d.none.last = 0
			return
		}
		d.none.failed(1)
	}
}
