// Package invoke runs functions. The Pool keeps what runs them, environments,
// for the next invocation, bounds their number, and writes what they print.
// What an environment is, a process (invoke/process) or a server elsewhere
// (invoke/remote), is behind Runner.
//
// Functions run on the machine's time, even under a virtual clock: a caller that
// invokes one because a timer fired holds the clock until it has answered.
package invoke

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
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

	began time.Time // set by the pool
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
func Throttled(err error) bool { return fault.KindOf(err) == fault.Throttled }

// Invoker runs functions: *Pool.
type Invoker interface {
	Invoke(ctx context.Context, in Invocation) (Outcome, error)
}

// Until is i.Invoke, but returns without delay when ctx ends, with ctx's error. The
// function may continue for as long as its timeout allows.
func Until(ctx context.Context, i Invoker, in Invocation) (Outcome, error) {
	type end struct {
		out Outcome
		err error
	}
	ended := make(chan end, 1)
	go func() {
		out, err := i.Invoke(ctx, in)
		ended <- end{out, err}
	}()
	select {
	case e := <-ended:
		return e.out, e.err
	case <-ctx.Done():
		return Outcome{}, ctx.Err()
	}
}

// Log takes what functions print. It does not block.
type Log interface {
	// Rights are what the function's role may do to a log stream. They are asked for with
	// each start of a process and each invocation, and hold until the next.
	Rights(t *function.Target, group arn.ARN, stream string) authorize.LogRights
	// Put writes a line, which it keeps, with these rights, of which Put is one.
	Put(group arn.ARN, stream string, at time.Time, line []byte, as authorize.LogRights)
}

// Runner makes environments for functions of one kind.
type Runner interface {
	// Open makes an environment, in which nothing runs yet. An error is one of
	// package fault, or the server's failure.
	Open(t *function.Target, out Output) (Environment, error)
}

// Environment runs a version of a function, one invocation at a time.
type Environment interface {
	// Start makes it ready for Run, if it is not: this is what a cold start
	// does beforehand. A failure is the function's. It is no failure, here,
	// that a function needs longer than AWS gives it: Run tries again.
	Start() (*Failure, error)
	// Run runs the function once, at most for the function's timeout. An error
	// is the server's failure.
	Run(w *Work) (Result, error)
	// Usable reports that it can run another invocation: not once the credentials that it
	// has have come near their end. It is called while nothing runs, under locks.
	Usable() bool
	// Close ends it, also in the middle of a call of the others. When it
	// returns, nothing is left of it.
	Close()
}

// Output takes what the function prints in an environment.
type Output interface {
	// Line takes a line with its end, if it has one, and keeps it. Calls come
	// one at a time.
	Line(line []byte)
	// Stream names the log group and the log stream that it goes to.
	Stream() (group, name string)
}

// Work is an invocation, as an environment sees it.
type Work struct {
	RequestID     string
	Payload       []byte
	ClientContext []byte
	Trace         string
	FunctionARN   string // as invoked
}

// Result is what came of an invocation.
type Result struct {
	Payload  []byte        // if there is no failure
	Failure  *Failure      // nil: the function succeeded
	Duration time.Duration // of the handler
	Init     time.Duration // of the start, reported by the first invocation behind it; 0: it was warm
	MemoryMB int           // the most that it used so far; 0: unknown
	LogTail  []byte        // of the function, if it ran where Output does not reach
}

// Failure is a function's own failure.
type Failure struct {
	// Body is what the runtime said, unchanged. Empty: Type and Message say it.
	Body []byte
	Type string // "Sandbox.Timedout", "Runtime.ExitError", …
	// Message follows "RequestId: … Error: ".
	Message string
	// Status is what the REPORT line says: "timeout", "error", or empty for an
	// error that the handler reported.
	Status string
}

// The types of failures.
const (
	TypeTimedOut          = "Sandbox.Timedout"
	TypeExit              = "Runtime.ExitError"
	TypeInvalidEntrypoint = "Runtime.InvalidEntrypoint"
	TypeResponseTooLarge  = "Function.ResponseSizeTooLarge"
)

// Statuses of the REPORT line.
const (
	StatusTimeout = "timeout"
	StatusError   = "error"
)
