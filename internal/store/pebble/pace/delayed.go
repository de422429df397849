// Package pace schedules a store's background work, and limits what it logs.
package pace

import (
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// Delayed runs a function later, once, on a goroutine of its own. The zero value is
// ready. It must be ended.
type Delayed struct {
	mu      sync.Mutex // guards what follows
	timer   clock.Timer
	ended   bool
	running sync.WaitGroup
}

// After schedules f after wait, unless a function is scheduled already, or End or Refuse was
// called. Once f has begun, and from within it, another may be scheduled.
func (d *Delayed) After(wait time.Duration, f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set(wait, f)
}

// Now runs f immediately, in place of a scheduled function.
func (d *Delayed) Now(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
	d.set(0, f)
}

func (d *Delayed) set(wait time.Duration, f func()) {
	if d.timer != nil || d.ended {
		return
	}
	d.running.Add(1)
	d.timer = clock.System.AfterFunc(wait, func() {
		defer d.running.Done()
		d.mu.Lock()
		d.timer = nil
		d.mu.Unlock()
		f()
	})
}

func (d *Delayed) stop() {
	if d.timer != nil && d.timer.Stop() {
		d.timer = nil
		d.running.Done()
	}
}

// Refuse cancels a scheduled function, and schedules no further one.
func (d *Delayed) Refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.stop()
}

// End is Refuse, and waits for a running function. It must not be called by that function.
func (d *Delayed) End() {
	d.Refuse()
	d.running.Wait()
}

// Renew undoes End.
func (d *Delayed) Renew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = false
}
