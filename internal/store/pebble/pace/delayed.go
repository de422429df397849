// Package pace says when a store's background work is done, and logged.
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

// After has f run, unless something waits to be run already, or it was ended. From the
// moment in which f begins the next may be set.
func (d *Delayed) After(wait time.Duration, f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set(wait, f)
}

// Now has f run at once, in place of what waits.
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

// Refuse has nothing run that has not begun.
func (d *Delayed) Refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.stop()
}

// End is Refuse, and waits for what has begun.
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
