package consume

import "time"

// wants reports whether more messages of b should be leased.
func (b *backlogState) wants() bool {
	switch {
	case len(b.waiting) > 0 || b.ending >= maxEnding:
		return false
	case b.host == nil:
		return true
	case b.host.pool.reserves:
		return b.host.inflight < b.host.limit
	case b.host.pool.eager:
		// From half a batch in flight on, the next lease can be half a batch.
		return b.working <= b.host.pool.limit/2
	}
	return true
}

// leaseSize is how many messages of b to lease; 0 if a pool that reserves has no capacity.
// Only what can begin immediately is leased: what waits in memory misses changes of the
// subscription. There are two exceptions. One message is always leased (unless the pool
// reserves), so that the consumer knows its deadline: where all hosts hang, memory holds one
// message of each backlog. And a few are prefetched for a quick host, since they begin soon,
// and a lease of several costs little more than a lease of one.
func (b *backlogState) leaseSize(now time.Time) int {
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
		return remoteBatch // hand-overs come in runs, and need no host
	}
	free := min(p.limit-b.host.inflight, p.batch)
	if !p.eager { // local attempts end soon, and are cheaper in batches
		free = min(free, p.bound-p.inflight)
	}
	if b.host.quick {
		free = max(free, min(aheadBatch, p.bound-p.inflight-p.waiting))
	}
	if n := b.rate.allowed(now); n >= 0 {
		free = min(free, n)
	}
	return max(free, 1)
}

// nextLease dequeues the first backlog to lease from, and reserves capacity for what the lease
// may return; nil if there is no backlog, or no capacity.
func (c *Consumer) nextLease() (b *backlogState, limit int) {
	if len(c.leaseQueue) == 0 {
		return nil, 0
	}
	b = c.leaseQueue[0]
	if limit = b.leaseSize(c.clock.Now()); limit == 0 {
		return nil, 0
	}
	c.leaseQueue[0] = nil
	c.leaseQueue = c.leaseQueue[1:]
	b.notified = false
	if b.reserves() {
		b.host.reserve(limit)
	}
	return b, limit
}

func (b *backlogState) reserves() bool { return b.host != nil && b.host.pool.reserves }

// startLeasers starts leases, up to maxLeasers of them at a time.
func (c *Consumer) startLeasers() {
	for c.leasers < maxLeasers {
		b, limit := c.nextLease()
		if b == nil {
			return
		}
		c.leasers++
		c.start(&leaseJob{c: c, b: b, limit: limit})
	}
}

// leaseJob leases up to limit messages of a backlog.
type leaseJob struct {
	c     *Consumer
	b     *backlogState
	limit int
	taken []Work
	more  bool
	err   error
}

func (j *leaseJob) run() {
	j.taken, j.more, j.err = j.c.options.Lease(j.c.attempts, j.b.name, j.limit)
}

func (j *leaseJob) end() {
	j.c.leasers--
	j.c.leased(j.b, j.limit, j.taken, j.more, j.err)
}

// leased handles what a lease of up to limit messages of b has returned. The caller has the
// lock.
func (c *Consumer) leased(b *backlogState, limit int, taken []Work, more bool, err error) {
	b.leasing, b.more = false, more || b.notified
	if err != nil {
		c.options.Logger.Error("a backlog cannot be read", "backlog", b.name.String(), "error", err)
		b.more, b.leaseAt = true, c.clock.Now().Add(leaseWait)
	}
	if c.stopping || b.recalled {
		b.recalled = false
		b.more = b.notified && !c.stopping
		c.requeue(b, taken)
		taken = nil
	}
	if b.reserves() {
		b.host.reserve(len(taken) - limit)
	}
	for _, w := range taken {
		c.plan(b, w)
	}
	c.update(b)
}

// plan enqueues a message for its attempt, or begins its hand-over.
func (c *Consumer) plan(b *backlogState, w Work) {
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
		c.work(b, func(Result) { b.host.reserve(-1) }, func() Result { return c.attempt(w) })
	case p.Ended:
		c.end(b, func() Result { return c.conclude(w, Result{Disposition: Ended}) })
	default:
		b.rate.set(p.Rate)
		b.waiting = append(b.waiting, item{w, p.Deadline})
		b.host.pool.waiting++
	}
}
