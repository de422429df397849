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

// Options are what a Consumer is made of. All but System are needed.
type Options struct {
	// Lease takes up to most messages that are due in a backlog. more says that there
	// are others due; those that come due later Ready announces. What was taken is
	// valid also with an error. ctx ends when a Stop gives up waiting.
	Lease  func(ctx context.Context, backlog arn.ARN, most int) (taken []Work, more bool, err error)
	Clock  clock.Clock // of due times, throttles and deadlines
	Logger *slog.Logger
	// Pools are those that Plans name, in the order in which they are served. One that
	// reserves room is the only one.
	Pools  []*Pool
	System clock.Clock // real time; the machine's unless given
}

const (
	// leasers is how many backlogs are leased from at once.
	leasers = 16
	// maxEnding bounds the hand-overs of one backlog under way. At the bound nothing
	// more is leased from it.
	maxEnding = 16
	// RedriveWait is how long a message that has ended waits when whom it is to be
	// handed over to cannot take it now.
	RedriveWait = shard.RedriveWait
	// slowAfter is how long an attempt takes that counts as hung.
	slowAfter = 5 * time.Second
	// quickWithin is how long an attempt that succeeds takes at most at a host that
	// messages are leased ahead of.
	quickWithin = 100 * time.Millisecond
	// slowBurst attempts at hosts that hung may begin at once, and as many again
	// every slowPause: 1,000 a second. Four fifths of 5,000 that take 5 s or more
	// are never more than 800 a second.
	slowBurst = 16
	slowPause = 16 * time.Millisecond
	// leaseWait is the wait after a failure to read a backlog.
	leaseWait = time.Second
)

// Consumer sees the messages of many backlogs to their end. It implements
// shard.Consumer.
type Consumer struct {
	options  Options
	clock    clock.Clock
	attempts context.Context // ends when a Stop gives up waiting
	cutOff   context.CancelFunc
	wg       sync.WaitGroup

	mu       sync.Mutex
	stopping bool
	backlogs map[arn.ARN]*backlog
	takes    []*backlog // queue of those to lease from
	leasers  int        // goroutines that lease
	pumping  bool
	// slowTimer says that more attempts at hosts that hung may begin soon.
	slowTimer bool
	handOff   bool // a goroutine whose job has ended takes over the next one
	next      *job
}

var _ shard.Consumer = (*Consumer)(nil)

// backlog is one that has, or may have, something to do.
type backlog struct {
	name     arn.ARN
	release  func() // of the clock; nil: not held
	notified bool   // of something due since the last lease began
	more     bool   // there may be more to lease
	taking   bool   // a lease is under way, or queued
	recalled bool   // what a lease finds goes back
	takeAt   time.Time

	waiting []item // leased and not begun, in order
	host    *host  // nil until the first message is leased, unless room is reserved
	listed  bool   // in the host's queue
	pace    pace
	working int // attempts and hand-overs under way
	ending  int // of these, those that need no host

	timer   clock.Timer
	timerAt time.Time
	timerID int
}

// item is a leased message that waits for its turn.
type item struct {
	Work
	deadline time.Time
}

// New makes a consumer. It does nothing until Ready is called.
func New(o Options) *Consumer {
	if o.System == nil {
		o.System = clock.System
	}
	c := &Consumer{options: o, clock: o.Clock, backlogs: map[arn.ARN]*backlog{}}
	c.attempts, c.cutOff = context.WithCancel(context.Background())
	return c
}

// Ready notes that a backlog has something due.
func (c *Consumer) Ready(name arn.ARN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return
	}
	b, ok := c.backlogs[name]
	if !ok {
		b = &backlog{name: name}
		if p := c.options.Pools[0]; p.reserves {
			b.host = p.join(name.String())
			b.host.limit = 1 // until it is known
		}
		c.backlogs[name] = b
	}
	b.notified, b.more = true, true
	c.update(b)
}

// Recall releases what was leased of a backlog and has not begun. Attempts under
// way continue.
func (c *Consumer) Recall(name arn.ARN) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, ok := c.backlogs[name]
	if !ok || c.stopping {
		return
	}
	back := b.unstarted()
	b.more, b.recalled = false, b.taking
	c.requeue(b, back)
	c.update(b)
}

// requeue gives messages back that were not begun. The caller has the lock, which
// is open meanwhile.
func (c *Consumer) requeue(b *backlog, back []Work) {
	b.working++
	c.mu.Unlock()
	for _, w := range back {
		w.Release()
	}
	c.mu.Lock()
	b.working--
}

// unstarted takes out what was leased and has not begun.
func (b *backlog) unstarted() (back []Work) {
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

// Stop ends all work: nothing new is begun, attempts under way may finish until ctx
// ends and are then cut off, and everything else goes back to its backlog, due at
// once. The error is ctx's if attempts were cut off. Another Stop waits for the same.
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

// halt lets nothing new begin, and returns what has not begun.
func (c *Consumer) halt() (back []Work) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopping = true
	for _, b := range c.takes {
		b.taking = false
	}
	c.takes = nil
	for _, b := range c.backlogs {
		back = append(back, b.unstarted()...)
		b.more = false
	}
	for _, b := range c.backlogs {
		c.update(b)
	}
	return back
}

// update does for b what can be done now, after any change of it: it is the one
// place that decides what begins, what is waited for, and whether the clock is
// held. The caller has the lock.
func (c *Consumer) update(b *backlog) {
	now := c.clock.Now()
	if !c.stopping {
		c.endExpired(b, now)
		if len(b.waiting) > 0 && !b.listed && b.pace.allowed(now) != 0 {
			b.host.push(b)
		}
		if b.more && !b.taking && b.wants() && !now.Before(b.takeAt) {
			b.taking = true
			c.takes = append(c.takes, b)
		}
		c.startLeasers()
		c.pump()
	}
	c.setTimer(b, now, c.nextMoment(b, now))
	if b.taking || b.listed || b.working > 0 {
		if b.release == nil {
			b.release = c.clock.Hold()
		}
		return
	}
	if b.release != nil {
		b.release()
		b.release = nil
	}
	if b.timer == nil && len(b.waiting) == 0 && !b.more && c.backlogs[b.name] == b {
		delete(c.backlogs, b.name)
		if b.host != nil {
			b.host.leave()
		}
	}
}

// nextMoment is when b must be updated again though nothing has happened: zero if
// never.
func (c *Consumer) nextMoment(b *backlog, now time.Time) (at time.Time) {
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
	// While a throttle counts, the backlog is remembered, with its last attempt.
	if b.pace.rate > 0 && now.Before(b.pace.next) {
		sooner(b.pace.next)
	}
	if b.more && now.Before(b.takeAt) {
		sooner(b.takeAt)
	}
	return at
}

// setTimer makes the timer of b due at a moment; zero stops it.
func (c *Consumer) setTimer(b *backlog, now, at time.Time) {
	if b.timer != nil {
		if b.timerAt.Equal(at) {
			return
		}
		b.timer.Stop()
		b.timer = nil
	}
	b.timerID++ // what has fired and waits for the lock does nothing any more
	b.timerAt = at
	if at.IsZero() {
		return
	}
	id := b.timerID
	b.timer = c.clock.AfterFunc(at.Sub(now), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if b.timerID == id {
			b.timer = nil
			c.update(b)
		}
	})
}

// Idle reports that no backlog is remembered: nothing is under way, and no moment is
// waited for.
func (c *Consumer) Idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.backlogs) == 0
}
