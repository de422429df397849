package invoke

import (
	"time"

	"godwit.dev/godwit/internal/arn"
)

// Event is an event of a function, for metrics.
type Event struct {
	Function  arn.ARN // without a qualifier
	Qualifier string  // as invoked: empty, "$LATEST", a version or an alias
	Version   string  // as invoked: empty, "$LATEST", a version or an alias
	Kind      EventKind
	At        time.Time // of an invocation, when it began
	Value     float64   // in the unit of Kind

	Concurrency Concurrency // with ConcurrentExecutions
}

// Concurrency counts the current invocations.
type Concurrency struct {
	Account  int // of all functions of the account in the region
	Function int
	Resource int // of the function as invoked: unqualified, a version, or an alias
	Version  int // of Resource, in the version that runs
}

// EventKind is the kind of an event. Kinds are named after AWS/Lambda's metrics.
type EventKind byte

// The kinds. The pool reports the first group, the consumer of event queues the second.
const (
	Invocations          EventKind = iota + 1 // 1: the function ran, with any result
	Errors                                    // of each invocation that ran 1: it failed, or 0
	Throttles                                 // 1: not run, because of a concurrency limit
	Duration                                  // milliseconds
	ConcurrentExecutions                      // of the function, as of now

	AsyncEventsReceived         // 1: an event was accepted
	AsyncEventAge               // milliseconds from acceptance until an invocation
	AsyncEventsDropped          // 1: it ended without a success of the function
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

// Events is called for every event, concurrently and also under locks: it must be quick, and
// must not call the pool. May be nil.
type Events func(Event)
