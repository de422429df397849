// Package invoke runs functions. The Pool keeps their environments for further invocations,
// bounds their number, and writes the functions' output to logs. Runner implements
// environments: as processes (invoke/process) or as remote servers (invoke/remote).
//
// Functions run in the machine's time, also with a virtual clock: a timer that invokes one
// holds the clock until the answer.
package invoke

import (
	"context"
	"errors"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
)

// Invocation is the request to run a function once.
type Invocation struct {
	Target        function.Target
	RequestID     string
	Payload       []byte // JSON; empty is {}
	ClientContext []byte // JSON; empty: none
	Tail          bool   // return Outcome.LogTail
	Trace         string // X-Amzn-Trace-Id; empty: a new one

	began time.Time // set by the pool
}

// Outcome is the result of a function that ran.
type Outcome struct {
	Payload []byte
	// FunctionError is empty, or Unhandled if the function failed; then Payload describes the
	// failure.
	FunctionError string
	LogTail       []byte        // the last 4 KB of the invocation's log, if requested
	Billed        time.Duration // of the handler and its start, rounded up to ms
}

// Unhandled is the only FunctionError that runtimes report today.
const Unhandled = "Unhandled"

// Throttled reports whether an invocation was refused because of a concurrency limit: it can
// be retried.
func Throttled(err error) bool { return fault.KindOf(err) == fault.Throttled }

// Refused reports whether an invocation was refused for now, before the function had any of it.
func Refused(err error) bool { return Throttled(err) || errors.Is(err, ErrStopping) }

// Invoker runs functions; *Pool implements it.
type Invoker interface {
	Invoke(ctx context.Context, in Invocation) (Outcome, error)
}

// Until calls i.Invoke, but returns without delay when ctx ends, with ctx's error. The
// function may continue until its timeout.
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

// Log stores the output of functions. It does not block.
type Log interface {
	// Rights evaluates what the function's role allows on a log stream. It is called with
	// each start of a process and each invocation, and the result is used until the next
	// call.
	Rights(t *function.Target, group arn.ARN, stream string) authorize.LogRights
	// Put stores a line, with the result of Rights. It keeps the line.
	Put(group arn.ARN, stream string, at time.Time, line []byte, as authorize.LogRights)
}

// Runner makes environments for functions of one kind.
type Runner interface {
	// Open makes an environment, without starting anything. The error is of package fault, or
	// an internal one. It gives up when ctx ends, as the pool stops.
	Open(ctx context.Context, t *function.Target, out Output) (Environment, error)
}

// Environment runs a version of a function, one invocation at a time.
type Environment interface {
	// Start prepares Run, if necessary: it is the work of a cold start before the invocation.
	// A Failure is the function's fault. A start that exceeds AWS's time limit is no failure
	// here: Run tries again.
	Start() (*Failure, error)
	// Run runs the function once, at most for the function's timeout. An error is internal.
	Run(w *Work) (Result, error)
	// Usable reports whether it can run another invocation: not if its credentials are about
	// to expire. It is called while nothing runs, under locks.
	Usable() bool
	// Close ends it, also during a call of another method. On return all its resources are
	// released.
	Close()
}

// Output receives the output of a function in an environment.
type Output interface {
	// Line receives a line with its line end, if there is one, and keeps it. Calls are
	// sequential.
	Line(line []byte)
	// Stream is the log group and the log stream of the output.
	Stream() (group, name string)
}

// Work is an invocation for an environment.
type Work struct {
	RequestID     string
	Payload       []byte
	ClientContext []byte
	Trace         string
	FunctionARN   string // as invoked
}

// Result is the result of an invocation.
type Result struct {
	Payload  []byte        // without a failure
	Failure  *Failure      // nil: the function succeeded
	Duration time.Duration // of the handler
	Init     time.Duration // of the start, in the first invocation after it; 0: a warm start
	MemoryMB int           // peak so far; 0: unknown
	LogTail  []byte        // of the function, if its output does not go to Output
}

// Failure is a failure of the function itself.
type Failure struct {
	// Body is the runtime's report of the failure, unchanged. Empty: Type and Message
	// describe it.
	Body []byte
	Type string // "Sandbox.Timedout", "Runtime.ExitError", …
	// Message follows "RequestId: … Error: ".
	Message string
	// Status is the status in the REPORT line: "timeout", "error", or empty for an error that
	// the handler reported.
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
