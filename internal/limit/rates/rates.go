// Package rates bounds how often something is done for each of many, such as the requests of
// accounts.
package rates

import (
	"sync"
	"time"
)

// maxIdle is how many are remembered before those are forgotten that may do all that they
// may.
const maxIdle = 10_000

// Rates lets each do so much a second, and as much at once after a second without any.
type Rates struct {
	perSecond func() int
	now       func() time.Time

	mu      sync.Mutex
	buckets map[string]bucket
	sweep   int // buckets at which the idle ones go
}

// bucket is what one may still do, as of a moment.
type bucket struct {
	left float64
	at   time.Time
}

// New lets each do as many things a second as perSecond gives at that moment, by the time that
// now gives; 0 lets everybody do any number.
func New(perSecond func() int, now func() time.Time) *Rates {
	return &Rates{perSecond: perSecond, now: now, buckets: map[string]bucket{}, sweep: maxIdle}
}

// Take counts one, and reports whether it may be done. What may not is not counted.
func (r *Rates) Take(who string) bool { return r.TakeAll(who, 1) }

// TakeAll is Take of n at once. More than a second's worth may be done after a second without
// any, and what follows waits for as long as all of it takes.
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

// filled is what is left of a bucket now. A clock that goes back fills nothing.
func (b bucket) filled(rate float64, now time.Time) float64 {
	return min(rate, b.left+max(now.Sub(b.at), 0).Seconds()*rate)
}

// forget drops who may do all anyway, once there are many; r.mu is held.
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
