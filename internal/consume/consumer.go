package consume

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
)

// Options are the dependencies of a Consumer. All but System are required.
type Options struct {
	// Lease leases up to limit messages that are due in a backlog. more says that others
	// are due; Ready is called for those that come due later. taken is valid also with
	// an error. ctx ends when a Stop gives up waiting.
	Lease  func(ctx context.Context, backlog arn.ARN, limit int) (taken []Work, more bool, err error)
	Clock  clock.Clock // of due times, throttles and deadlines
	Logger *slog.Logger
	// Pools are those that Work.Host returns, in order of priority. A ReservingPool must
	// be the only one.
	Pools  []*Pool
	System clock.Clock // real time; the default is the machine's
}

const (
	// maxLeasers is how many backlogs are leased from concurrently.
	maxLeasers = 16
	// maxEnding bounds the hand-overs of one backlog in flight. At the bound nothing
	// more is leased from it.
	maxEnding = 16
	// HandOverWait is the delay before the next try at a hand-over whose target was
	// unavailable.
	HandOverWait = shard.HandOverWait
	// slowAfter is the duration from which on an attempt counts as hung.
	slowAfter = 5 * time.Second
	// quickWithin is the longest duration of a successful attempt for which its host counts
	// as quick; messages are prefetched for quick hosts.
	quickWithin = 100 * time.Millisecond
	// slowBurst is the size of the token bucket of attempts at slow hosts, which is
	// refilled every slowPause: 1,000 attempts a second. That never throttles them: four
	// fifths of 5,000 attempts, of 5 s or more each, are at most 800 a second.
	slowBurst = 16
	slowPause = 16 * time.Millisecond
	// leaseWait is the wait after a failure to read a backlog.
	leaseWait = time.Second
)

// Consumer leases the messages of many backlogs, makes the attempts, and concludes the
// leases. It implements shard.Consumer, and is safe for concurrent use.
type Consumer struct {
	options  Options
	clock    clock.Clock
	attempts context.Context // cancelled when a Stop gives up waiting
	cutOff   context.CancelFunc
	wg       sync.WaitGroup

	mu         sync.Mutex
	stopping   bool
	backlogs   map[arn.ARN]*backlogState
	leaseQueue []*backlogState // those to lease from, round robin
	leasers    int             // leases in progress
	pumping    bool
	// slowTimer says that the timer is set that refills the slow tokens.
	slowTimer bool
	idle      []chan job // of goroutines that wait for a job
	moments   moments
}

var _ shard.Consumer = (*Consumer)(nil)

// backlogState is what the consumer knows of a backlog with messages that are, or may be, due.
type backlogState struct {
	name     arn.ARN
	release  func() // releases the hold of the clock; nil: it is not held
	notified bool   // Ready was called since the latest lease began
	more     bool   // there may be more to lease
	leasing  bool   // a lease is in progress, or queued
	recalled bool   // Recall was called while leasing: what the lease returns is released
	leaseAt  time.Time

	waiting []item // leased, but not begun, in order
	host    *host  // nil until the first message is leased, unless capacity is reserved
	listed  bool   // in the host's queue
	rate    rateLimit
	working int // attempts and hand-overs in flight
	ending  int // of these, those that count as no attempt at the host

	moment time.Time // when it is to be updated; zero: at none
	place  int32     // in the moments
}

// item is a leased message that waits for its attempt.
type item struct {
	Work
	deadline time.Time
}

// New makes a consumer. It does nothing until Ready is called.
func New(o Options) *Consumer {
	if o.System == nil {
		o.System = clock.System
	}
	c := &Consumer{options: o, clock: o.Clock, backlogs: map[arn.ARN]*backlogState{}}
	c.attempts, c.cutOff = context.WithCancel(context.Background())
	return c
}

// Ready marks a backlog as having due messages. It may be called under locks of the backlog.
func (c *Consumer) Ready(name arn.ARN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return
	}
	b, ok := c.backlogs[name]
	if !ok {
		b = &backlogState{name: name}
		if p := c.options.Pools[0]; p.reserves {
			b.host = p.join(name.String())
			b.host.limit = 1 // until the first Plan sets it
		}
		c.backlogs[name] = b
	}
	b.notified, b.more = true, true
	c.update(b)
}

// Recall releases the leased messages of a backlog that have not begun. Attempts in flight
// continue.
func (c *Consumer) Recall(name arn.ARN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.backlogs[name]
	if !ok || c.stopping {
		return
	}
	back := b.takeUnstarted()
	b.more, b.recalled = false, b.leasing
	c.requeue(b, back)
	c.update(b)
}

// requeue releases messages whose attempts have not begun. The caller has the lock, which is
// released meanwhile.
func (c *Consumer) requeue(b *backlogState, back []Work) {
	b.working++
	c.mu.Unlock()
	for _, w := range back {
		w.Release()
	}
	c.mu.Lock()
	b.working--
}

// takeUnstarted removes and returns the leased messages whose attempts have not begun.
func (b *backlogState) takeUnstarted() (back []Work) {
	for _, w := range b.waiting {
		back = append(back, w.Work)
		b.host.pool.waiting--
	}
	b.waiting = nil
	if b.listed {
		b.host.drop(b)
	}
	return back
}

// Stop drains the consumer: no further attempt begins, those in flight may finish until ctx
// ends and are then cancelled, and everything else is released to its backlog, due now. The
// error is ctx's if attempts were cancelled. A second Stop waits for the same.
func (c *Consumer) Stop(ctx context.Context) error {
	for _, w := range c.halt() {
		w.Release()
	}
	done := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = ctx.Err()
		c.cutOff()
		<-done
	}
	c.cutOff()
	return err
}

// halt stops leasing and attempts, and returns the messages whose attempts have not begun.
func (c *Consumer) halt() (back []Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	c.dismiss()
	for _, b := range c.leaseQueue {
		b.leasing = false
	}
	c.leaseQueue = nil
	for _, b := range c.backlogs {
		back = append(back, b.takeUnstarted()...)
		b.more = false
	}
	for _, b := range c.backlogs {
		c.update(b)
	}
	return back
}

// update is called after any change of b. It is the one place that decides what begins, when
// it is called again, and whether the clock is held. The caller has the lock.
func (c *Consumer) update(b *backlogState) {
	now := c.clock.Now()
	if !c.stopping {
		c.endExpired(b, now)
		if len(b.waiting) > 0 && !b.listed && b.rate.allowed(now) != 0 {
			b.host.push(b)
		}
		if b.more && !b.leasing && b.wants() && !now.Before(b.leaseAt) {
			b.leasing = true
			c.leaseQueue = append(c.leaseQueue, b)
		}
		c.startLeasers()
		c.pump()
	}
	c.setMoment(b, c.nextMoment(b, now))
	if b.leasing || b.listed || b.working > 0 {
		if b.release == nil {
			b.release = c.clock.Hold()
		}
		return
	}
	if b.release != nil {
		b.release()
		b.release = nil
	}
	if b.moment.IsZero() && len(b.waiting) == 0 && !b.more && c.backlogs[b.name] == b {
		delete(c.backlogs, b.name)
		if b.host != nil {
			b.host.leave()
		}
	}
}

// nextMoment is when b must be updated even if nothing happens until then: zero if never.
func (c *Consumer) nextMoment(b *backlogState, now time.Time) (at time.Time) {
	if c.stopping {
		return at
	}
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, w := range b.waiting {
		if !w.deadline.IsZero() {
			sooner(w.deadline.Add(time.Millisecond))
		}
	}
	// The timer also keeps an empty b in memory for as long as its rate limit matters.
	if b.rate.rate > 0 && now.Before(b.rate.next) {
		sooner(b.rate.next)
	}
	if b.more && now.Before(b.leaseAt) {
		sooner(b.leaseAt)
	}
	return at
}

// Idle reports whether nothing is in flight and no timer is set.
func (c *Consumer) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.backlogs) == 0
}
