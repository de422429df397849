package pebble

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"godwit.dev/godwit/internal/store/pebble/pause"
)

// TestWritesWait: writes wait while too many tables of L0 are not merged, and the first one says
// so without the gate's lock, which Pebble may wait for under its own.
func TestWritesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, held := 0, false
		s := &Store{compactions: pause.New(func(error) bool { return false })}
		s.log = slog.New(logged(func(slog.Record) {
			told++
			if held = !s.gate.mu.TryLock(); !held {
				s.gate.mu.Unlock()
			}
		}))
		s.admit() // at once
		s.gate.change(func() { s.gate.sublevels = stopWrites })
		var admitted atomic.Int32
		for range 3 {
			go func() {
				s.admit()
				admitted.Add(1)
			}()
			synctest.Wait()
		}
		if n := admitted.Load(); n != 0 || told != 1 || held {
			t.Errorf("%d writes of 3 did not wait, and %d told of it, with the lock: %v", n, told, held)
		}
		s.gate.change(func() { s.gate.sublevels = stopWrites - 1 })
		synctest.Wait()
		if n := admitted.Load(); n != 3 {
			t.Errorf("%d of 3 writes went on", n)
		}
	})
}

// logged is called with each line of a log.
type logged func(slog.Record)

func (logged) Enabled(context.Context, slog.Level) bool { return true }

func (l logged) Handle(_ context.Context, r slog.Record) error {
	l(r)
	return nil
}

func (l logged) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l logged) WithGroup(string) slog.Handler      { return l }
