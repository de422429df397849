// Package monitor watches the service over time: it makes CloudWatch's metrics
// of what happens to queues and topics, and has what is due each minute done.
package monitor

import (
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// Part is something that is due each minute, or so, while there is anything to do.
type Part interface {
	// Tick is called at the end of each interval, which at is, of the parts in
	// their order. more asks for another call at the end of the next.
	Tick(at time.Time) (more bool, err error)
}

// Ticker calls its parts at the end of each interval that one of them asked for.
// While none does it has no timer, so that a virtual clock passes idle days at once.
type Ticker struct {
	every time.Duration
	clock clock.Clock
	fatal func(error)

	turn  sync.Mutex // held while parts are called
	mu    sync.Mutex // guards what follows
	parts []Part     // nil: not started
	timer clock.Timer
	asked bool // before the start
	over  bool
}

// NewTicker makes a Ticker without parts, whose intervals are of a length. An error
// of a part goes to fatal.
func NewTicker(every time.Duration, c clock.Clock, fatal func(error)) *Ticker {
	return &Ticker{every: every, clock: c, fatal: fatal}
}

// Start begins with the calls that were asked for.
func (t *Ticker) Start(parts ...Part) {
	t.mu.Lock()
	t.parts = parts
	asked := t.asked
	t.mu.Unlock()
	if asked {
		t.Wake()
	}
}

// Wake asks for a call at the end of the present interval. It does not block, and
// may be called under any lock.
func (t *Ticker) Wake() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parts == nil {
		t.asked = true
	}
	if t.parts == nil || t.timer != nil || t.over {
		return
	}
	now := t.clock.Now()
	t.timer = t.clock.AfterFunc(now.Truncate(t.every).Add(t.every).Sub(now), t.tick)
}

func (t *Ticker) tick() {
	t.turn.Lock()
	defer t.turn.Unlock()
	t.mu.Lock()
	t.timer = nil // what comes from now on asks anew
	parts := t.parts
	if t.over {
		parts = nil
	}
	t.mu.Unlock()
	at := t.clock.Now().Truncate(t.every)
	again := false
	for _, part := range parts {
		more, err := part.Tick(at)
		if err != nil {
			t.fatal(err)
			return
		}
		again = again || more
	}
	if again {
		t.Wake()
	}
}

// Stop ends the calls; none is under way when it returns.
func (t *Ticker) Stop() {
	t.mu.Lock()
	t.over = true
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.turn.Lock()
	defer t.turn.Unlock()
}

// TickFunc makes a Part of a function.
type TickFunc func(at time.Time) (more bool, err error)

// Tick calls f.
func (f TickFunc) Tick(at time.Time) (more bool, err error) { return f(at) }
