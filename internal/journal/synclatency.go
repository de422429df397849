package journal

import (
	"sync/atomic"
	"time"
)

// A disk is slow while most of its latest syncs took longer than SlowSync: that leaves too
// little of the 10 ms within which a lazy commit becomes durable. One that took long among
// many that did not says nothing of the next; who comes while it is under way waits for it
// (see AwaitUnlessQuick). Syncs are forgotten after SlowMemory.
const (
	SlowSync   = 4 * time.Millisecond
	SlowMemory = 10 * time.Second

	paceSyncs = 9 // how many syncs are looked at
)

// pace is how long syncs have taken of late. note is called by one goroutine at a time.
type pace struct {
	syncs [paceSyncs]timedSync // a ring
	next  int

	under     atomic.Int64 // UnixNano; when the sync under way began, 0: none is
	slowUntil atomic.Int64 // UnixNano; until then the disk is taken to be slow
}

type timedSync struct {
	over time.Time // zero: there was none
	slow bool
}

// begun notes that a sync has begun.
func (p *pace) begun(now time.Time) { p.under.Store(now.UnixNano()) }

// ended notes that the sync under way is over.
func (p *pace) ended(now time.Time, took time.Duration) {
	p.under.Store(0)
	p.syncs[p.next] = timedSync{over: now, slow: took > SlowSync}
	p.next = (p.next + 1) % paceSyncs
	slow, all := 0, 0
	for _, s := range p.syncs {
		if s.over.IsZero() || now.Sub(s.over) >= SlowMemory {
			continue
		}
		all++
		if s.slow {
			slow++
		}
	}
	until := int64(0)
	if 2*slow > all {
		until = now.Add(SlowMemory).UnixNano()
	}
	p.slowUntil.Store(until)
}

// quick reports that a commit that is not under way is likely to be durable in time.
func (p *pace) quick(now time.Time) bool {
	ns, since := now.UnixNano(), p.under.Load()
	hangs := since != 0 && ns-since > int64(SlowSync)
	return !hangs && ns >= p.slowUntil.Load()
}
