package journal

import "runtime"

// syncer is who makes commits durable at the moment.
type syncer uint8

const (
	nobody syncer = iota
	// leader is the first caller that waits for a commit, and syncs it itself. So a commit of
	// few callers needs no switch to another goroutine and back, which on an idle machine means
	// to wake a processor each time.
	leader
	// dedicated is the journal's own goroutine. With many callers there is always a next
	// commit, which it begins without a switch, and no caller's answer waits for others' syncs.
	dedicated
)

// leadMinYield is with how many expected waiters a leader first lets others run. Fewer are
// answered sooner without, and on an idle machine that wakes a processor for nothing.
const leadMinYield = 3

// mustSignal decides who syncs the open commit, which becomes as durable as when says: it
// reports whether the journal's goroutine is to be signalled. j.mu is held.
func (j *Journal) mustSignal(c *Commit, when Durability) bool {
	switch {
	case j.syncer == leader:
		return false // lead sees it at its end, if not before
	case j.syncer == nobody && when == Awaited && j.delay.expectedWaiters.Load() < delayMinWaiters:
		c.unled.Store(true)
		return false
	case c.sync == Awaited && !c.unled.Load():
		return false // it was signalled, or its leader begins
	default:
		return true
	}
}

// lead makes everything appended so far durable in the caller's goroutine, and has the
// journal's goroutine sync what others came to wait for meanwhile. It returns false, at once,
// if somebody syncs already.
func (j *Journal) lead() bool {
	if !j.become(leader) {
		return false
	}
	if j.delay.expectedWaiters.Load() >= leadMinYield {
		runtime.Gosched() // runnable callers may still join
	}
	j.Sync()
	j.mu.Lock()
	j.syncer = nobody
	more := j.signalled || j.open.sync > Lazy || j.flushing != nil && j.flushing.sync > Lazy
	for _, c := range j.unsynced {
		more = more || c.sync > Lazy
	}
	j.signalled = false
	j.mu.Unlock()
	if more {
		j.signal()
	}
	return true
}

// become makes the caller the syncer, unless there is one or the journal is closed.
func (j *Journal) become(s syncer) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.syncer != nobody || j.closed {
		j.signalled = j.signalled || s == dedicated
		return false
	}
	j.syncer = s
	return true
}

// signal has the journal's goroutine sync.
func (j *Journal) signal() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// run is the journal's goroutine.
func (j *Journal) run() {
	defer close(j.stopped)
	for {
		select {
		case <-j.wake:
			if !j.become(dedicated) {
				continue // the leader signals at its end
			}
			j.awaitMore()
			runtime.Gosched() // runnable callers may still join the commit
			j.Sync()
			j.mu.Lock()
			j.syncer = nobody
			j.mu.Unlock()
		case <-j.stop:
			j.Sync()
			if j.options.Closed != nil {
				j.options.Closed()
			}
			return
		}
	}
}
