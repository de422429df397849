package pebble

import (
	"sync"
	"sync/atomic"
)

// stopWrites is how many layers of young tables there may be before writes wait for
// compactions. Pebble would have them wait with locks held without which damage cannot
// be taken out of the way; and while compactions meet damage, waiting is no help.
const stopWrites = 5 * layers

// gate holds writes back while compactions are behind.
type gate struct {
	looking atomic.Bool
	looks   sync.WaitGroup

	mu      sync.Mutex // guards what follows
	ready   bool
	young   int32 // layers
	closed  bool
	changed chan struct{} // closed when something of it changes; nil: nobody waits
}

// lookAtLayers has the gate see how many layers there are, after a flush or compaction. It may
// be called with any lock held.
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

// change changes something of the gate, and has those who wait look again.
func (g *gate) change(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// admit waits while compactions are behind and get on.
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

// close lets all through, for good.
func (g *gate) close() {
	g.change(func() { g.closed = true })
	g.looks.Wait()
}
