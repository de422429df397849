package shard

import (
	"time"

	"godwit.dev/godwit/internal/clock"
)

// gathering is what a log knows of the company that is to be expected.
type gathering struct {
	company int32 // how many were answered last, or came while that was being made durable
	skip    int   // so many commits do not wait for company
	skipped int   // so many did not, the last time that nobody came
}

// Bounds of gather: how many make company, how many are enough, how long it waits
// for them, and how many commits go on without when they did not come.
const (
	gatherLeast = 8
	gatherMost  = 16
	gatherWait  = 500 * time.Microsecond
	skipLeast   = 1
	skipMost    = 1024
)

// gather waits a moment for those to come again who have just been answered, so that
// they share the commit with those who have come meanwhile. Without that they find
// it under way, and two halves of the callers take turns, at twice as many syncs and
// wake-ups, each waiting for the other's. Where they do not come again, commits go
// on without waiting for a while.
func (l *commitLog) gather() {
	want := min(l.company, gatherMost)
	if want < gatherLeast {
		return
	}
	if l.skip > 0 {
		l.skip--
		return
	}
	l.mu.Lock()
	g := l.open
	l.mu.Unlock()
	g.want.Store(want)
	defer g.want.Store(0)
	if g.waiting.Load() >= want {
		return
	}
	over := make(chan struct{})
	timer := clock.System.AfterFunc(gatherWait, func() { close(over) })
	defer timer.Stop()
	select {
	case <-g.enough:
		l.skipped = 0
	case <-over:
		l.skipped = min(max(2*l.skipped, skipLeast), skipMost)
		l.skip = l.skipped
	}
}
