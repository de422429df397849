package jobs

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard/kernel"
)

// stepSize bounds the things of a step.
const stepSize = 256

// Step is the result of a scan.
type Step struct {
	IDs     []string
	Scanned int
	Next    string // where the next scan begins
	Last    bool   // no scan follows
}

// Outcome is the result for one thing.
type Outcome uint8

// The outcomes.
const (
	DidIt   Outcome = iota
	Skipped         // it cannot be done to this thing
	Gone            // the thing does not exist
	Later           // not now: the job waits, and retries
	Never           // it cannot be done to any thing: the job fails
)

// Worker finds the things that a job concerns, and acts on them.
type Worker interface {
	// Scan finds up to limit things from a place on, which is empty at first. Its work is
	// bounded: a step may be empty and still have a next.
	Scan(ctx context.Context, job *Job, from string, limit int) (Step, error)
	// Do acts on one thing. The action is durable when wait, which is never nil, returns. again
	// says that it may have been done before: then a thing that does not exist counts as done.
	// err is the reason of every outcome but DidIt.
	Do(ctx context.Context, job *Job, id string, again bool) (o Outcome, wait func(), err error)
	// Permanent reports whether an error of Scan is permanent.
	Permanent(err error) bool
}

// Observer is called for events of jobs, once they are durable, without locks. A nil member is
// not called.
type Observer struct {
	Stepped func(kind string, done, skipped int64)
	Ended   func(j *Job)
}

// Observe sets the observer; it must be called before Start.
func (m *Module) Observe(o Observer) { m.observer = o }

// Running is how many jobs have not ended, by kind.
func (m *Module) Running() map[string]int {
	n := map[string]int{}
	m.shard.View(func() {
		for _, j := range m.jobs {
			if !j.State.Ended() {
				n[j.Kind]++
			}
		}
	})
	return n
}

// Await has jobs of an earlier process executed only once begin calls start. Until then they can be
// cancelled, and do nothing more. It must be called before Start.
func (m *Module) Await(begin func(start func())) { m.begin = begin }

// Start begins to execute jobs, first those that were running when the last process ended.
func (m *Module) Start(w Worker) {
	begin := m.begin
	if begin == nil {
		begin = func(start func()) { start() }
	}
	var earlier []*running
	m.shard.RunLazy(func() {
		m.worker = w
		for _, j := range m.jobs {
			j.held = true
			earlier = append(earlier, j)
		}
	})
	begin(func() {
		m.shard.RunLazy(func() {
			for _, j := range earlier {
				j.held = false
				m.work(j)
			}
		})
	})
}

// work executes a job in the background, in one goroutine at most.
func (m *Module) work(j *running) {
	if j.working || j.held || m.worker == nil || j.State.Ended() || m.shard.Closed {
		return
	}
	j.stop()
	j.working = true
	m.kernel.GoBackground(func() { m.carry(j) })
}

// workIn executes a job after a wait.
func (m *Module) workIn(j *running, wait time.Duration) {
	j.stop()
	var timer clock.Timer
	timer = m.kernel.Clock.AfterFunc(wait, func() {
		m.shard.RunLazy(func() {
			if j.timer == timer {
				j.timer = nil
				m.work(j)
			}
		})
	})
	j.timer = timer
}

// carry executes steps until the job has ended or waits.
func (m *Module) carry(j *running) {
	ctx := context.Background() // a step is bounded, and is not interrupted
	for on := true; on; {
		if stopping(m.kernel.Stopping) {
			m.shard.RunLazy(func() { j.working = false })
			return
		}
		if job, again := m.snapshot(j); len(job.Doing) == 0 {
			on = m.scan(ctx, j, &job)
		} else {
			on = m.step(ctx, j, &job, again)
		}
	}
}

// snapshot is a copy of the job with its current step.
func (m *Module) snapshot(j *running) (job Job, again bool) {
	m.shard.View(func() { job, again = j.Job, j.again })
	return job, again
}

// change changes a job, durably, and reports whether it continues at once. If the job has
// ended, the observer is called.
func (m *Module) change(j *running, f func()) (on bool) {
	var ended *Job
	err := m.shard.RunDurable(func(*kernel.Tx) error {
		f()
		if j.State.Ended() {
			left := j.copied()
			ended = &left
		}
		if j.State.Ended() || j.timer != nil {
			j.working = false
		}
		on = j.working
		m.put(j)
		return nil
	})
	if err == nil && ended != nil && m.observer.Ended != nil {
		m.observer.Ended(ended)
	}
	return on
}

func (m *Module) end(j *running, s State) {
	if s == Cancelled {
		j.Matched -= int64(len(j.Doing)) // they are not acted on
	}
	j.State, j.Finished, j.Doing, j.Next = s, m.shard.Now(), nil, ""
	if s != Failed && j.Skipped == 0 {
		j.Error = ""
	}
}

// scan finds the next step and stores it.
func (m *Module) scan(ctx context.Context, j *running, job *Job) bool {
	if job.State == Cancelling {
		return m.change(j, func() { m.end(j, Cancelled) })
	}
	if job.Last {
		return m.change(j, func() { m.end(j, Completed) })
	}
	limit := stepSize
	if job.Rate > 0 {
		limit = min(limit, job.Rate)
	}
	found, err := m.worker.Scan(ctx, job, job.Next, limit)
	return m.change(j, func() {
		if err != nil {
			m.failed(j, err, m.worker.Permanent(err))
			return
		}
		j.tries = 0
		j.Scanned += int64(found.Scanned)
		j.Matched += int64(len(found.IDs))
		j.Next, j.Last, j.Doing, j.again = found.Next, found.Last, found.IDs, false
	})
}

// failed ends a job, or schedules a retry.
func (m *Module) failed(j *running, err error, hopeless bool) {
	j.Error = excerpt(err)
	if hopeless {
		m.end(j, Failed)
		return
	}
	if j.State == Cancelling {
		m.end(j, Cancelled)
		return
	}
	j.tries++
	m.workIn(j, time.Second<<min(j.tries-1, 5))
}

// step executes the stored step.
func (m *Module) step(ctx context.Context, j *running, job *Job, again bool) bool {
	var done, skipped int64
	var trouble error
	outcome, last := DidIt, func() {}
	at := 0
	for ; at < len(job.Doing); at++ {
		if stopping(m.kernel.Stopping) {
			break
		}
		o, wait, err := m.worker.Do(ctx, job, job.Doing[at], again)
		switch {
		case o == DidIt:
			last = wait
			done++
		case o == Gone && again:
			done++
			err = nil
		case o == Gone:
			skipped++
		case o == Skipped:
			skipped++
		}
		if err != nil {
			trouble = err
		}
		if outcome = o; o == Later || o == Never {
			break
		}
	}
	last()
	if m.observer.Stepped != nil {
		m.observer.Stepped(job.Kind, done, skipped)
	}
	return m.change(j, func() {
		j.Done, j.Skipped = j.Done+done, j.Skipped+skipped
		j.Doing = j.Doing[at:]
		if trouble != nil {
			j.Error = excerpt(trouble)
		}
		if done > 0 {
			j.tries = 0
		}
		switch {
		case outcome == Later || outcome == Never:
			m.failed(j, trouble, outcome == Never)
		case j.State == Cancelling:
			m.end(j, Cancelled)
		case job.Rate > 0 && !j.Last:
			m.workIn(j, time.Duration(at)*time.Second/time.Duration(job.Rate))
		}
		if len(j.Doing) > 0 && stopping(m.kernel.Stopping) {
			j.working = false
		}
	})
}

func stopping(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
