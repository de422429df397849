package journal

import (
	"sync/atomic"
	"time"
)

// The disk counts as slow while most of its latest syncs took longer than SlowSync, which
// leaves too little of the 10 ms within which a lazy commit must become durable. A single
// slow sync among fast ones predicts nothing, so it only delays callers that arrive while
// it is in progress (see AwaitIfSlow). Samples older than SlowMemory are ignored.
const (
	SlowSync   = 4 * time.Millisecond
	SlowMemory = 10 * time.Second

	latencySamples = 9 // odd, so that there is a majority
)

// syncLatency tracks the latest syncs, to predict whether the next is fast. started and
// finished are called by one goroutine at a time, fast by any.
type syncLatency struct {
	syncs [latencySamples]timedSync // a ring buffer
	next  int

	startedAt atomic.Int64 // UnixNano of the start of the sync in progress; 0: none is
	slowUntil atomic.Int64 // UnixNano until which the disk counts as slow
}

type timedSync struct {
	at   time.Time // zero: there was none
	slow bool
}

// started records that a sync has begun.
func (p *syncLatency) started(now time.Time) { p.startedAt.Store(now.UnixNano()) }

// finished records that the sync in progress has ended.
func (p *syncLatency) finished(now time.Time, took time.Duration) {
	p.startedAt.Store(0)
	p.syncs[p.next] = timedSync{at: now, slow: took > SlowSync}
	p.next = (p.next + 1) % latencySamples
	slow, all := 0, 0
	for _, s := range p.syncs {
		if s.at.IsZero() || now.Sub(s.at) >= SlowMemory {
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

// fast reports whether the next commit is likely to be durable within 10 ms.
func (p *syncLatency) fast(now time.Time) bool {
	ns, since := now.UnixNano(), p.startedAt.Load()
	hangs := since != 0 && ns-since > int64(SlowSync)
	return !hangs && ns >= p.slowUntil.Load()
}
