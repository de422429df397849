package clock

import "time"

// Stepping is a clock that may be set, or go on while the machine sleeps: its timers, which count
// the time that the machine runs, know nothing of either.
type Stepping interface {
	Clock
	Steps()
}

// Steps implements Stepping.
func (system) Steps() {}

// recheck bounds how late a timer for a moment is after a clock has stepped.
const recheck = time.Minute

// Until is how long a timer for a moment may be set for. Of a clock that may step it ends earlier,
// so that whoever set it looks again what is due.
func Until(c Clock, at time.Time) time.Duration {
	d := max(at.Sub(c.Now()), 0)
	if _, ok := c.(Stepping); ok {
		d = min(d, recheck)
	}
	return d
}
