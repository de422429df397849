package logs

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// syncing knows whether everything that was applied is durable, and how much the
// largest commit was.
type syncing struct {
	store.Store
	dirty   atomic.Bool
	largest int
}

func (s *syncing) Apply(sync bool, batches ...*mutation.Batch) error {
	s.dirty.Store(!sync)
	for _, b := range batches {
		s.largest = max(s.largest, b.Size())
	}
	return s.Store.Apply(sync, batches...)
}

func (s *syncing) Sync() error {
	s.dirty.Store(false)
	return s.Store.Sync()
}

// What an answer tells is durable: of a change, and of what others changed before.
func TestAnswersAreDurable(t *testing.T) {
	st := &syncing{Store: memory.New()}
	l, _ := open(t, st, nil)
	ctx := t.Context()
	durable := func(what string, err error) {
		t.Helper()
		check(t, err)
		if st.dirty.Load() {
			t.Errorf("%s is not durable", what)
		}
	}
	durable("CreateGroup", l.CreateGroup(ctx, NewGroup{ARN: group}))
	durable("CreateStream", l.CreateStream(ctx, group, "s"))
	_, err := l.Put(ctx, group, "s", []Event{{at(0), "x"}})
	durable("Put", err)
	durable("Retain", l.Retain(ctx, group, 7))
	durable("Tag", l.Tag(ctx, group, map[string]string{"a": "b"}))
	durable("Untag", l.Untag(ctx, group, []string{"a"}))
	durable("Protect", l.Protect(ctx, group, true))
	durable("Protect", l.Protect(ctx, group, false))
	g, err := l.find(group)
	check(t, err)
	for what, read := range map[string]func(context.Context) error{
		"Groups": func(ctx context.Context) error {
			_, _, err := l.Groups(ctx, group.Region, group.Account, "", "", "", Page{Limit: 1})
			return err
		},
		"Tags": func(ctx context.Context) error {
			_, err := l.Tags(ctx, group)
			return err
		},
		"Streams": func(ctx context.Context) error {
			_, _, err := l.Streams(ctx, group, StreamOrder{}, Page{Limit: 1})
			return err
		},
		"Events": func(ctx context.Context) error {
			_, err := l.Events(ctx, EventsQuery{Group: group, Stream: "s", Limit: 1})
			return err
		},
		"Filter": func(ctx context.Context) error {
			_, _, err := l.Filter(ctx, FilterQuery{Group: group, Limit: 1})
			return err
		},
	} {
		if _, err := l.put(g.id, "s", []Event{{at(time.Second), "of another"}}, false); err != nil || !st.dirty.Load() {
			t.Fatal(err, "nothing is left to be made durable")
		}
		durable(what, read(ctx))
	}
	durable("DeleteStream", l.DeleteStream(ctx, group, "s"))
	l.background.Wait()
	durable("DeleteGroup", l.DeleteGroup(ctx, group))
}

// What the server writes itself is durable once it is written, in small commits.
func TestSinkIsDurable(t *testing.T) {
	st := &syncing{Store: memory.New()}
	l, _ := open(t, st, nil)
	for range 20 {
		l.Log(group, "s", began, make([]byte, batchBytes/4))
	}
	l.sink.flush()
	if st.largest > batchBytes+batchBytes/4 {
		t.Errorf("a commit of %d bytes", st.largest)
	}
	if st.dirty.Load() {
		t.Error("what the sink wrote is not durable")
	}
}
