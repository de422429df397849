package pace

import (
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// logEvery is the interval at which a repeated condition of Pebble is logged: on a full disk it
// retries without a pause.
const logEvery = 10 * time.Second

// LogLimiter is a rate limit for a log line: one in logEvery. The zero value is ready, and it
// is safe for concurrent use.
type LogLimiter struct{ last atomic.Int64 } // Unix nanoseconds

// Allow reports whether the line may be logged now.
func (s *LogLimiter) Allow() bool {
	now, last := clock.System.Now().UnixNano(), s.last.Load()
	return now-last >= int64(logEvery) && s.last.CompareAndSwap(last, now)
}
