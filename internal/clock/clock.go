// Package clock is the source of time. Everything that waits for a domain deadline (a delay,
// a visibility timeout, a retry) uses a Clock, so that the whole server can run on a virtual
// one.
//
// What waits for a machine or a person (an HTTP timeout, a long poll, a group commit) uses
// the System clock even if the server's is virtual.
package clock

import "time"

// Clock has the time, and timers.
type Clock interface {
	// Now is the current time, in UTC.
	Now() time.Time
	// AfterFunc calls f once d has passed, in a goroutine of its own. A d of
	// zero or less is due at once.
	AfterFunc(d time.Duration, f func()) Timer
	// Hold keeps a virtual clock from advancing until the returned function is called,
	// exactly once: work in progress holds the clock. On the system clock it does nothing.
	Hold() (release func())
}

// ISO8601 is the layout of the times in AWS's messages, records and logs, which are in UTC.
const ISO8601 = "2006-01-02T15:04:05.000Z"

// Time is the time of epoch milliseconds, the persisted form of times.
func Time(milliseconds int64) time.Time { return time.UnixMilli(milliseconds).UTC() }

// Timer is a pending call of AfterFunc.
type Timer interface {
	// Stop cancels the call; false: it already ran or was stopped.
	Stop() bool
}

// System is the machine's clock.
var System Clock = system{}

type system struct{}

func (system) Now() time.Time { return time.Now().UTC() }

func (system) AfterFunc(d time.Duration, f func()) Timer { return time.AfterFunc(d, f) }

func (system) Hold() func() { return func() {} }
