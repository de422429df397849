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

// mustSignal decides who syncs the open commit, for which a caller will wait now: it reports
// whether the journal's goroutine is to be signalled. j.mu is held.
func (j *Journal) mustSignal(c *Commit) bool {
	switch {
	case j.syncer == leader:
		return false // lead sees it at its end, if not before
	case j.syncer == nobody && j.delay.expectedWaiters.Load() < delayMinWaiters:
		c.unled.Store(true)
		return false
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
	runtime.Gosched() // runnable callers may still join the commit
	j.Sync()
	j.mu.Lock()
	j.syncer = nobody
	more := j.signalled || j.open.sync || j.flushing != nil && j.flushing.sync
	for _, c := range j.unsynced {
		more = more || c.sync
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
			runtime.Gosched() // as in lead
			j.Sync()
			j.mu.Lock()
			j.syncer = nobody
			j.mu.Unlock()
		case <-j.stop:
			j.Sync()
			return
		}
	}
}
