package overlay_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/cluster/overlay"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/soak"
)

// engine is an overlay whose units are flushed as a rule says, as a store.
type engine struct {
	*overlay.Store
	base store.Store

	mu      sync.Mutex
	number  uint64
	pending []*mutation.Batch // one for each unit that has not been flushed
	flushes func() int        // how many of the pending units are flushed after a write
}

func open(flushes func() int) *engine {
	base := memory.New()
	return &engine{Store: overlay.New(base), base: base, flushes: flushes}
}

func (e *engine) Apply(_ store.SyncMode, batches ...*mutation.Batch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.number++
	if err := e.Write(e.number, batches...); err != nil {
		return err
	}
	all := new(mutation.Batch)
	for _, b := range batches {
		all.Append(b)
	}
	e.pending = append(e.pending, all)
	return e.flush(e.flushes())
}

func (e *engine) flush(n int) error {
	for range min(n, len(e.pending)) {
		number := e.number - uint64(len(e.pending)) + 1
		if err := e.Flush(number, func() error { return e.base.Apply(store.NoSync, e.pending[0]) }); err != nil {
			return err
		}
		e.pending = slices.Delete(e.pending, 0, 1)
	}
	return nil
}

func (e *engine) Sync() error {
	_, _, err := e.Get(nil, []byte("is it open?"))
	return err
}

func (e *engine) Checkpoint(dir string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.Sync(); err != nil {
		return err
	}
	if err := e.flush(len(e.pending)); err != nil {
		return err
	}
	return e.base.Checkpoint(dir)
}

func (e *engine) Close() error {
	e.Store.Close()
	return nil
}

// An overlay is a store, however far what is written has been flushed.
func TestStore(t *testing.T) {
	rand := soak.Rand(soak.Seed(t), 0)
	for name, flushes := range map[string]func() func() int{
		"nothing is flushed":    func() func() int { return func() int { return 0 } },
		"everything is flushed": func() func() int { return func() int { return 1 << 20 } },
		"some are flushed":      func() func() int { return some(rand.Uint64()) },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Engine{
				Open: func(testing.TB) store.Store { return open(flushes()) },
				OpenCheckpoint: func(t testing.TB, dir string) store.Store {
					s, err := memory.Open(dir)
					if err != nil {
						t.Fatal(err)
					}
					return s
				},
			})
		})
	}
}

func some(seed uint64) func() int {
	r := rand.New(rand.NewPCG(seed, 1))
	return func() int { return r.IntN(3) }
}

// A flush changes nothing of what is seen, by whomever, and what fails to be committed
// is not flushed.
func TestFlush(t *testing.T) {
	e := open(func() int { return 0 })
	write := func(f func(b *mutation.Batch)) {
		b := new(mutation.Batch)
		f(b)
		if err := e.Apply(store.NoSync, b); err != nil {
			t.Fatal(err)
		}
	}
	write(func(b *mutation.Batch) { b.Set([]byte("a"), []byte("1")); b.Set([]byte("b"), []byte("1")) })
	write(func(b *mutation.Batch) { b.DeleteRange([]byte("a"), []byte("c")); b.Set([]byte("b"), []byte("2")) })
	write(func(b *mutation.Batch) { b.Set([]byte("a"), []byte("3")); b.Delete([]byte("b")) })
	seen := e.Snapshot()
	defer func() { _ = seen.Close() }()
	want := memory.New()
	first := new(mutation.Batch)
	first.Set([]byte("a"), []byte("3"))
	if err := want.Apply(store.NoSync, first); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := e.Flush(1, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a commit that fails: %v", err)
	}
	for range 4 {
		storetest.Equal(t, want, e)
		storetest.Equal(t, want, seen)
		if err := e.flush(1); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Equal(t, want, e.base)
	// Nothing of the overlay lies above it any more.
	for _, s := range []store.Store{e.base, want} {
		if err := s.Apply(store.NoSync, storetest.Sets("a", "4", "b", "4", "bb", "4")); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Equal(t, want, e)
}

// A Seek finds the first key of both stores from there on, however the walk came there, and neither
// one that is deleted above nor one that stands before.
func TestSeek(t *testing.T) {
	e, want := open(func() int { return 0 }), memory.New()
	write := func(to store.Store, f func(b *mutation.Batch)) {
		b := new(mutation.Batch)
		f(b)
		if err := errors.Join(to.Apply(store.NoSync, b), want.Apply(store.NoSync, b)); err != nil {
			t.Fatal(err)
		}
	}
	write(e.base, func(b *mutation.Batch) {
		for _, key := range []string{"a", "b", "d", "f", "g", "i"} {
			b.Set([]byte(key), []byte("below"))
		}
	})
	write(e, func(b *mutation.Batch) {
		b.Delete([]byte("b"))
		b.DeleteRange([]byte("e"), []byte("g"))
		for _, key := range []string{"a", "c", "d", "f", "h"} { // a is below the range
			b.Set([]byte(key), []byte("above"))
		}
	})
	walk := func(s store.Store, first, second byte) (got string) {
		it, err := s.Iter([]byte("b"), []byte("i"))
		if err != nil {
			t.Fatal(err)
		}
		for ok := it.Seek([]byte{first}) && (it.Key()[0] >= second || it.Seek([]byte{second})); ok; ok = it.Next() {
			got += string(it.Key()) + " " + string(it.Value()) + ", "
		}
		if err := it.Close(); err != nil {
			t.Error(err)
		}
		return got
	}
	for first := byte('a'); first < 'k'; first++ {
		for second := first; second < 'k'; second++ {
			if got, want := walk(e, first, second), walk(want, first, second); got != want {
				t.Errorf("from %c and then %c there is %q, not %q", first, second, got, want)
			}
		}
	}
}

// A frozen overlay goes on as a store of its own: what reaches the committed store is not
// seen in it, and nothing of it is flushed away.
func TestFreeze(t *testing.T) {
	e := open(func() int { return 0 })
	write := func(s store.Store, key, value string) {
		t.Helper()
		b := new(mutation.Batch)
		b.Set([]byte(key), []byte(value))
		if err := s.Apply(store.NoSync, b); err != nil {
			t.Fatal(err)
		}
	}
	write(e.base, "committed", "1")
	write(e, "under way", "1")
	before := e.Snapshot()
	e.Freeze()
	e.Freeze()
	write(e.base, "committed", "2")
	write(e.base, "other's", "2")
	if err := e.flush(1); err != nil {
		t.Fatal(err)
	}
	want := memory.New()
	write(want, "committed", "1")
	write(want, "under way", "1")
	storetest.Equal(t, want, e)
	storetest.Equal(t, want, before)
	write(e, "later", "3")
	after := e.Snapshot()
	write(want, "later", "3")
	storetest.Equal(t, want, e)
	storetest.Equal(t, want, after)
	if _, ok, err := e.base.Get(nil, []byte("under way")); !ok || err != nil {
		t.Errorf("what is frozen has not reached the committed store: %t, %v", ok, err)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	for what, r := range map[string]store.Reader{"the store": e, "a snapshot of before": before, "one of after": after} {
		if _, _, err := r.Get(nil, []byte("later")); !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s, closed, says %v", what, err)
		}
	}
	if err := errors.Join(before.Close(), after.Close()); err != nil {
		t.Error(err)
	}
}

// A commit that waits, as for space on a full disk, holds nobody up who reads, writes or freezes the
// overlay, and nobody sees more or less of it before, while and after it is there.
func TestSlowCommit(t *testing.T) {
	for _, frozen := range []bool{false, true} {
		e := open(func() int { return 0 })
		want := memory.New()
		write := func(to ...store.Store) func(f func(b *mutation.Batch)) {
			return func(f func(b *mutation.Batch)) {
				b := new(mutation.Batch)
				f(b)
				for _, s := range to {
					if err := s.Apply(store.NoSync, b); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		write(e.base, want)(func(b *mutation.Batch) { b.Set([]byte("a"), []byte("0")); b.Set([]byte("d"), []byte("0")) })
		write(e, want)(func(b *mutation.Batch) { b.DeleteRange([]byte("a"), []byte("c")); b.Set([]byte("b"), []byte("1")) })
		write(e, want)(func(b *mutation.Batch) { b.Set([]byte("a"), []byte("2")); b.Delete([]byte("d")) })
		var seen store.Snapshot
		committed := func() error {
			storetest.Equal(t, want, e)
			// A unit whose keys are those of the one that is committed.
			write(e, want)(func(b *mutation.Batch) { b.DeleteRange([]byte("b"), []byte("c")); b.Set([]byte("d"), []byte("3")) })
			storetest.Equal(t, want, e)
			if frozen {
				e.Freeze()
			}
			if err := e.base.Apply(store.NoSync, e.pending[0]); err != nil {
				return err
			}
			storetest.Equal(t, want, e)
			seen = e.Snapshot()
			return nil
		}
		if err := e.Flush(1, committed); err != nil {
			t.Fatal(err)
		}
		e.pending = slices.Delete(e.pending, 0, 1)
		for range 3 {
			storetest.Equal(t, want, e)
			storetest.Equal(t, want, seen)
			if err := e.flush(1); err != nil {
				t.Fatal(err)
			}
		}
		storetest.Equal(t, want, e.base)
		if err := seen.Close(); err != nil {
			t.Error(err)
		}
	}
}
