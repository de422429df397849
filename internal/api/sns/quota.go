package sns

import (
	"sync"

	"golang.org/x/time/rate"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/fault"
)

// maxLimiters bounds the memory of a quota. Beyond it all limiters are dropped, so that an
// account over its quota may publish a second's quota early.
const maxLimiters = 10_000

// quota bounds what an account may publish in a region: messages a second, and bytes by the
// function bytes.
type quota struct {
	perSecond int // 0: any number
	bytes     func(account string, bytes int) error

	mu       sync.Mutex
	limiters map[place]*rate.Limiter
}

// place is the scope of a quota.
type place struct{ account, region string }

func newQuota(perSecond int, bytes func(account string, bytes int) error) *quota {
	if bytes == nil {
		bytes = func(string, int) error { return nil }
	}
	return &quota{perSecond: perSecond, bytes: bytes, limiters: map[place]*rate.Limiter{}}
}

// take counts messages by their sizes in bytes. It fails with Throttled, and then counts nothing.
func (q *quota) take(call *api.Call, sizes ...int) error {
	n, sum := len(sizes), 0
	for _, size := range sizes {
		sum += size
	}
	if q.perSecond <= 0 || n == 0 {
		return q.bytes(call.Account, sum)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	at := place{call.Account, call.Region}
	l, ok := q.limiters[at]
	if !ok {
		if len(q.limiters) >= maxLimiters {
			clear(q.limiters)
		}
		// The burst is at least a whole batch, however low the quota is.
		l = rate.NewLimiter(rate.Limit(q.perSecond), max(q.perSecond, maxEntries))
		q.limiters[at] = l
	}
	taken := l.ReserveN(call.Time, n)
	if taken.DelayFrom(call.Time) > 0 { // infinite of one that is not OK
		taken.CancelAt(call.Time)
		return fault.New(fault.Throttled, "Rate exceeded")
	}
	err := q.bytes(call.Account, sum)
	if err != nil {
		taken.CancelAt(call.Time)
	}
	return err
}
