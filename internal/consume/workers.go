package consume

// maxIdle bounds the goroutines that wait for a job. The garbage collector shrinks their stacks
// to a few KiB.
const maxIdle = 256

// job is work for a goroutine.
type job interface {
	run()
	// end is called under the consumer's lock. What it begins may take over the goroutine.
	end()
}

// start runs a job in a goroutine that waits for one, or in a new one, whose stack would have to
// grow first. The caller has the lock.
func (c *Consumer) start(j job) {
	if n := len(c.idle); n > 0 {
		c.idle[n-1] <- j
		c.idle = c.idle[:n-1]
		return
	}
	c.wg.Go(func() { c.runJobs(j) })
}

// runJobs runs a job, and then those that start hands over.
func (c *Consumer) runJobs(j job) {
	next := make(chan job, 1)
	for j != nil {
		j.run()
		if !c.endJob(j, next) {
			return
		}
		j = <-next // nil: the consumer stops
	}
}

// endJob ends a job, and reports whether its goroutine is to wait for another one.
func (c *Consumer) endJob(j job, next chan job) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		j.end()
		return false
	}
	c.idle = append(c.idle, next) // before the end, which may begin the next job
	j.end()
	if last := len(c.idle) - 1; last >= maxIdle && c.idle[last] == next {
		c.idle = c.idle[:last]
		return false
	}
	return true
}

// dismiss ends the goroutines that wait for a job. The caller has the lock, and has set
// stopping.
func (c *Consumer) dismiss() {
	for _, next := range c.idle {
		close(next)
	}
	c.idle = nil
}
