package kernel

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/poison"
	"godwit.dev/godwit/internal/store/memory"
)

// TestPanicHalfway: a command that panics ends the process, and where that takes a
// moment nobody continues with what it has left in memory.
func TestPanicHalfway(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(w *poisonWorld, command func(*Tx) error)
		gone int // shards that take no command any more
	}{
		"one shard": {func(w *poisonWorld, f func(*Tx) error) { _, _ = w.All[3].Run(journal.Eager, f) }, 1},
		"several":   {func(w *poisonWorld, f func(*Tx) error) { _, _ = RunAll(journal.Eager, f, w.All[5], w.All[3]) }, 2},
		"a look":    {func(w *poisonWorld, f func(*Tx) error) { w.All[3].View(func() { _ = f(nil) }) }, 1},
		"the catalog": {func(w *poisonWorld, f func(*Tx) error) {
			_ = w.All[3].change(context.Background(), func() error { return f(nil) })
		}, 1},
		"in a yield": {func(w *poisonWorld, f func(*Tx) error) {
			_, _ = w.All[3].Run(journal.Eager, func(tx *Tx) error { tx.Yield(func() { _, _ = w.All[3].Run(journal.Eager, f) }); return nil })
		}, 1},
		"when widened": {func(w *poisonWorld, f func(*Tx) error) {
			_, _ = w.All[3].Run(journal.Eager, func(tx *Tx) error { tx.Widen(w.All[3:7]); return f(tx) })
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPoisonWorld(t)
			command := func(*Tx) error { panic("a mistake") }
			if cause := recovered(func() { c.run(w, command) }); cause != "a mistake" {
				t.Errorf("the caller sees %v", cause)
			}
			if len(w.fatal) != 1 || !errors.Is(w.fatal[0], poison.ErrPoisoned) {
				t.Errorf("the process ends %d times: %v", len(w.fatal), w.fatal)
			}
			gone := 0
			for _, sh := range w.All {
				if err, ok := recovered(func() { sh.View(func() {}) }).(error); ok && errors.Is(err, poison.ErrPoisoned) {
					gone++
				}
			}
			if gone != c.gone {
				t.Errorf("%d shards take no command, want %d", gone, c.gone)
			}
		})
	}
}

// TestPanicBeside: a panic before or after a command is nothing to it.
func TestPanicBeside(t *testing.T) {
	w := newPoisonWorld(t)
	sh := w.All[3]
	if recovered(func() { sh.Run(journal.Eager, func(*Tx) error { sh.Emit(panicking{}); return nil }) }) == nil {
		t.Error("no panic")
	}
	sh.View(func() {})
	if len(w.fatal) > 0 {
		t.Errorf("the process ends: %v", w.fatal)
	}
}

type panicking struct{}

func (panicking) Emit() { panic("a mistake") }

type poisonWorld struct {
	*Kernel
	fatal []error
}

func newPoisonWorld(t *testing.T) *poisonWorld {
	w := &poisonWorld{}
	j := journal.Open(journal.Options{Store: memory.New()})
	t.Cleanup(j.Close)
	w.Kernel = New(Options{
		Journal: j, Clock: clock.System, Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { w.fatal = append(w.fatal, err) },
	})
	if err := w.Load(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil && !errors.Is(err, poison.ErrPoisoned) {
			t.Error(err)
		}
	})
	return w
}

func recovered(f func()) (cause any) {
	defer func() { cause = recover() }()
	f()
	return nil
}

// TestNarrow: what a command emits of a shard that it releases early is emitted once it has
// released all.
func TestNarrow(t *testing.T) {
	w := newPoisonWorld(t)
	var said []string
	_, err := RunAll(journal.Eager, func(tx *Tx) error {
		w.All[5].Emit(told{&said})
		tx.Narrow(w.All[3:4])
		w.All[5].View(func() {}) // others may have it
		if len(said) > 0 {
			t.Error("told while a lock is held")
		}
		return nil
	}, w.All[5], w.All[3])
	if err != nil || len(said) != 1 {
		t.Errorf("told %d times, %v", len(said), err)
	}
	w.All[3].View(func() {})
	w.All[5].View(func() {})
	if len(said) != 1 {
		t.Errorf("told %d times", len(said))
	}
}
