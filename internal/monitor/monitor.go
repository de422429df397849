// Package monitor watches the service over time: it makes CloudWatch's metrics
// of what happens to queues and topics, and has what is due each minute done.
package monitor

import (
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// Part is something that is due each minute while there is anything to do.
type Part interface {
	// Tick is called after the end of each minute, which at is, of the parts in
	// their order. more asks for another call after the next minute.
	Tick(at time.Time) (more bool, err error)
}

// Minutes calls its parts after each minute that one of them asked for. While
// none does it has no timer, so that a virtual clock passes idle days at once.
type Minutes struct {
	clock clock.Clock
	fatal func(error)

	turn  sync.Mutex // held while parts are called
	mu    sync.Mutex // guards what follows
	parts []Part     // nil: not started
	timer clock.Timer
	asked bool // before the start
	over  bool
}

// NewMinutes makes a Minutes without parts. An error of a part goes to fatal.
func NewMinutes(c clock.Clock, fatal func(error)) *Minutes { return &Minutes{clock: c, fatal: fatal} }

// Start begins with the calls that were asked for.
func (m *Minutes) Start(parts ...Part) {
	m.mu.Lock()
	m.parts = parts
	asked := m.asked
	m.mu.Unlock()
	if asked {
		m.Wake()
	}
}

// Wake asks for a call after the present minute. It does not block, and may be
// called under any lock.
func (m *Minutes) Wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parts == nil {
		m.asked = true
	}
	if m.parts == nil || m.timer != nil || m.over {
		return
	}
	now := m.clock.Now()
	m.timer = m.clock.AfterFunc(now.Truncate(time.Minute).Add(time.Minute).Sub(now), m.tick)
}

func (m *Minutes) tick() {
	m.turn.Lock()
	defer m.turn.Unlock()
	m.mu.Lock()
	m.timer = nil // what comes from now on asks anew
	parts := m.parts
	if m.over {
		parts = nil
	}
	m.mu.Unlock()
	at := m.clock.Now().Truncate(time.Minute)
	again := false
	for _, part := range parts {
		more, err := part.Tick(at)
		if err != nil {
			m.fatal(err)
			return
		}
		again = again || more
	}
	if again {
		m.Wake()
	}
}

// Stop ends the calls; none is under way when it returns.
func (m *Minutes) Stop() {
	m.mu.Lock()
	m.over = true
	if m.timer != nil {
		m.timer.Stop()
	}
	m.mu.Unlock()
	m.turn.Lock()
	defer m.turn.Unlock()
}

// TickFunc makes a Part of a function.
type TickFunc func(at time.Time) (more bool, err error)

// Tick calls f.
func (f TickFunc) Tick(at time.Time) (more bool, err error) { return f(at) }
