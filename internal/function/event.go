package function

import (
	"time"

	"godwit.dev/godwit/internal/keyspace"
)

// Event is an asynchronous invocation in the function's queue.
type Event struct {
	ID        [16]byte // of the request; the same for all attempts
	Qualifier string   // as invoked; empty: none
	Trace     string   // X-Amzn-Trace-Id, or empty
	Payload   []byte   // JSON; at most MaxEventBytes
}

// MaxEventBytes bounds the payload of an event. Source: the quotas of Lambda.
const MaxEventBytes = 1 << 20

// Condition is the final state of an event.
type Condition string

// The conditions, as named in invocation records.
const (
	Success                 Condition = "Success"
	RetriesExhausted        Condition = "RetriesExhausted"
	EventAgeExceeded        Condition = "EventAgeExceeded"
	ZeroReservedConcurrency Condition = "ZeroReservedConcurrency"
)

// Progress is the persisted state of an event between attempts.
type Progress struct {
	Attempts int `json:"attempts"`           // so far, including throttled ones
	Failures int `json:"failures,omitempty"` // of the function itself
	Refusals int `json:"refusals,omitempty"` // consecutive attempts at which it could not run
	// Refusal is why it could not run at the last attempt, and Status the HTTP status of
	// that; empty and 0 if it ran.
	Refusal string `json:"refusal,omitempty"`
	Status  int    `json:"status,omitempty"`
	// Response is the response of the last run; nil: there was none.
	Response *Response `json:"response,omitempty"`
	// Condition is set once the event has ended, and only its hand-over is left.
	Condition Condition `json:"condition,omitempty"`
	// Handed are the receivers that have it already.
	Handed []Receiver `json:"handed,omitempty"`
}

// Receiver is a receiver of an ended event.
type Receiver string

// The receivers.
const (
	ToDeadLetter  Receiver = "dead-letter"
	ToDestination Receiver = "destination"
)

// Response is the result of a run.
type Response struct {
	Version string `json:"version"` // that ran
	// Error is "Unhandled" if the function failed, or empty.
	Error string `json:"error,omitempty"`
	// Payload is nil if it exceeds MaxEventBytes: no receiver could accept it.
	Payload []byte `json:"payload,omitempty"`
}

const progressVersion = 1

// Encode is the persisted form.
func (p *Progress) Encode() []byte { return keyspace.EncodeJSON(progressVersion, p) }

// DecodeProgress decodes the result of Encode; an empty value is the progress of an event
// without any attempt.
func DecodeProgress(value []byte) (p Progress, err error) {
	if len(value) == 0 {
		return p, nil
	}
	return p, keyspace.DecodeJSON(progressVersion, value, &p)
}

// The delays of retries. Source: the Lambda developer guide, "Error handling for
// asynchronous invocation".
const (
	failureStep = time.Minute
	refusalMin  = time.Second
	refusalMax  = 5 * time.Minute
)

// FailureDelay is the delay of the retry after a function's n-th failure, from 1.
func FailureDelay(n int) time.Duration { return time.Duration(n) * failureStep }

// RefusalDelay is the delay after the n-th consecutive refusal, from 1: a throttle, or
// another reason why the function could not run.
func RefusalDelay(n int) time.Duration {
	if n > 16 {
		return refusalMax
	}
	return min(refusalMin<<(n-1), refusalMax)
}
