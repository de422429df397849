package pebble

import (
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/store/pebble/pace"
)

// How long no compaction begins after one that has met damage: at first, doubling,
// at most. Pebble would else try the same one again without end.
const (
	damagePause    = time.Second
	maxDamagePause = 5 * time.Minute
)

// pausing schedules compactions as Pebble does, but for pauses after damage.
type pausing struct {
	// One that does not poll for how many compactions may run, which does not change.
	*pebble.ConcurrencyLimitScheduler

	mu     sync.Mutex // guards what follows
	pause  time.Duration
	paused bool

	ending pace.Delayed // of a pause
}

func newPausing() *pausing {
	return &pausing{ConcurrencyLimitScheduler: pebble.NewConcurrencyLimitSchedulerWithNoPeriodicGrantingForTest()}
}

// Register implements pebble.CompactionScheduler.
func (p *pausing) Register(goroutines int, db pebble.DBForCompaction) {
	p.ConcurrencyLimitScheduler.Register(goroutines, pausingDB{db, p})
}

// Unregister implements pebble.CompactionScheduler.
func (p *pausing) Unregister() {
	p.ending.End()
	p.ConcurrencyLimitScheduler.Unregister()
}

// failed begins a pause.
func (p *pausing) failed() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.paused {
		return p.pause
	}
	p.pause = min(max(damagePause, 2*p.pause), maxDamagePause)
	p.paused = true
	p.ending.After(p.pause, p.resume)
	return p.pause
}

// resume ends a pause.
func (p *pausing) resume() {
	p.mu.Lock()
	p.paused = false
	p.mu.Unlock()
	if ok, grant := p.TrySchedule(); ok {
		grant.Done() // which lets in whatever waits
	}
}

// mended ends a pause since what it was for is over.
func (p *pausing) mended() {
	p.mu.Lock()
	p.pause = 0
	p.mu.Unlock()
	p.ending.Now(p.resume)
}

func (p *pausing) succeeded() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.paused {
		p.pause = 0
	}
}

// failing reports that the latest compaction has met damage.
func (p *pausing) failing() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pause > 0
}

// pausingDB allows no compaction during a pause.
type pausingDB struct {
	pebble.DBForCompaction
	by *pausing
}

// GetAllowedWithoutPermission implements pebble.DBForCompaction.
func (d pausingDB) GetAllowedWithoutPermission() int {
	d.by.mu.Lock()
	paused := d.by.paused
	d.by.mu.Unlock()
	if paused {
		return 0
	}
	return d.DBForCompaction.GetAllowedWithoutPermission()
}

// compactionFailed has compactions pause after one that has met damage.
func (s *Store) compactionFailed(err error) {
	s.damagedIn(err)
	pause := s.merging.failed()
	s.gate.change(func() {})
	if s.damage.told.Now() {
		s.log.Error("tables cannot be merged, as one of them is damaged: it is tried again later, and takes space until then",
			"file", damagedFile(err), "error", reason(err), "pause", pause)
	}
}
