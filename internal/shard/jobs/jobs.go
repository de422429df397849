// Package jobs has operators' jobs on many messages or deliveries, and executes them step by
// step. It is a module of the kernel, with its own lock and stream of the journal. A step is
// stored, with the name of each thing that it concerns, before it is executed: so a start after
// a crash knows which things may have been done, and the counts continue. An action must remove
// the thing from its place, or be idempotent.
package jobs

import (
	"cmp"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// Limits of jobs.
const (
	maxRunning = 16  // at once
	maxKept    = 200 // in all; the oldest ended ones are removed
)

// Errors of commands.
var (
	ErrNone    = fault.NewRule(fault.NotFound, "jobs: there is no such job")
	ErrBusy    = fault.NewRule(fault.ResourceInUse, "jobs: one is running on the resource")
	ErrTooMany = fault.NewRule(fault.Throttled, "jobs: as many are running as may")
	ErrEnded   = fault.NewRule(fault.ResourceInUse, "jobs: it has ended")
)

// State is the state of a job.
type State string

// The states of a job.
const (
	Running    State = "running"
	Cancelling State = "cancelling" // it is cancelled after the current step
	Cancelled  State = "cancelled"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Ended reports that the job has ended.
func (s State) Ended() bool { return s != Running && s != Cancelling }

// Where selects the things of a resource that a job concerns. Empty fields select all.
type Where struct {
	Search string   `json:"search,omitempty"` // text in the body or an attribute, case-insensitive
	Cause  string   `json:"cause,omitempty"`
	From   string   `json:"from,omitempty"` // ARN of the origin of a dead letter
	IDs    []string `json:"ids,omitempty"`  // places of messages, or of deliveries
	Since  int64    `json:"since,omitempty"`
	Until  int64    `json:"until,omitempty"` // epoch milliseconds; only what was sent before
}

// Spec specifies a job.
type Spec struct {
	ID       string `json:"id"` // chosen by the caller, unique
	Kind     string `json:"kind"`
	Resource string `json:"resource"`     // ARN of a queue or of a subscription
	To       string `json:"to,omitempty"` // ARN of the destination of messages; empty: the origin of each
	Where    Where  `json:"where"`
	Rate     int    `json:"rate,omitempty"` // per second; 0: unlimited
	Grows    bool   `json:"-"`              // it takes space, and so does not begin while the disk is short of it
	// Before marks, in the worker's terms, the things that arrive after the job has begun,
	// which it leaves alone.
	Before uint64 `json:"before,omitempty"`
	// Incarnation is that of the resource, in the worker's terms: another one of its name is none
	// that the job is about. 0: any, in jobs of versions before.
	Incarnation uint64 `json:"incarnation,omitempty"`
	Total       int64  `json:"total"` // how many things the resource had
	// By is the requester, without the access key, whose permissions are checked for each
	// thing; nil: none are checked.
	By *caller.Caller `json:"by,omitempty"`
}

// Job is a job and its progress.
type Job struct {
	Spec
	State    State  `json:"state"`
	Created  int64  `json:"created"` // epoch milliseconds
	Finished int64  `json:"finished,omitempty"`
	Scanned  int64  `json:"scanned"` // things examined
	Matched  int64  `json:"matched"`
	Done     int64  `json:"done"`
	Skipped  int64  `json:"skipped"`         // matched, but could not be done
	Error    string `json:"error,omitempty"` // why the job failed or waits, or why the latest thing was skipped

	// Next is where the scan after the current step begins.
	Next string `json:"next,omitempty"`
	Last bool   `json:"last,omitempty"` // no scan follows
	// Doing is the current step: after a crash its things may have been done or not.
	Doing []string `json:"doing,omitempty"`
}

// copied is a copy of a job for callers.
func (j *Job) copied() Job {
	c := *j
	c.Doing = nil
	return c
}

// running is a job with its state in memory, guarded by the module's lock.
type running struct {
	Job
	working bool        // a goroutine executes it
	held    bool        // it waits for the operator who looks at what was restored
	again   bool        // Doing was begun by an earlier process
	timer   clock.Timer // set while it waits
	tries   int         // retries since the last progress
}

// Module has the jobs. It is a module of the kernel, with its own shard.
type Module struct {
	kernel.NopLifecycle
	kernel *kernel.Kernel
	sealer *seal.Sealer
	shard  *kernel.Shard // whose lock guards what follows
	jobs   []*running    // in the order in which they began
	worker Worker        // nil: no job is executed yet

	observer Observer           // set before Start
	begin    func(start func()) // see Await; nil: at once
}

// New adds the module to a kernel. The sealer, for Purpose, seals the texts of jobs that may
// repeat messages; nil: they are stored in clear.
func New(k *kernel.Kernel, sealer *seal.Sealer) *Module {
	m := &Module{kernel: k, sealer: sealer, shard: k.OwnShard(keyspace.JobStream)}
	m.shard.Add(m)
	return m
}

func (m *Module) put(j *running) { m.shard.Batch.Set(key(j.ID), encode(&j.Job, m.sealer)) }

// Load implements kernel.Lifecycle.
func (m *Module) Load() error {
	err := store.EachOf(m.shard.Stream.Reader(), keyspace.KindJob, keyspace.Prefix([]byte{keyspace.JobSpace}), func(k *keyspace.Key, value []byte) error {
		job, err := open(k.Encoded(), value, m.sealer)
		if err != nil {
			return err
		}
		m.jobs = append(m.jobs, &running{Job: job, again: len(job.Doing) > 0})
		return nil
	})
	slices.SortStableFunc(m.jobs, func(a, b *running) int { return cmp.Compare(a.Created, b.Created) })
	return err
}

// Close implements kernel.Lifecycle.
func (m *Module) Close() {
	for _, j := range m.jobs {
		j.stop()
	}
}

func (j *running) stop() {
	if j.timer != nil {
		j.timer.Stop()
		j.timer = nil
	}
}

func (m *Module) find(id string) *running {
	for _, j := range m.jobs {
		if j.ID == id {
			return j
		}
	}
	return nil
}

// Create begins a job. It is durable when it returns. While the disk is short of space those that do
// not grow begin all the same: what they delete is what it needs, and the records of jobs are
// bounded. Errors: ErrBusy, ErrTooMany, kernel.ErrFull.
func (m *Module) Create(spec Spec) (made Job, err error) {
	if spec.Grows && m.kernel.Full() {
		return made, kernel.ErrFull
	}
	spec.By = spec.By.WithoutKey()
	err = m.shard.RunDurable(func(*kernel.Tx) error {
		n := 0
		for _, j := range m.jobs {
			if j.State.Ended() {
				continue
			}
			if n++; j.Resource == spec.Resource {
				return ErrBusy
			}
		}
		if n >= maxRunning {
			return ErrTooMany
		}
		for i := 0; len(m.jobs) >= maxKept; i++ { // there is one that has ended
			if m.jobs[i].State.Ended() {
				m.shard.Batch.Delete(key(m.jobs[i].ID))
				m.jobs = slices.Delete(m.jobs, i, i+1)
				break
			}
		}
		j := &running{Job: Job{Spec: spec, State: Running, Created: m.shard.Now()}}
		m.jobs = append(m.jobs, j)
		m.put(j)
		made = j.copied()
		m.work(j)
		return nil
	})
	return made, err
}

// Cancel ends a job after the current step; what was done stays done. Errors: ErrNone,
// ErrEnded.
func (m *Module) Cancel(id string) (left Job, err error) {
	err = m.shard.RunDurableReads(func(*kernel.Tx) error {
		j := m.find(id)
		switch {
		case j == nil:
			return ErrNone
		case j.State.Ended():
			return ErrEnded
		}
		j.State = Cancelling
		if j.held {
			m.end(j, Cancelled)
		}
		m.put(j)
		left = j.copied()
		m.work(j)
		return nil
	})
	if err == nil && left.State.Ended() && m.observer.Ended != nil {
		ended := left
		m.observer.Ended(&ended)
	}
	return left, err
}

// Get is a job. What it reports is durable. Errors: ErrNone.
func (m *Module) Get(id string) (found Job, err error) {
	err = m.shard.RunDurableReads(func(*kernel.Tx) error {
		j := m.find(id)
		if j == nil {
			return ErrNone
		}
		found = j.copied()
		return nil
	})
	return found, err
}

// List are the jobs, the latest first. What it reports is durable.
func (m *Module) List() (all []Job) {
	_ = m.shard.RunDurableReads(func(*kernel.Tx) error {
		for _, j := range slices.Backward(m.jobs) {
			all = append(all, j.copied())
		}
		return nil
	})
	return all
}

// excerpt is the part of an error's text that is stored.
func excerpt(err error) string {
	const most = 300
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
