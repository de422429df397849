// Package invoke runs functions.
//
// Functions run on the machine's time, even under a virtual clock: whoever
// invokes one because a timer fired holds the clock until it has answered.
package invoke

import (
	"time"

	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
)

// Invocation asks for a function to be run once.
type Invocation struct {
	Target        function.Target
	RequestID     string
	Payload       []byte // JSON; empty is {}
	ClientContext []byte // JSON; empty: none
	Tail          bool   // Outcome.LogTail is wanted
	Trace         string // X-Amzn-Trace-Id; empty: one is made
}

// Outcome is what a function that ran gave.
type Outcome struct {
	Payload []byte
	// FunctionError is empty, or Unhandled if the function failed; Payload then
	// describes the failure.
	FunctionError    string
	LogTail          []byte        // the last 4 KB of the invocation's log, if asked for
	Duration, Billed time.Duration // of the handler; with the start, rounded up to ms
}

// Unhandled is the only FunctionError that runtimes report today.
const Unhandled = "Unhandled"

// Throttled reports that an invocation was refused for want of concurrency: it
// can be tried again.
func Throttled(err error) bool {
	return fault.KindOf(err) == fault.Throttled
}
