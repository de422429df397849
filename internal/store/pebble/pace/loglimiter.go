package pace

import (
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// logEvery is how often a state that Pebble enters again and again is logged:
// on a full disk it retries without a pause.
const logEvery = 10 * time.Second

// Seldom is true at most once in logEvery.
type Seldom struct{ last atomic.Int64 } // Unix nanoseconds

// Now reports whether it is time again.
func (s *Seldom) Now() bool {
	now, last := clock.System.Now().UnixNano(), s.last.Load()
	return now-last >= int64(logEvery) && s.last.CompareAndSwap(last, now)
}
