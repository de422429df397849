package consume

import "time"

// wants reports that more messages of b would be of use.
func (b *backlog) wants() bool {
	switch {
	case len(b.waiting) > 0 || b.ending >= maxEnding:
		return false
	case b.host == nil:
		return true
	case b.host.pool.reserves:
		return b.host.inflight < b.host.limit
	case b.host.pool.eager:
		// Half a batch under way: the next lease will find room for the other half.
		return b.working <= b.host.pool.limit/2
	}
	return true
}

// portion is how many messages of b to lease, 0 if there is no room to reserve. What
// is leased is meant to begin at once: what waits in memory misses changes of the policy.
// But one is always leased where room is not reserved, so that the consumer sees its
// deadline: of backlogs whose hosts all hang, that one is what memory holds of each. Some
// are leased ahead of a host that answers quickly, since they soon begin, and a lease of
// several costs little more than one of one.
func (b *backlog) portion(now time.Time) int {
	if b.host == nil {
		return 1 // its limits are not known yet
	}
	p := b.host.pool
	if p.reserves {
		if p.inflight >= p.bound {
			return 0
		}
		return max(min(b.host.limit-b.host.inflight, p.bound-p.inflight, p.batch), 1)
	}
	if b.ending > 0 {
		return outsideBatch // its neighbours have probably ended, too
	}
	room := min(p.limit-b.host.inflight, p.batch)
	if !p.eager { // attempts that stay in this process end soon, and are quicker in batches
		room = min(room, p.bound-p.inflight)
	}
	if b.host.quick {
		room = max(room, min(aheadBatch, p.bound-p.inflight-p.waiting))
	}
	if n := b.pace.allowed(now); n >= 0 {
		room = min(room, n)
	}
	return max(room, 1)
}

// nextTake dequeues the first backlog to lease from, and
// reserves room for what may come; nil if there is none, or no room.
func (c *Consumer) nextTake() (b *backlog, most int) {
	if len(c.takes) == 0 {
		return nil, 0
	}
	b = c.takes[0]
	if most = b.portion(c.clock.Now()); most == 0 {
		return nil, 0
	}
	c.takes[0] = nil
	c.takes = c.takes[1:]
	b.notified = false
	if b.reserves() {
		b.host.reserve(most)
	}
	return b, most
}

func (b *backlog) reserves() bool { return b.host != nil && b.host.pool.reserves }

// startLeasers has as many backlogs leased from at once as may be.
func (c *Consumer) startLeasers() {
	for c.leasers < leasers {
		b, most := c.nextTake()
		if b == nil {
			return
		}
		c.leasers++
		c.wg.Go(func() { c.take(b, most) })
	}
}

// take leases from one backlog after the other until the queue is empty.
func (c *Consumer) take(b *backlog, most int) {
	for b != nil {
		taken, more, err := c.options.Lease(c.attempts, b.name, most)
		c.mu.Lock()
		c.taken(b, most, taken, more, err)
		if b, most = c.nextTake(); b == nil {
			c.leasers--
		}
		c.mu.Unlock()
	}
}

// taken notes what a lease of up to most messages of b has found. The caller has
// the lock.
func (c *Consumer) taken(b *backlog, most int, taken []Work, more bool, err error) {
	b.taking, b.more = false, more || b.notified
	if err != nil {
		c.options.Logger.Error("a backlog cannot be read", "backlog", b.name.String(), "error", err)
		b.more, b.takeAt = true, c.clock.Now().Add(leaseWait)
	}
	if c.stopping || b.recalled {
		b.recalled = false
		b.more = b.notified && !c.stopping
		c.requeue(b, taken)
		taken = nil
	}
	if b.reserves() {
		b.host.reserve(len(taken) - most)
	}
	for _, w := range taken {
		c.plan(b, w)
	}
	c.update(b)
}

// plan enqueues a message for its attempt, or begins what needs no host.
func (c *Consumer) plan(b *backlog, w Work) {
	p := w.Plan()
	if b.host == nil { // a backlog's host never changes
		pool, name := w.Host()
		b.host = pool.join(name)
	}
	switch {
	case b.reserves():
		if p.Limit > 0 {
			b.host.limit = p.Limit
		}
		c.work(b, func(Verdict) { b.host.reserve(-1) }, func() Verdict { return c.attempt(w) })
	case p.Ended:
		c.end(b, func() Verdict { return c.conclude(w, Verdict{Step: Ended}) })
	default:
		b.pace.limit(p.Rate)
		b.waiting = append(b.waiting, item{w, p.Deadline})
		b.host.pool.waiting++
	}
}
