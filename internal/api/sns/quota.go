package sns

import (
	"sync"

	"golang.org/x/time/rate"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// maxLimiters bounds the memory of a quota. Beyond it all start over, which
// lets an account that was over its quota publish a second's worth too early.
const maxLimiters = 10_000

// quota bounds what an account may publish in a region, in messages a second.
// A nil quota bounds nothing.
type quota struct {
	perSecond int

	mu       sync.Mutex
	limiters map[place]*rate.Limiter
}

// place is where a quota is counted.
type place struct{ account, region string }

func newQuota(perSecond int) *quota {
	if perSecond <= 0 {
		return nil
	}
	return &quota{perSecond: perSecond, limiters: map[place]*rate.Limiter{}}
}

// take counts n messages. It fails with Throttled, and then counts none.
func (q *quota) take(call *api.Call, n int) error {
	if q == nil || n == 0 {
		return nil
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	at := place{call.Account, call.Region}
	l, ok := q.limiters[at]
	if !ok {
		if len(q.limiters) >= maxLimiters {
			clear(q.limiters)
		}
		// A whole batch must fit, however low the quota is.
		l = rate.NewLimiter(rate.Limit(q.perSecond), max(q.perSecond, maxEntries))
		q.limiters[at] = l
	}
	if !l.AllowN(call.Time, n) {
		return fault.New(fault.Throttled, "Rate exceeded")
	}
	return nil
}
