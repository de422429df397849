// Package pause keeps compactions from trying the same damage again without end.
package pause

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/store/pebble/pace"
)

// How long no compaction begins after one that has met damage: at first, doubling,
// at most. Pebble would else try the same one again without end.
const (
	firstPause = time.Second
	maxPause   = 5 * time.Minute
)

// Compactions schedules them as Pebble does, but for pauses after damage.
type Compactions struct {
	// One that does not poll for how many compactions may run, which does not change.
	*pebble.ConcurrencyLimitScheduler

	mu     sync.Mutex // guards what follows
	pause  time.Duration
	paused bool

	ending pace.Delayed // of a pause
}

// New makes it.
func New() *Compactions {
	return &Compactions{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// Register implements pebble.CompactionScheduler.
func (p *Compactions) Register(goroutines int, db pebble.DBForCompaction) {
	p.ConcurrencyLimitScheduler.Register(goroutines, database{db, p})
}

// Unregister implements pebble.CompactionScheduler.
func (p *Compactions) Unregister() {
	p.ending.End()
	p.ConcurrencyLimitScheduler.Unregister()
}

// Failed begins a pause.
func (p *Compactions) Failed() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		return p.pause
	}
	p.pause = min(max(firstPause, 2*p.pause), maxPause)
	p.paused = true
	p.ending.After(p.pause, p.resume)
	return p.pause
}

// resume ends a pause.
func (p *Compactions) resume() {
	p.mu.Lock()
	p.paused = false
	p.mu.Unlock()
	if ok, grant := p.TrySchedule(); ok {
		grant.Done() // which lets in whatever waits
	}
}

// Mended ends a pause since what it was for is over.
func (p *Compactions) Mended() {
	p.mu.Lock()
	p.pause = 0
	p.mu.Unlock()
	p.ending.Now(p.resume)
}

// Succeeded reports a compaction that went well.
func (p *Compactions) Succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.paused {
		p.pause = 0
	}
}

// Failing reports that the latest compaction has met damage.
func (p *Compactions) Failing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pause > 0
}

// database allows no compaction during a pause.
type database struct {
	pebble.DBForCompaction
	by *Compactions
}

// GetAllowedWithoutPermission implements pebble.DBForCompaction.
func (d database) GetAllowedWithoutPermission() int {
	d.by.mu.Lock()
	paused := d.by.paused
	d.by.mu.Unlock()
	if paused {
		return 0
	}
	return d.DBForCompaction.GetAllowedWithoutPermission()
}
