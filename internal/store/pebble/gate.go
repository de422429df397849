package pebble

import (
	"sync"
	"sync/atomic"
)

// stopWrites is the number of sublevels of L0 from which on writes wait for compactions.
// Pebble's own write stall holds locks that the repair of damage needs; and while compactions
// fail because of damage, waiting does not help.
const stopWrites = 5 * l0Sublevels

// gate is the backpressure on writes while compactions are behind.
type gate struct {
	counting atomic.Bool
	counts   sync.WaitGroup

	mu        sync.Mutex // guards what follows
	ready     bool
	sublevels int32 // of L0
	closed    bool
	changed   chan struct{} // closed when a field changes; nil: nobody waits
}

// countSublevels schedules a count of the sublevels of L0, after a flush or compaction, in
// another goroutine: it may be called with any lock held, including Pebble's.
func (s *Store) countSublevels() {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ready || g.closed || g.counting.Swap(true) {
		return
	}
	g.counts.Go(func() {
		g.counting.Store(false) // a change from here on is counted by another call
		young := s.db.Metrics().Levels[0].Sublevels
		g.change(func() { g.sublevels = young })
	})
}

// change runs f under the gate's lock and wakes the waiting writers.
func (g *gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// admit makes a write wait while compactions are behind and making progress.
func (s *Store) admit() {
	g := &s.gate
	for {
		g.mu.Lock()
		if g.sublevels < stopWrites || g.closed || s.compactions.Failing() || s.repairs.isStuck() || s.failed() != nil {
			g.mu.Unlock()
			return
		}
		first := g.changed == nil
		if first {
			g.changed = make(chan struct{})
		}
		changed, sublevels := g.changed, g.sublevels
		g.mu.Unlock()
		if first { // without the lock, which Pebble waits for under its own: a log may be slow
			s.log.Info("writes come faster than tables are merged, and wait", "layers", sublevels)
		}
		<-changed
	}
}

// close admits all writes from now on.
func (g *gate) close() {
	g.change(func() { g.closed = true })
	g.counts.Wait()
}
