package server

import (
	"context"
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store/memory"
)

// deep panics with so many calls under way.
func deep(calls int) bool {
	if calls == 0 {
		panic("a mistake")
	}
	return !deep(calls - 1)
}

// TestHalfway: a panic in the middle of a command is told from one beside it.
func TestHalfway(t *testing.T) {
	recovered := func(f func()) (half bool) {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
			half = halfway()
		}()
		f()
		return false
	}
	q := arn.Queue("us-east-1", "000000000000", "q")
	engine, err := shard.Open(shard.Options{
		Store: memory.New(), Clock: clock.System, Full: func() bool { return deep(2000) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !recovered(func() { _, _ = engine.Send(context.Background(), q, nil) }) {
		t.Error("a panic in a command is not seen as one")
	}
	if !recovered(func() { _, _ = (&invoke.Pool{}).Invoke(context.Background(), invoke.Invocation{}) }) { // it has no clock
		t.Error("a panic in the pool of functions is not seen as one")
	}
	if recovered(func() { panic("a mistake") }) {
		t.Error("any panic is seen as one in a command")
	}
	if err := engine.Close(); err != nil {
		t.Error(err)
	}
}
