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

// engine is an overlay whose units settle as a rule says, as a store.
type engine struct {
	*overlay.Store
	base store.Store

	mu      sync.Mutex
	number  uint64
	pending []*mutation.Batch // one for each unit that has not settled
	settles func() int        // how many of those that are pending settle behind a write
}

func open(settles func() int) *engine {
	base := memory.New()
	return &engine{Store: overlay.New(base), base: base, settles: settles}
}

func (e *engine) Apply(_ bool, batches ...*mutation.Batch) error {
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
	return e.settle(e.settles())
}

func (e *engine) settle(n int) error {
	for range min(n, len(e.pending)) {
		number := e.number - uint64(len(e.pending)) + 1
		if err := e.Settle(number, func() error { return e.base.Apply(false, e.pending[0]) }); err != nil {
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
	if err := e.settle(len(e.pending)); err != nil {
		return err
	}
	return e.base.Checkpoint(dir)
}

func (e *engine) Close() error {
	e.Store.Close()
	return nil
}

// An overlay is a store, however far what is written has settled.
func TestStore(t *testing.T) {
	rand := soak.Rand(soak.Seed(t), 0)
	for name, settles := range map[string]func() func() int{
		"nothing settles":    func() func() int { return func() int { return 0 } },
		"everything settles": func() func() int { return func() int { return 1 << 20 } },
		"some settles":       func() func() int { return some(rand.Uint64()) },
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, storetest.Engine{
				Open: func(testing.TB) store.Store { return open(settles()) },
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

// Settling changes nothing of what is seen, by whom ever, and what fails to be committed
// does not settle.
func TestSettle(t *testing.T) {
	e := open(func() int { return 0 })
	write := func(f func(b *mutation.Batch)) {
		b := new(mutation.Batch)
		f(b)
		if err := e.Apply(false, b); err != nil {
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
	if err := want.Apply(false, first); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	if err := e.Settle(1, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a commit that fails: %v", err)
	}
	for range 4 {
		storetest.Equal(t, want, e)
		storetest.Equal(t, want, seen)
		if err := e.settle(1); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Equal(t, want, e.base)
}
