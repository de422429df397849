package limit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
)

const (
	// Free is how many bytes a request may hold uncounted. The number of connections bounds
	// their sum.
	Free = 16 << 10
	// small is the size up to which requests may use all of a budget; larger ones leave a
	// quarter of it free, so that they cannot block small ones.
	small = 64 << 10

	// defaultWait is how long a request waits for memory.
	defaultWait = 5 * time.Second
	// While others wait for memory, a request that is being read or answered must move slowRate
	// bytes a second: one that is slower over grace is cut off. It is checked every checkEvery.
	slowRate   = 16 << 10
	grace      = time.Second
	checkEvery = 250 * time.Millisecond
)

// Budget bounds the bytes that requests hold in memory at once. Those that do not fit wait for
// others to end, first come first served. While requests wait, requests with slow peers are cut
// off, as these might hold memory for any time.
type Budget struct {
	name    string
	limit   int64
	maxWait time.Duration

	used    atomic.Int64
	refused atomic.Int64
	waited  atomic.Int64
	cut     atomic.Int64
	excess  atomic.Int64 // bytes that are held, and wait to be counted
	waiting atomic.Int32

	mu      sync.Mutex
	waiters []*waiter    // in the order of arrival
	holders *Reservation // counted ones, the newest first
	checked time.Time
}

type waiter struct {
	r     *Reservation
	n     int64
	err   error
	ready chan struct{} // closed when the wait is decided
}

// NewBudget makes a budget of limit bytes; 0 means no limit. maxWait 0 means defaultWait.
func NewBudget(name string, limit int64, maxWait time.Duration) *Budget {
	if maxWait == 0 {
		maxWait = defaultWait
	}
	return &Budget{name: name, limit: limit, maxWait: maxWait}
}

// Stats reports the use of the budget.
func (b *Budget) Stats() Stats {
	return Stats{
		Name: b.name, Used: b.used.Load(), Limit: b.limit,
		Refused: b.refused.Load(), Waited: b.waited.Load(), Cut: b.cut.Load(),
	}
}

// bound is the total that may be used after a reservation has grown to held bytes.
func (b *Budget) bound(held int64) int64 {
	switch {
	case b.limit <= 0:
		return 1 << 62
	case held <= small:
		return b.limit
	default:
		return b.limit - b.limit/4
	}
}

// take counts n more bytes for a reservation that will have held bytes, if they fit.
func (b *Budget) take(n, held int64) bool {
	if b.used.Add(n) <= b.bound(held) {
		return true
	}
	b.used.Add(-n)
	return false
}

// give releases n bytes, and resumes requests that wait for them. The caller has mu.
func (b *Budget) give(n int64) {
	b.used.Add(-n)
	if len(b.waiters) > 0 {
		b.grant()
	}
}

// grant resumes waiting requests that fit, in order; small ones do not wait behind others. The
// caller has mu.
func (b *Budget) grant() {
	kept, full := b.waiters[:0], false
	for _, w := range b.waiters {
		held := w.r.counted + w.n
		if held > small && full || !b.take(w.n, held) {
			full = full || held > small
			kept = append(kept, w)
			continue
		}
		w.r.counted += w.n
		b.decide(w, nil)
	}
	clear(b.waiters[len(kept):])
	b.waiters = kept
}

// decide ends a wait. The caller has mu, and updates the list.
func (b *Budget) decide(w *waiter, err error) {
	w.err, w.r.waits = err, nil
	b.waiting.Add(-1)
	close(w.ready)
}

func (b *Budget) remove(gone *waiter) {
	for i, w := range b.waiters {
		if w == gone {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			return
		}
	}
}

// wait waits until n more bytes for r fit.
func (b *Budget) wait(ctx context.Context, r *Reservation, n int64) error {
	w := &waiter{r: r, n: n, ready: make(chan struct{})}
	b.waited.Add(1)
	b.mu.Lock()
	r.waits = w
	b.waiting.Add(1) // before the check: later releases see it
	b.waiters = append(b.waiters, w)
	b.grant()
	b.mu.Unlock()

	ticks, stop := ticker(checkEvery)
	defer stop()
	deadline := clock.System.Now().Add(b.maxWait)
	for {
		select {
		case <-w.ready:
			if w.err != nil {
				b.refused.Add(1)
			}
			return w.err
		case <-ctx.Done():
			return b.giveUp(w, ctx.Err())
		case <-ticks:
			now := clock.System.Now()
			if now.After(deadline) {
				return b.giveUp(w, ErrFull)
			}
			b.shed(now)
		}
	}
}

// giveUp ends a wait on behalf of the waiter.
func (b *Budget) giveUp(w *waiter, err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready: // decided meanwhile
		if err = w.err; err == nil {
			return nil
		}
	default:
		b.remove(w)
		b.decide(w, err)
		b.grant() // a large one may have been ahead of others
	}
	b.refused.Add(1)
	return err
}

// shed cuts off slow holders, as far as waiting requests need it. If all holders wait for more,
// the newest of them is refused, so that the others continue.
func (b *Budget) shed(now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Sub(b.checked) < checkEvery/2 || len(b.waiters) == 0 {
		return
	}
	b.checked = now
	var need int64
	for _, w := range b.waiters {
		need += w.n
	}
	stuck := true
	var newest *Reservation
	for r := b.holders; r != nil; r = r.next {
		peer := r.peer
		switch {
		case r.waits != nil:
			if newest == nil {
				newest = r
			}
		case peer == nil: // it is neither read nor answered
			stuck = false
		case r.slow(now):
			stuck = false
			if need > 0 {
				need -= r.counted
				r.cut.Store(true)
				b.cut.Add(1)
				if r.reads {
					peer.CutRead()
				} else {
					peer.Cut()
				}
			}
		default:
			stuck = false
		}
	}
	if stuck && newest != nil {
		w := newest.waits
		b.remove(w)
		b.decide(w, ErrFull)
		b.grant()
	}
}

// slow reports that the peer has moved little for some time.
func (r *Reservation) slow(now time.Time) bool {
	moved := r.peer.Moved()
	passed := now.Sub(r.sampled)
	if r.sampled.IsZero() {
		r.sampled, r.sample = now, moved
		return false
	}
	if passed < grace {
		return false
	}
	if float64(moved-r.sample) < slowRate*passed.Seconds() {
		return true
	}
	r.sampled, r.sample = now, moved
	return false
}

// ticker is a channel that receives every d, until stop.
func ticker(d time.Duration) (ticks <-chan struct{}, stop func()) {
	c := make(chan struct{}, 1)
	var mu sync.Mutex
	var timer clock.Timer
	over := false
	var tick func()
	tick = func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		select {
		case c <- struct{}{}:
		default:
		}
		timer = clock.System.AfterFunc(d, tick)
	}
	mu.Lock()
	timer = clock.System.AfterFunc(d, tick)
	mu.Unlock()
	return c, func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}
