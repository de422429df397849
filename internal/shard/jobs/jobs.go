// Package jobs keeps what operators have asked to be done to many messages or deliveries,
// and has it done step by step. It is a module of the kernel, with a lock and a stream of the
// journal of its own.
//
// A step is written down before it is taken, with the name of each thing that it is about:
// so a start after a crash knows which of them may have been done, and the counts continue where
// they were. What is done to a thing takes it from its place, or may be done twice.
package jobs

import (
	"errors"
	"fmt"
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
	MaxRunning = 16  // at once
	MaxKept    = 200 // in all; of those that have ended the oldest go
)

// Refusals.
var (
	ErrNone    = fault.NewRule(fault.NotFound, "jobs: there is no such job")
	ErrBusy    = fault.NewRule(fault.ResourceInUse, "jobs: one is running on the resource")
	ErrTooMany = fault.NewRule(fault.Throttled, "jobs: as many are running as may")
	ErrEnded   = fault.NewRule(fault.ResourceInUse, "jobs: it has ended")
)

// State says where a job stands.
type State string

// The states of a job.
const (
	Running    State = "running"
	Cancelling State = "cancelling" // after the step that is under way it is cancelled
	Cancelled  State = "cancelled"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Ended reports that nothing more happens.
func (s State) Ended() bool { return s != Running && s != Cancelling }

// Where says what a job is about, of a resource. What is empty asks for nothing.
type Where struct {
	Search string   `json:"search,omitempty"` // text in the body or an attribute, whatever its case
	Cause  string   `json:"cause,omitempty"`
	From   string   `json:"from,omitempty"` // ARN of where a dead letter comes from
	IDs    []string `json:"ids,omitempty"`  // places of messages, or of deliveries
	Since  int64    `json:"since,omitempty"`
	Until  int64    `json:"until,omitempty"` // epoch milliseconds of when it was sent; not included
}

// Spec asks for a job.
type Spec struct {
	ID       string `json:"id"` // chosen by the caller, unique
	Kind     string `json:"kind"`
	Resource string `json:"resource"`     // ARN of a queue or of a subscription
	To       string `json:"to,omitempty"` // ARN of where messages go; empty: to where each came from
	Where    Where  `json:"where"`
	Rate     int    `json:"rate,omitempty"` // a second; 0: as fast as they go
	// Before is what is not there yet when the job begins, as its worker knows it.
	Before uint64 `json:"before,omitempty"`
	Total  int64  `json:"total"` // there were so many things in the resource
	// By is who asks for it, whose rights are looked at with each thing, without the access
	// key; nil: nobody's.
	By *caller.Caller `json:"by,omitempty"`
}

// Job is a job as it stands.
type Job struct {
	Spec
	State    State  `json:"state"`
	Created  int64  `json:"created"` // epoch milliseconds
	Finished int64  `json:"finished,omitempty"`
	Scanned  int64  `json:"scanned"` // looked at
	Matched  int64  `json:"matched"`
	Done     int64  `json:"done"`
	Skipped  int64  `json:"skipped"`         // matched, and could not be done
	Error    string `json:"error,omitempty"` // why the job failed, waits, or why the latest thing was skipped

	// Next is where the scan that follows the step under way begins.
	Next string `json:"next,omitempty"`
	Last bool   `json:"last,omitempty"` // no scan follows
	// Doing is the step under way: what a crash leaves in it may have been done or not.
	Doing []string `json:"doing,omitempty"`
}

// copied is a job as others may have it.
func (j *Job) copied() Job {
	c := *j
	c.Doing = nil
	return c
}

// running is a job with what its module keeps around it, guarded by its lock.
type running struct {
	Job
	working bool        // a goroutine is at it
	again   bool        // Doing was begun by an earlier process
	timer   clock.Timer // it waits
	tries   int         // since anything was done
}

// Module keeps jobs. It is a module of the kernel, with a shard of its own.
type Module struct {
	kernel.NopModule
	kernel *kernel.Kernel
	sealer *seal.Sealer
	shard  *kernel.Shard // whose lock guards what follows
	jobs   []*running    // in the order in which they began
	worker Worker        // nil: nothing is carried on yet

	observer Observer // set before Start
}

// New adds the module to a kernel. The sealer, which is for Purpose, seals what of a job may
// repeat a message; nil: that is in clear in the store.
func New(k *kernel.Kernel, sealer *seal.Sealer) *Module {
	m := &Module{kernel: k, sealer: sealer, shard: k.OwnShard(keyspace.JobStream)}
	m.shard.Add(m)
	return m
}

func (m *Module) put(j *running) { m.shard.Batch.Set(key(j.ID), encode(&j.Job, m.sealer)) }

// Load implements kernel.Module.
func (m *Module) Load() error {
	var bad error
	err := store.Each(m.shard.Log.Reader(), keyspace.Prefix([]byte{keyspace.JobSpace}), func(k, value []byte) bool {
		j := &running{}
		if j.Job, bad = open(k, value, m.sealer); bad != nil {
			bad = fmt.Errorf("%q: %w", k, bad)
			return false
		}
		j.again = len(j.Doing) > 0
		m.jobs = append(m.jobs, j)
		return true
	})
	slices.SortStableFunc(m.jobs, func(a, b *running) int { return int(min(max(a.Created-b.Created, -1), 1)) })
	return errors.Join(err, bad)
}

// Close implements kernel.Module.
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

// Create begins a job. It is durable when it returns. Errors: ErrBusy, ErrTooMany,
// kernel.ErrFull.
func (m *Module) Create(spec Spec) (made Job, err error) {
	if m.kernel.Full() {
		return made, kernel.ErrFull
	}
	if spec.By != nil {
		by := *spec.By
		by.AccessKey = ""
		spec.By = &by
	}
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
		if n >= MaxRunning {
			return ErrTooMany
		}
		for i := 0; len(m.jobs) >= MaxKept; i++ { // one of them has ended
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

// Cancel ends a job after the step that is under way; what was done stays done. Errors:
// ErrNone, ErrEnded.
func (m *Module) Cancel(id string) (left Job, err error) {
	err = m.shard.RunDurable(func(tx *kernel.Tx) error {
		tx.DependOn(m.shard.Log.Last())
		j := m.find(id)
		switch {
		case j == nil:
			return ErrNone
		case j.State.Ended():
			return ErrEnded
		}
		j.State = Cancelling
		m.put(j)
		left = j.copied()
		m.work(j)
		return nil
	})
	return left, err
}

// Get is a job as it stands. What it reports is durable. Errors: ErrNone.
func (m *Module) Get(id string) (found Job, err error) {
	err = m.shard.RunDurable(func(tx *kernel.Tx) error {
		tx.DependOn(m.shard.Log.Last())
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
	_ = m.shard.RunDurable(func(tx *kernel.Tx) error {
		tx.DependOn(m.shard.Log.Last())
		for _, j := range slices.Backward(m.jobs) {
			all = append(all, j.copied())
		}
		return nil
	})
	return all
}

// excerpt is as much of an error's text as a record keeps.
func excerpt(err error) string {
	const most = 300
	text := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	return text
}
