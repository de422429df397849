package monitor

import "sync/atomic"

// ActiveMinutes is for how long a queue or topic has metrics after anything was
// done with it, or it held messages. Source: the SQS and SNS developer guides.
const ActiveMinutes = 6 * 60

// activity says whether something has metrics each minute. Things happen to it at any
// time, also while the end of a minute finds it idle: of touch and deactivate, the later
// one sees what the earlier has done.
type activity struct {
	used    atomic.Int64 // the last minute in which anything was done, or there were messages
	touched atomic.Bool  // anything was done since the last check
	active  atomic.Bool
}

// touch notes that something was done in a minute; inactive says that it has to be
// made active.
func (l *activity) touch(minute int64) (inactive bool) {
	if l.used.Load() != minute {
		l.used.Store(minute)
	}
	if !l.touched.Load() {
		l.touched.Store(true)
	}
	return !l.active.Load()
}

// beginCheck begins a check whether there is anything to report.
func (l *activity) beginCheck() { l.touched.Store(false) }

// idle reports whether nothing was done for long.
func (l *activity) idle(minute int64) bool { return minute-l.used.Load() >= ActiveMinutes }

// deactivate ends the activity, after which remove is called. reactivate says that
// something was done since the check, so that it has to be made active again.
func (l *activity) deactivate(remove func()) (reactivate bool) {
	l.active.Store(false)
	remove()
	return l.touched.Load()
}
