package invoke

import (
	"time"

	"godwit.dev/godwit/internal/arn"
)

// Event is something that happened to a function: what metrics are made of.
type Event struct {
	Function  arn.ARN // without a qualifier
	Qualifier string  // as invoked: empty, "$LATEST", a version or an alias
	Version   string  // that ran, or was to run; empty where none was found
	Kind      EventKind
	At        time.Time // of an invocation its beginning, whenever it is reported
	Value     float64   // as Kind says

	Concurrency Concurrency // ConcurrentExecutions
}

// Concurrency is how many invocations run at a moment.
type Concurrency struct {
	Account  int // of all functions of the account in the region
	Function int
	Resource int // of the function as it was invoked: unqualified, as a version, or by an alias
	Version  int // of these, in the version that runs
}

// EventKind says what happened. Kinds are named after AWS/Lambda's metrics.
type EventKind byte

// The kinds. The pool reports the first group, the consumer of event queues of
// the second.
const (
	Invocations          EventKind = iota + 1 // 1: the function ran, whatever came of it
	Errors                                    // of each that ran 1: it failed, or 0
	Throttles                                 // 1: it was not run, for want of concurrency
	Duration                                  // milliseconds
	ConcurrentExecutions                      // of the function, as of now

	AsyncEventsReceived         // 1: an event was accepted
	AsyncEventAge               // milliseconds from its acceptance until the function is run with it
	AsyncEventsDropped          // 1: it ended without the function's success
	DeadLetterErrors            // 1: its dead letter could not be sent
	DestinationDeliveryFailures // 1: its record could not be sent to a destination
)

var eventNames = [...]string{
	Invocations: "Invocations", Errors: "Errors", Throttles: "Throttles", Duration: "Duration",
	ConcurrentExecutions: "ConcurrentExecutions", AsyncEventsReceived: "AsyncEventsReceived",
	AsyncEventAge: "AsyncEventAge", AsyncEventsDropped: "AsyncEventsDropped",
	DeadLetterErrors: "DeadLetterErrors", DestinationDeliveryFailures: "DestinationDeliveryFailures",
}

// String is the metric's name.
func (k EventKind) String() string { return eventNames[k] }

// Events is called for every event. It is called concurrently, also under locks:
// it must be quick, and not call the pool. May be nil.
type Events func(Event)
