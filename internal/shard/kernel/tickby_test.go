package kernel

import (
	"context"
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/memory"
)

// TestCallBy: a part is called at the moment that it asks for, whichever locks are held
// when it asks.
func TestCallBy(t *testing.T) {
	now := clock.NewVirtual(time.Unix(0, 0))
	var m *ticking
	k := openKernel(t, memory.New(), now, func(k *Kernel) {
		m = &ticking{}
		k.All[0].Add(m)
	})
	sh := k.All[0]
	m.due = 5000
	sh.View(func() { sh.TickBy(5000) })
	sh.View(func() { // beside the lock of another
		m.due = 2000
		sh.TickBy(2000)
		sh.TickBy(3000)
	})
	if _, err := now.Advance(context.Background(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if len(m.called) != 1 || m.called[0] != 2000 {
		t.Errorf("called at %v", m.called)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	m.due = 20_000
	sh.TickBy(20_000)
	if r, err := now.Advance(context.Background(), time.Minute); err != nil || r.Ran != 0 {
		t.Errorf("%d timers of a closed shard ran, %v", r.Ran, err)
	}
}

type ticking struct {
	NopLifecycle
	due    int64
	called []int64
}

func (m *ticking) NextDue() int64 { return m.due }

func (m *ticking) Tick(now int64) {
	m.called = append(m.called, now)
	m.due = 0
}

// TestDueAtStart: what is due is called for in its turn, from the start on, until the shard is
// closed.
func TestDueAtStart(t *testing.T) {
	now := clock.NewVirtual(time.Unix(0, 0))
	parts := []*recurring{{ticking{due: 5000}, 10_000}, {ticking{due: 2000}, 3000}, {ticking{due: 7000}, 10_000}, {}}
	k := openKernel(t, memory.New(), now, func(k *Kernel) {
		for _, p := range parts {
			k.All[0].Add(p)
		}
	})
	if _, err := now.Advance(context.Background(), 10*time.Second); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"[5000]", "[2000 5000 8000]", "[7000]", "[]"} {
		if got := fmt.Sprint(parts[i].called); got != want {
			t.Errorf("part %d is called at %s, want %s", i, got, want)
		}
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	k.All[0].Tick() // of a timer that had fired before
	if r, err := now.Advance(context.Background(), time.Minute); err != nil || r.Ran != 0 || len(parts[1].called) != 3 {
		t.Errorf("%d timers of a closed shard ran, %v", r.Ran, err)
	}
}

// recurring is due again every so many milliseconds.
type recurring struct {
	ticking
	every int64
}

func (r *recurring) Tick(now int64) {
	if due := r.due; due != 0 && due <= now {
		r.ticking.Tick(now)
		r.due = due + r.every
	}
}
