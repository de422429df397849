package function

import (
	"encoding/json"
	"fmt"
	"time"
)

// Event is an asynchronous invocation: what a function is to be run with, once
// it is in the function's queue.
type Event struct {
	ID        [16]byte // of the request; the same for all attempts
	Qualifier string   // as invoked; empty for none
	Trace     string   // X-Amzn-Trace-Id, or empty
	Payload   []byte   // JSON; at most MaxEventBytes
}

// MaxEventBytes bounds the payload of an event. Source: the quotas of Lambda.
const MaxEventBytes = 1 << 20

// Condition is how an event has ended.
type Condition string

// The conditions, as records of invocations name them.
const (
	Success                 Condition = "Success"
	RetriesExhausted        Condition = "RetriesExhausted"
	EventAgeExceeded        Condition = "EventAgeExceeded"
	ZeroReservedConcurrency Condition = "ZeroReservedConcurrency"
)

// Progress is what is kept of an event between two attempts.
type Progress struct {
	Attempts int `json:"attempts"`           // made so far, those that were throttled included
	Failures int `json:"failures,omitempty"` // of the function itself
	Refusals int `json:"refusals,omitempty"` // in a row: it could not be run
	// Refusal is why it could last not be run, and Status the HTTP status of that;
	// empty and 0 if it was last run.
	Refusal string `json:"refusal,omitempty"`
	Status  int    `json:"status,omitempty"`
	// Response is of the last run; nil: there was none.
	Response *Response `json:"response,omitempty"`
	// Condition is set once the event has ended, and waits only to be handed over.
	Condition Condition `json:"condition,omitempty"`
	// Handed says to whom it has been handed over already.
	Handed []Receiver `json:"handed,omitempty"`
}

// Receiver is whom an event that has ended is handed over to.
type Receiver string

// The receivers.
const (
	ToDeadLetter  Receiver = "dead-letter"
	ToDestination Receiver = "destination"
)

// Response is what came of a run.
type Response struct {
	Version string `json:"version"` // that ran
	// Error is "Unhandled" if the function failed, or empty.
	Error string `json:"error,omitempty"`
	// Payload is nil if it was larger than MaxEventBytes: nobody could be sent it.
	Payload []byte `json:"payload,omitempty"`
}

const progressVersion = 1

// Encode writes the progress for the store.
func (p *Progress) Encode() []byte {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings, numbers and bytes always marshal
	}
	return append([]byte{progressVersion}, text...)
}

// DecodeProgress reads what Encode wrote; nothing is the progress of an event
// that was never attempted.
func DecodeProgress(value []byte) (p Progress, err error) {
	if len(value) == 0 {
		return p, nil
	}
	if value[0] != progressVersion {
		return p, fmt.Errorf("function: progress of an event of version %d", value[0])
	}
	return p, json.Unmarshal(value[1:], &p)
}

// The delays of retries. Source: the Lambda developer guide, "Error handling for
// asynchronous invocation".
const (
	failureStep = time.Minute
	refusalMin  = time.Second
	refusalMax  = 5 * time.Minute
)

// FailureDelay is the wait before the retry that follows the n-th failure of a
// function, from 1.
func FailureDelay(n int) time.Duration { return time.Duration(n) * failureStep }

// RefusalDelay is the wait after the n-th refusal in a row, from 1: for want of
// concurrency, or because the function could not be run.
func RefusalDelay(n int) time.Duration {
	if n > 16 {
		return refusalMax
	}
	return min(refusalMin<<(n-1), refusalMax)
}
