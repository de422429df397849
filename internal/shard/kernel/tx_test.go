package kernel

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
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

// TestRunAll: a command locks each of its shards once, in the order of their ids; a refusal
// depends on the latest change of the catalog, unless the command says on what, and an answer
// that changes nothing and says nothing on nothing.
func TestRunAll(t *testing.T) {
	w := newPoisonWorld(t)
	a, b := w.All[3], w.All[5]
	err := b.change(context.Background(), func() error { b.Batch.Set(key(5, "q"), nil); return nil })
	if err != nil {
		t.Fatal(err)
	}
	other := a.Stream.Last()
	refusal := errors.New("no")
	for _, c := range []struct {
		err       error
		dependsOn *journal.Commit
		want      *journal.Commit
	}{{nil, nil, nil}, {nil, other, other}, {refusal, nil, b.LastCatalogCommit}, {refusal, other, other}} {
		got, err := RunAll(journal.Eager, func(tx *Tx) error {
			if !slices.Equal(tx.Shards, []*Shard{a, b}) {
				t.Errorf("it has locked %d shards", len(tx.Shards))
			}
			tx.DependOn(c.dependsOn)
			return c.err
		}, b, a, b)
		if got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%v: depends on the right commit: %v, %v", c, got == c.want, err)
		}
	}
}

// TestAppendedBeforeReleased: a command that releases its locks has appended what it changed
// before: another command, or a reader, would see it else before it is in the journal.
func TestAppendedBeforeReleased(t *testing.T) {
	for name, release := range map[string]func(w *poisonWorld, tx *Tx, look func()){
		"yield":       func(_ *poisonWorld, tx *Tx, look func()) { tx.Yield(look) },
		"widen":       func(w *poisonWorld, tx *Tx, look func()) { tx.Widen(w.All[3:5]); look() },
		"widen after": func(w *poisonWorld, tx *Tx, look func()) { tx.WidenAfter(w.All[3:5], look) },
		"narrow":      func(_ *poisonWorld, tx *Tx, look func()) { tx.Narrow(tx.Shards[1:]); look() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newPoisonWorld(t)
			_, err := RunAll(journal.Eager, func(tx *Tx) error {
				w.All[3].Batch.Set(key(3, "changed"), nil)
				looked := false
				release(w, tx, func() {
					looked = true
					if _, ok, err := w.All[3].Stream.Reader().Get(nil, key(3, "changed")); !ok || err != nil {
						t.Errorf("not appended, %v", err)
					}
				})
				for _, sh := range tx.Shards {
					if sh.mu.TryLock() {
						t.Errorf("shard %d is not locked again", sh.ID)
					}
				}
				if !looked || len(tx.Shards) == 0 {
					t.Errorf("looked %v, with %d shards then", looked, len(tx.Shards))
				}
				return nil
			}, w.All[2], w.All[3])
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestReadRecords: records that commands have changed are found before a commit is applied.
func TestReadRecords(t *testing.T) {
	w := newPoisonWorld(t)
	set := func(name string) []byte {
		w.All[3].RunLazy(func() { w.All[3].Batch.Set(key(3, name), []byte(name)) })
		return key(3, name)
	}
	if got, ok, err := w.ReadRecord(set("a")); string(got) != "a" || !ok || err != nil {
		t.Errorf("a is %q, %v, %v", got, ok, err)
	}
	got, err := w.ReadRecords([][]byte{key(3, "a"), set("b"), key(3, "none"), set("c")})
	if err != nil || len(got) != 4 || string(got[0]) != "a" || string(got[1]) != "b" || got[2] != nil || string(got[3]) != "c" {
		t.Errorf("read %q, %v", got, err)
	}
}

// TestAppendIfLarge: a command over many queues appends before its batch grows too large.
func TestAppendIfLarge(t *testing.T) {
	w := newPoisonWorld(t)
	sh := w.All[3]
	sh.View(func() {
		sh.Batch.Set(key(3, "a"), make([]byte, mutation.StepBytes/2))
		if sh.AppendIfLarge(); sh.Unchanged() {
			t.Error("appended half a step")
		}
		sh.Batch.Set(key(3, "b"), make([]byte, mutation.StepBytes/2))
		if sh.AppendIfLarge(); !sh.Unchanged() {
			t.Error("a step is not appended")
		}
	})
}
