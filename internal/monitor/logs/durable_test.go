package logs

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// syncing knows whether everything that was applied is durable, and how much the
// largest commit was. Its syncs wait while there is a gate.
type syncing struct {
	store.Store
	gate    atomic.Pointer[chan struct{}]
	dirty   atomic.Bool
	largest atomic.Int64
}

func (s *syncing) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	s.dirty.Store(sync == store.NoSync)
	for _, b := range batches {
		for size := int64(b.Size()); ; {
			was := s.largest.Load()
			if size <= was || s.largest.CompareAndSwap(was, size) {
				break
			}
		}
	}
	return s.Store.Apply(sync, batches...)
}

func (s *syncing) Sync() error {
	if gate := s.gate.Load(); gate != nil {
		<-*gate
	}
	s.dirty.Store(false)
	return s.Store.Sync()
}

// What an answer reports is durable: of a change, and of what others changed before.
func TestAnswersAreDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &syncing{Store: memory.New()}
		l, _ := open(t, st, nil)
		durable := func(what string, answer func() error) {
			t.Helper()
			gate := make(chan struct{})
			st.gate.Store(&gate)
			answered := false
			go func() {
				if err := answer(); err != nil {
					t.Error(what, err)
				}
				answered = true
			}()
			synctest.Wait()
			if answered {
				t.Errorf("%s is answered before it is durable", what)
			}
			st.gate.Store(nil)
			close(gate)
			synctest.Wait()
			if !answered {
				t.Errorf("%s is never answered", what)
			}
			l.kernel.AwaitIdle()
			l.shard.Stream.Sync()
		}
		durable("CreateGroup", func() error { return l.CreateGroup(NewGroup{ARN: group}) })
		durable("CreateStream", func() error { return l.CreateStream(group, "s") })
		durable("Put", func() error {
			_, err := l.Put(group, "s", []Event{{at(0), "x"}})
			return err
		})
		durable("Retain", func() error { return l.Retain(group, 7) })
		durable("Tag", func() error { return l.Tag(group, map[string]string{"a": "b"}) })
		durable("Untag", func() error { return l.Untag(group, []string{"a"}) })
		durable("Protect", func() error { return l.Protect(group, true) })
		durable("Protect", func() error { return l.Protect(group, false) })
		for what, read := range map[string]func() error{
			"Groups": func() error {
				_, _, err := l.Groups(GroupFilter{Region: group.Region, Account: group.Account}, Page{Limit: 1})
				return err
			},
			"Tags": func() error {
				_, err := l.Tags(group)
				return err
			},
			"Streams": func() error {
				_, _, err := l.Streams(group, StreamOrder{}, Page{Limit: 1})
				return err
			},
			"Events": func() error {
				_, err := l.Events(EventsQuery{Group: group, Stream: "s", Limit: 1})
				return err
			},
			"Filter": func() error {
				_, _, err := l.Filter(FilterQuery{Group: group, Limit: 1})
				return err
			},
		} {
			durable(what, func() error {
				if err := putOwn(l, "s", []Event{{at(time.Second), "of another"}}); err != nil {
					return err
				}
				return read()
			})
		}
		durable("DeleteStream", func() error { return l.DeleteStream(group, "s") })
		durable("DeleteGroup", func() error { return l.DeleteGroup(group) })
	})
}

// What the server writes itself is durable once it is written, in small commits.
func TestSinkIsDurable(t *testing.T) {
	st := &syncing{Store: memory.New()}
	l, _ := open(t, st, nil)
	for range 20 {
		l.Log(group, "s", began, make([]byte, batchBytes/4))
	}
	l.sink.flush()
	if largest := st.largest.Load(); largest > batchBytes+batchBytes/4 {
		t.Errorf("a commit of %d bytes", largest)
	}
	if st.dirty.Load() {
		t.Error("what the sink wrote is not durable")
	}
}

// Where a repair has lost how far ids and sequences have come, none is used again: a new group would
// have the events of another one.
func TestLostSequence(t *testing.T) {
	st := memory.New()
	before, _ := open(t, st, nil)
	with(t, before, "s")
	put(t, before, "s", Event{Time: at(0), Message: "first"})
	check(t, before.kernel.Close())
	for range 2 {
		b := new(mutation.Batch)
		b.Delete(key(tagSequence))
		check(t, st.Apply(store.Sync, b))
		l, _ := open(t, st, nil)
		other := group
		other.Resource += "/other"
		check(t, l.CreateGroup(NewGroup{ARN: other}))
		was, err := l.find(group)
		check(t, err)
		is, err := l.find(other)
		check(t, err)
		if is.id <= was.id {
			t.Errorf("a new group has the id %d, and the one before %d", is.id, was.id)
		}
		check(t, l.DeleteGroup(other))
		check(t, l.kernel.Close())
	}
}

// So it is where only events are left, and a repair has lost the groups, too.
func TestLostSequenceAndGroups(t *testing.T) {
	st := memory.New()
	before, _ := open(t, st, nil)
	with(t, before, "s")
	put(t, before, "s", Event{Time: at(0), Message: "of another"})
	check(t, before.kernel.Close())
	b := new(mutation.Batch)
	for _, tag := range []byte{tagSequence, tagGroup, tagTotals, tagStream} {
		b.DeleteRange(key(tag), behind(key(tag)))
	}
	check(t, st.Apply(store.Sync, b))
	l, _ := open(t, st, nil)
	with(t, l, "s")
	got, _, err := l.Filter(FilterQuery{Group: group, Limit: 10})
	check(t, err)
	if len(got) > 0 {
		t.Errorf("a new group has %+v", got)
	}
	check(t, l.kernel.Close())
}
