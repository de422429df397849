package consume

import "time"

// attempt makes an attempt and concludes the lease.
func (c *Consumer) attempt(w Work) Result { return c.conclude(w, w.Attempt(c.attempts)) }

// conclude carries out the disposition of an attempt. It is the only place that ends a lease,
// but for messages that are released before an attempt.
func (c *Consumer) conclude(w Work, v Result) Result {
	switch v.Disposition {
	case Done:
		w.Ack()
	case Retry:
		w.Retry(v.Due)
	case Cancelled:
		w.Release()
	case Ended:
		if w.HandOver(c.attempts) {
			break
		}
		due := c.clock.Now()
		if c.attempts.Err() == nil { // otherwise Stop cancelled it, and the next process retries at once
			due = due.Add(HandOverWait)
		}
		w.Retry(due)
	}
	return v
}

// endExpired begins to conclude the messages that have waited beyond their deadlines. The
// host's limit and the rate do not apply, as no attempt is made.
func (c *Consumer) endExpired(b *backlogState, now time.Time) {
	kept := b.waiting[:0]
	for _, w := range b.waiting {
		if !Expired(w.deadline, now) {
			kept = append(kept, w)
			continue
		}
		c.end(b, func() Result { return c.attempt(w.Work) })
	}
	if b.host != nil {
		b.host.pool.waiting -= len(b.waiting) - len(kept)
	}
	clear(b.waiting[len(kept):])
	b.waiting = kept
	if len(kept) == 0 && b.listed {
		b.host.drop(b)
	}
}

// end begins work that counts as no attempt at the host, such as a hand-over.
func (c *Consumer) end(b *backlogState, f func() Result) {
	b.ending++
	c.work(b, func(Result) { b.ending-- }, f)
}

// pump begins as many attempts as the pools allow.
func (c *Consumer) pump() {
	if c.pumping {
		return // the outer call loops until there is no host left
	}
	c.pumping = true
	defer func() { c.pumping = false }()
	for {
		h := c.nextHost()
		if h == nil {
			c.resumeSlowHosts()
			return
		}
		c.begin(h)
	}
}

// nextHost returns the host of the next attempt; nil: none may begin.
func (c *Consumer) nextHost() *host {
	for _, p := range c.options.Pools {
		if h := p.next(); h != nil {
			return h
		}
	}
	return nil
}

// resumeSlowHosts sets a timer that refills the slow tokens, if a slow host waits for one.
func (c *Consumer) resumeSlowHosts() {
	passed := false
	for _, p := range c.options.Pools {
		passed = passed || p.slowDeferred
	}
	if !passed || c.slowTimer || c.stopping {
		return
	}
	c.slowTimer = true
	c.options.System.AfterFunc(slowPause, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.slowTimer = false
		for _, p := range c.options.Pools {
			p.slowTokens, p.slowDeferred = slowBurst, false
		}
		c.pump()
	})
}

// begin begins the next attempt at a host.
func (c *Consumer) begin(h *host) {
	now := c.clock.Now()
	b := h.begin()
	if b.rate.allowed(now) == 0 { // the rate was lowered since b was enqueued
		h.end(h.slow)
		c.update(b)
		return
	}
	w := b.waiting[0]
	b.waiting[0] = item{}
	b.waiting = b.waiting[1:]
	h.pool.waiting--
	b.rate.begin(now)
	c.work(b, func(v Result) {
		h.quick = v.Disposition == Done && v.Took < quickWithin
		h.end(v.Took >= slowAfter)
	}, func() Result { return c.attempt(w.Work) })
	c.update(b) // which enqueues b again for its next message
}

// work runs f in a goroutine and then, under the lock, end. The caller has the lock.
func (c *Consumer) work(b *backlogState, end func(Result), f func() Result) {
	b.working++
	c.start(&attemptJob{c: c, b: b, f: f, after: end})
}

// attemptJob makes an attempt, or a hand-over.
type attemptJob struct {
	c     *Consumer
	b     *backlogState
	f     func() Result
	after func(Result) // under the lock
	v     Result
}

func (j *attemptJob) run() { j.v = j.f() }

func (j *attemptJob) end() {
	j.b.working--
	j.after(j.v)
	if j.v.Pause > 0 {
		j.b.leaseAt = j.c.clock.Now().Add(j.v.Pause)
	}
	j.c.update(j.b)
}
