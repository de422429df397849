package consume

import (
	"context"
	"time"
)

// Work is a leased message of a backlog, and what can be done about it. Its methods
// are called by one goroutine at a time.
type Work interface {
	// Host says who answers: attempts are bounded and shared out by host, in a pool of
	// Options.Pools. A backlog's never changes. Where the pool reserves room it is not
	// asked for.
	Host() (pool *Pool, name string)
	// Plan says when an attempt may begin. It and Host are called under the consumer's
	// lock: they must be quick, and not call the consumer.
	Plan() Plan
	// Attempt makes one attempt, or finds that there is nothing to attempt any more.
	// It changes nothing that lasts: what follows is the consumer's to call. ctx ends
	// when a Stop gives up waiting.
	Attempt(ctx context.Context) Verdict
	// Ack removes the message: it is done.
	Ack()
	// Retry keeps what is known of the attempts so far, and of the end if it has
	// ended; the message is due again at a moment.
	Retry(due time.Time)
	// HandOver gives what has ended to where it goes then (a dead-letter queue,
	// a destination), and removes it. It is false if the target cannot take it now: then
	// the message is leased as before.
	HandOver(ctx context.Context) bool
	// Release gives the message back, due now, as if it had not been leased.
	Release()
}

// Plan is what is known of a message when it has been leased.
type Plan struct {
	// Limit bounds the attempts of the backlog under way at once, where the pool
	// reserves room; 0: it is not known.
	Limit int
	// Rate bounds the attempts of the backlog that begin in a second; 0: no limit.
	Rate int
	// Deadline is the last moment at which an attempt may begin, zero for none. Behind
	// it Attempt is called at once, whatever the host and the rate, to find it ended.
	Deadline time.Time
	// Ended says that only the hand-over is left, which waits for no host.
	Ended bool
}

// Step is what follows an attempt.
type Step byte

// The steps. The zero value is the one that loses nothing.
const (
	Cancelled Step = iota // it does not count: Release
	Again                 // another attempt follows: Retry
	Ended                 // no further attempt: HandOver
	Done                  // Ack
)

// Verdict is what came of an attempt.
type Verdict struct {
	Step Step
	Due  time.Time     // of the next attempt, with Again
	Took time.Duration // real time, by which hosts that hang are known
	// Pause is for how long nothing more of the backlog is leased.
	Pause time.Duration
}

// Expired reports that a deadline, if it is not zero, has passed. Both are compared
// in milliseconds, in which due times are kept: an attempt that is due at the
// deadline itself is made.
func Expired(deadline, now time.Time) bool {
	return !deadline.IsZero() && now.UnixMilli() > deadline.UnixMilli()
}
