package pebble

import (
	"sync"
	"sync/atomic"
)

// stopWrites is how many sublevels of L0 there may be before writes wait for compactions.
// Pebble's own write stall holds locks that the repair of damage needs; and while
// compactions fail for damage, waiting does not help.
const stopWrites = 5 * layers

// gate is the backpressure on writes while compactions are behind.
type gate struct {
	looking atomic.Bool
	looks   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	ready   bool
	young   int32 // layers
	closed  bool
	changed chan struct{} // closed when something of it changes; nil: nobody waits
}

// lookAtLayers has the gate count the sublevels of L0 again, after a flush or compaction.
// It may be called with any lock held.
func (s *Store) lookAtLayers() {
	g := &s.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.ready || g.closed || g.looking.Swap(true) {
		return
	}
	g.looks.Go(func() {
		g.looking.Store(false) // what changes from here on is seen by the next
		young := s.db.Metrics().Levels[0].Sublevels
		g.change(func() { g.young = young })
	})
}

// change changes the gate and wakes the writers that wait.
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
		if g.young < stopWrites || g.closed || s.merging.Failing() || s.repairs.isStuck() || s.failed() != nil {
			g.mu.Unlock()
			return
		}
		if g.changed == nil {
			g.changed = make(chan struct{})
			s.log.Info("writes come faster than tables are merged, and wait", "layers", g.young)
		}
		changed := g.changed
		g.mu.Unlock()
		<-changed
	}
}

// close admits all writes from now on.
func (g *gate) close() {
	g.change(func() { g.closed = true })
	g.looks.Wait()
}
