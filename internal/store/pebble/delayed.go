package pebble

import (
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// delayed runs a function later, once, on a goroutine of its own. The zero value is
// ready. It must be ended.
type delayed struct {
	mu      sync.Mutex // guards what follows
	timer   clock.Timer
	ended   bool
	running sync.WaitGroup
}

// after has f run, unless something waits to be run already, or it was ended. From the
// moment in which f begins the next may be set.
func (d *delayed) after(wait time.Duration, f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.set(wait, f)
}

// now has f run at once, in place of what waits.
func (d *delayed) now(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stop()
	d.set(0, f)
}

func (d *delayed) set(wait time.Duration, f func()) {
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

func (d *delayed) stop() {
	if d.timer != nil && d.timer.Stop() {
		d.timer = nil
		d.running.Done()
	}
}

// refuse has nothing run that has not begun.
func (d *delayed) refuse() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = true
	d.stop()
}

// end is refuse, and waits for what has begun.
func (d *delayed) end() {
	d.refuse()
	d.running.Wait()
}

// renew undoes end.
func (d *delayed) renew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ended = false
}
