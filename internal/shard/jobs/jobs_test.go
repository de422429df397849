package jobs_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard/jobs"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// quick is a worker that finds three things, and does them.
type quick struct{ blocked }

func (quick) Do(context.Context, *jobs.Job, string, bool) (jobs.Outcome, func(), error) {
	return jobs.DidIt, func() {}, nil
}

// TestHeld: in a server that was restored, and is looked at, jobs from before it do nothing until
// they may, and can be cancelled; new ones are executed.
func TestHeld(t *testing.T) {
	st := memory.New()
	open := func() (*jobs.Module, *kernel.Kernel) {
		k := kernel.New(kernel.Options{Journal: shardtest.JournalOf(t, st, nil), Clock: clock.System, Logger: slog.New(slog.DiscardHandler)})
		m := jobs.New(k, nil)
		if err := k.Load(); err != nil {
			t.Fatal(err)
		}
		return m, k
	}
	create := func(m *jobs.Module, id string) {
		t.Helper()
		if _, err := m.Create(jobs.Spec{ID: id, Kind: "delete", Resource: id}); err != nil {
			t.Fatal(err)
		}
	}
	is := func(m *jobs.Module, id string, state jobs.State, done int64) {
		t.Helper()
		if job, err := m.Get(id); err != nil || job.State != state || job.Done != done {
			t.Errorf("job %s is %+v, %v; want it %s with %d done", id, job, err, state, done)
		}
	}
	m, k := open()
	create(m, "goes on")
	create(m, "is cancelled")
	_ = k.Close()
	m, k = open()
	defer func() { _ = k.Close() }()
	var begin func()
	m.Await(func(start func()) { begin = start })
	m.Start(quick{})
	create(m, "new")
	k.AwaitIdle()
	is(m, "goes on", jobs.Running, 0)
	is(m, "new", jobs.Completed, 3)
	if _, err := m.Cancel("is cancelled"); err != nil {
		t.Error(err)
	}
	is(m, "is cancelled", jobs.Cancelled, 0)
	begin()
	k.AwaitIdle()
	is(m, "goes on", jobs.Completed, 3)
	is(m, "is cancelled", jobs.Cancelled, 0)
}

// blocked is a worker that finds three things, of which only the first can be done now.
type blocked struct{}

func (blocked) Scan(context.Context, *jobs.Job, string, int) (jobs.Step, error) {
	return jobs.Step{IDs: []string{"a", "b", "c"}, Scanned: 3, Last: true}, nil
}

func (blocked) Do(_ context.Context, _ *jobs.Job, id string, _ bool) (jobs.Outcome, func(), error) {
	if id == "a" {
		return jobs.DidIt, func() {}, nil
	}
	return jobs.Later, func() {}, errors.New("the destination is unavailable")
}

func (blocked) Permanent(error) bool { return false }

// TestCancelWhileWaiting: what a cancelled job has not acted on it has not matched, also where
// it was cancelled while it waited for its destination.
func TestCancelWhileWaiting(t *testing.T) {
	k := kernel.New(kernel.Options{
		Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.NewVirtual(shardtest.Start), Fatal: func(err error) { t.Error(err) },
	})
	m := jobs.New(k, nil)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}()
	m.Start(blocked{})
	if _, err := m.Create(jobs.Spec{ID: "x"}); err != nil {
		t.Fatal(err)
	}
	k.AwaitIdle()
	if job, err := m.Get("x"); err != nil || job.State != jobs.Running || job.Matched != 3 || job.Done != 1 {
		t.Fatalf("while it waits: %+v, %v", job, err)
	}
	if _, err := m.Cancel("x"); err != nil {
		t.Fatal(err)
	}
	k.AwaitIdle()
	if job, err := m.Get("x"); err != nil || job.State != jobs.Cancelled || job.Matched != 1 || job.Done != 1 || job.Skipped != 0 {
		t.Errorf("cancelled: %+v, %v", job, err)
	}
}
