// Package pause is a backoff for compactions that fail because of damage, which Pebble would
// retry without a pause.
package pause

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/store/pebble/pace"
)

// The exponential backoff after a compaction that failed because of damage.
const (
	firstPause = time.Second
	maxPause   = 5 * time.Minute
)

// Compactions is Pebble's compaction scheduler, with pauses after damage.
type Compactions struct {
	// The variant that does not poll for the concurrency limit, which is constant.
	*pebble.ConcurrencyLimitScheduler

	isDamage func(error) bool

	mu      sync.Mutex // guards what follows
	pause   time.Duration
	paused  bool
	repairs int
	began   map[int]int // how many repairs there had been when each running job began

	ending pace.Delayed // of a pause
}

// New makes a scheduler. isDamage reports whether the error of a compaction is damage.
func New(isDamage func(error) bool) *Compactions {
	return &Compactions{
		ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest(),
		isDamage:                  isDamage,
		began:                     map[int]int{},
	}
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

// Begin notes that a compaction begins.
func (p *Compactions) Begin(job int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.began[job] = p.repairs
}

// End notes that a compaction has ended. If it failed because of damage, a pause begins, whose
// length it returns; 0 if there was a repair while it ran, so that a retry may succeed.
func (p *Compactions) End(job int, err error) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	began, ok := p.began[job]
	delete(p.began, job)
	switch {
	case err == nil && !p.paused:
		p.pause = 0
		return 0
	case err == nil || !p.isDamage(err) || ok && began != p.repairs:
		return 0
	case p.paused:
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
		grant.Done() // it starts waiting compactions
	}
}

// Repaired ends the pause: the damage was repaired.
func (p *Compactions) Repaired() {
	p.mu.Lock()
	p.pause = 0
	p.repairs++
	p.mu.Unlock()
	p.ending.Now(p.resume)
}

// Failing reports that the latest compaction failed because of damage.
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
