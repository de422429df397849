package shard

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/memory"
)

// TestPanicHalfway: a command that panics ends the process, and where that takes a
// moment nobody goes on with what it has left in memory.
func TestPanicHalfway(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(w *poisonWorld, command func(*Tx) error)
		gone int // shards that take no command any more
	}{
		"one shard": {func(w *poisonWorld, f func(*Tx) error) { _, _ = w.all[3].run(true, f) }, 1},
		"several":   {func(w *poisonWorld, f func(*Tx) error) { _, _ = runAll(true, f, w.all[5], w.all[3]) }, 2},
		"a look":    {func(w *poisonWorld, f func(*Tx) error) { w.all[3].view(func() { _ = f(nil) }) }, 1},
		"the catalog": {func(w *poisonWorld, f func(*Tx) error) {
			_ = w.queueEngine.withCatalog(context.Background(), queueARN("q"), func(*queueShard) error { return f(nil) })
		}, 1},
		"in a yield": {func(w *poisonWorld, f func(*Tx) error) {
			_, _ = w.all[3].run(true, func(tx *Tx) error { tx.yield(func() { _, _ = w.all[3].run(true, f) }); return nil })
		}, 1},
		"when widened": {func(w *poisonWorld, f func(*Tx) error) {
			_, _ = w.all[3].run(true, func(tx *Tx) error { tx.widen(w.all[3:7]); return f(tx) })
		}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newPoisonWorld(t)
			command := func(*Tx) error { panic("a mistake") }
			if cause := recovered(func() { c.run(w, command) }); cause != "a mistake" {
				t.Errorf("the caller sees %v", cause)
			}
			if len(w.fatal) != 1 || !errors.Is(w.fatal[0], errPoisoned) {
				t.Errorf("the process ends %d times: %v", len(w.fatal), w.fatal)
			}
			gone := 0
			for _, sh := range w.all {
				if err, ok := recovered(func() { sh.view(func() {}) }).(error); ok && errors.Is(err, errPoisoned) {
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
	sh := w.all[3]
	if recovered(func() { sh.run(true, func(*Tx) error { sh.emit(panicking{}); return nil }) }) == nil {
		t.Error("no panic")
	}
	sh.view(func() {})
	if len(w.fatal) > 0 {
		t.Errorf("the process ends: %v", w.fatal)
	}
}

type panicking struct{}

func (panicking) Emit() { panic("a mistake") }

type poisonWorld struct {
	*Engine
	fatal []error
}

func newPoisonWorld(t *testing.T) *poisonWorld {
	w := &poisonWorld{}
	w.Engine = openEngine(t, Options{
		Journal: journalOf(t, memory.New(), nil), Clock: clock.System, Logger: slog.New(slog.DiscardHandler),
		Fatal: func(err error) { w.fatal = append(w.fatal, err) },
	})
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
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
