package consume

import (
	"context"
	"time"
)

// Work is a leased message of a backlog. Exactly one of Ack, Retry, Release and a HandOver
// that succeeds concludes the lease. Methods are called by one goroutine at a time.
type Work interface {
	// Host is the destination whose limit the attempt counts for, in one of
	// Options.Pools. It is the same for all messages of a backlog. It is not called for a
	// ReservingPool.
	Host() (pool *Pool, name string)
	// Plan says when an attempt may begin. It and Host are called under the consumer's
	// lock: they must be quick, and not call the consumer.
	Plan() Plan
	// Attempt makes one attempt, or finds that there is nothing to attempt any more. It
	// does not conclude the lease: the consumer does, by the result. ctx ends when a
	// Stop gives up waiting.
	Attempt(ctx context.Context) Result
	// Ack removes the message, which is done.
	Ack()
	// Retry requeues the message to be due at a time, with the history of its attempts
	// and, if it has ended, why.
	Retry(due time.Time)
	// HandOver moves a message that has ended to its dead-letter queue or destination,
	// or drops it if there is none. It returns false if the target cannot take it now:
	// then the message is still leased.
	HandOver(ctx context.Context) bool
	// Release requeues the message, due now, as if it had not been leased.
	Release()
}

// Plan says when the attempt of a leased message may begin.
type Plan struct {
	// Limit bounds the attempts of the backlog in flight, with a ReservingPool; 0: not
	// known, as before.
	Limit int
	// Rate bounds the attempts of the backlog that begin in a second; 0: no limit.
	Rate int
	// Deadline is the latest time at which an attempt may begin, with a resolution of a
	// millisecond; zero: none. After it Attempt is called at once, whatever the host and the
	// rate, and must return Ended.
	Deadline time.Time
	// Ended says that only the hand-over is left, which does not wait for a host.
	Ended bool
}

// Disposition is how a lease is concluded after an attempt.
type Disposition byte

// The dispositions. The zero value is the safe one.
const (
	Cancelled Disposition = iota // the attempt does not count: Release
	Retry                        // another attempt follows: Retry
	Ended                        // no further attempt: HandOver
	Done                         // Ack
)

// Result is the result of an attempt.
type Result struct {
	Disposition Disposition
	Due         time.Time     // of the next attempt, with Retry
	Took        time.Duration // in real time; decides whether the host is slow or quick
	// Pause is how long the backlog is not leased; 0: no pause.
	Pause time.Duration
}

// Expired reports whether a deadline, if not zero, has passed. Times are compared in
// milliseconds, the resolution of due times: at the deadline itself an attempt is still made.
func Expired(deadline, now time.Time) bool {
	return !deadline.IsZero() && now.UnixMilli() > deadline.UnixMilli()
}
