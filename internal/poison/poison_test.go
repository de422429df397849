package poison

import (
	"errors"
	"sync"
	"testing"
)

func recovered(f func()) (cause any) {
	defer func() { cause = recover() }()
	f()
	return nil
}

// TestPanic: a panic under a guarded lock ends the process once, is seen by the caller
// all the same, and nobody gets a lock of the guard any more, nor waits for one.
func TestPanic(t *testing.T) {
	for name, cut := range map[string]func(g *Guard, mu *sync.Mutex){
		"with the lock": func(g *Guard, mu *sync.Mutex) {
			g.Lock(mu)
			defer g.Unlock(mu)
			panic("a mistake")
		},
		"as a whole": func(g *Guard, _ *sync.Mutex) {
			defer g.Whole()
			panic("a mistake")
		},
		"with two locks": func(g *Guard, mu *sync.Mutex) {
			var other sync.Mutex
			g.Lock(&other)
			defer g.Unlock(&other)
			g.Lock(mu)
			defer g.Unlock(mu)
			panic("a mistake")
		},
	} {
		t.Run(name, func(t *testing.T) {
			var ends []error
			g := New(nil, func(err error) { ends = append(ends, err) })
			var mu sync.Mutex
			if cause := recovered(func() { cut(g, &mu) }); cause != "a mistake" {
				t.Errorf("the caller sees %v", cause)
			}
			if len(ends) != 1 || !errors.Is(ends[0], ErrPoisoned) {
				t.Errorf("the process ends %d times: %v", len(ends), ends)
			}
			var another sync.Mutex
			for _, mu := range []*sync.Mutex{&mu, &another} {
				if err, ok := recovered(func() { g.Lock(mu) }).(error); !ok || !errors.Is(err, ErrPoisoned) {
					t.Errorf("a lock is given after a panic: %v", err)
				}
				if !mu.TryLock() {
					t.Error("a lock is held for ever")
				}
			}
		})
	}
}

// TestNoPanic: neither a return nor a panic beside a lock is anything to it, also while
// somebody else's panic unwinds the stack.
func TestNoPanic(t *testing.T) {
	g := New(nil, func(err error) { t.Errorf("the process ends: %v", err) })
	var mu sync.Mutex
	locked := func() {
		g.Lock(&mu)
		defer g.Unlock(&mu)
		defer g.Whole()
	}
	locked()
	_ = recovered(func() { panic("a mistake") })
	if cause := recovered(func() {
		defer locked()
		panic("a mistake")
	}); cause != "a mistake" {
		t.Errorf("the panic came to %v", cause)
	}
	locked()
}

// TestUntil: behind the end of what is in memory a panic ends no process; any other failure does.
func TestUntil(t *testing.T) {
	over, ends := false, 0
	fatal := Until(func() bool { return over }, func(error) { ends++ })
	End(nil, fatal, "a mistake")
	over = true
	End(nil, fatal, "a mistake")
	if ends != 1 {
		t.Errorf("the process ends %d times", ends)
	}
	if fatal(errors.New("the disk fails")); ends != 2 {
		t.Error("it goes on without its disk")
	}
}

func BenchmarkLock(b *testing.B) {
	g := New(nil, nil)
	var mu sync.Mutex
	n := 0
	for b.Loop() {
		func() {
			g.Lock(&mu)
			defer g.Unlock(&mu)
			n++
		}()
	}
}
