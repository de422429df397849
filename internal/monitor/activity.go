package monitor

import "sync/atomic"

// activeMinutes is how many minutes a queue or topic has metrics after its last use, or after
// it last held messages. Source: the SQS and SNS developer guides.
const activeMinutes = 6 * 60

// activity says whether a resource has metrics each minute. It may be used at any time, also
// while the end of a minute finds it idle: of touch and deactivate, the later one sees the
// effect of the earlier.
type activity struct {
	used    atomic.Int64 // the last minute in which it was used, or had messages
	touched atomic.Bool  // it was used since the last check
	active  atomic.Bool
}

// touch notes a use in a minute; inactive says that it must be activated.
func (l *activity) touch(minute int64) (inactive bool) {
	if l.used.Load() != minute {
		l.used.Store(minute)
	}
	if !l.touched.Load() {
		l.touched.Store(true)
	}
	return !l.active.Load()
}

// beginCheck begins a check whether it has metrics to report.
func (l *activity) beginCheck() { l.touched.Store(false) }

// idle reports that it was not used for activeMinutes.
func (l *activity) idle(minute int64) bool { return minute-l.used.Load() >= activeMinutes }

// deactivate ends the activity, and calls remove. reactivate says that it was used since the
// check, so that it must be activated again.
func (l *activity) deactivate(remove func()) (reactivate bool) {
	l.active.Store(false)
	remove()
	return l.touched.Load()
}
