// Package rates limits a rate for each of many keys, such as the requests of accounts.
package rates

import (
	"sync"
	"time"
)

// maxIdle is the number of buckets from which on full ones are removed.
const maxIdle = 10_000

// Rates allows each key a number per second, and as many at once after a second without any.
type Rates struct {
	perSecond func() int
	now       func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket
	sweep   int // the number of buckets at which idle ones are removed
}

// bucket is the remaining allowance at a time.
type bucket struct {
	left float64
	at   time.Time
}

// New makes Rates; perSecond returns the current rate, 0 means no limit; now is the current
// time.
func New(perSecond func() int, now func() time.Time) *Rates {
	return &Rates{perSecond: perSecond, now: now, buckets: map[string]bucket{}, sweep: maxIdle}
}

// Take counts one, and reports whether it is allowed. It is not counted if it is not.
func (r *Rates) Take(who string) bool { return r.TakeAll(who, 1) }

// TakeAll is Take of n at once. More than a second's allowance may be taken after a second
// without any; what follows waits for as long as all of it takes.
func (r *Rates) TakeAll(who string, n int64) bool {
	rate := float64(r.perSecond())
	if rate <= 0 || n <= 0 {
		return true
	}
	now := r.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	b, ok := r.buckets[who]
	if !ok {
		b = bucket{rate, now}
		r.forget(rate, now)
	}
	b.left, b.at = b.filled(rate, now), now
	allowed := b.left >= min(float64(n), rate)
	if allowed {
		b.left -= float64(n)
	}
	r.buckets[who] = b
	return allowed
}

// filled is the current allowance of a bucket. A clock that goes back adds nothing.
func (b bucket) filled(rate float64, now time.Time) float64 {
	return min(rate, b.left+max(now.Sub(b.at), 0).Seconds()*rate)
}

// forget removes full buckets, if there are many; r.mu is held.
func (r *Rates) forget(rate float64, now time.Time) {
	if len(r.buckets) < r.sweep {
		return
	}
	for who, b := range r.buckets {
		if b.filled(rate, now) >= rate {
			delete(r.buckets, who)
		}
	}
	r.sweep = max(maxIdle, 2*len(r.buckets))
}
