package kernel

import (
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// Arm sets the shard's timer to the earliest NextDue of its parts.
func (sh *Shard) Arm() {
	if at := sh.nextTimer(); at != 0 {
		sh.TickBy(at)
	}
}

// TickBy has the parts' Tick called at the given time, in epoch milliseconds, or earlier. A
// part calls it when its NextDue becomes earlier without a command of the shard. It may be
// called under any lock, including the shard's.
func (sh *Shard) TickBy(at int64) { sh.timer.set(sh.kernel.Clock, at) }

// nextTimer is the earliest NextDue of the parts, in epoch milliseconds; 0 is never.
func (sh *Shard) nextTimer() (at int64) {
	for _, l := range sh.lifecycles {
		if due := l.NextDue(); due != 0 && (at == 0 || due < at) {
			at = due
		}
	}
	return at
}

// Tick runs what has become due.
func (sh *Shard) Tick() {
	sh.RunLazy(func() {
		if !sh.Closed {
			sh.runDue()
		}
	})
}

func (sh *Shard) runDue() {
	sh.timer.fired()
	now := sh.Now()
	for _, l := range sh.lifecycles {
		l.Tick(now)
	}
	sh.Arm()
}

// timer is a shard's timer. Its lock is a leaf: no other is taken under it.
type timer struct {
	call    func()
	mu      sync.Mutex
	pending clock.Timer // nil: not set
	at      int64
	stopped bool
}

// set schedules call for at, unless an earlier call is scheduled. It may be called earlier, too.
func (t *timer) set(c clock.Clock, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	if t.pending != nil {
		if t.at <= at {
			return
		}
		t.pending.Stop()
	}
	t.at = at
	t.pending = c.AfterFunc(clock.Until(c, time.UnixMilli(at)), t.call) // exact, not rounded to milliseconds
}

// fired notes that call runs. It stops a timer that was set after this one had fired: each call
// sets the next timer, so that a second one would be re-armed forever.
func (t *timer) fired() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending != nil {
		t.pending.Stop()
		t.pending = nil
	}
}

// stop cancels the timer, and refuses to set it again.
func (t *timer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.pending != nil {
		t.pending.Stop()
	}
}
