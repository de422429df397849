package stacks_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/template"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

const (
	account, region = "000000000000", "us-east-1"
	first           = "arn:aws:cloudformation:us-east-1:000000000000:stack/shop/11111111-2222-4333-8444-555555555555"
	secret          = "canary-secret"
)

// maker makes everything that it is asked for, once a first attempt was put off.
type maker struct {
	mu    sync.Mutex
	there map[string]bool
	steps int
}

func (w *maker) Do(_ context.Context, t *stacks.Task) (o stack.Outcome, later time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.steps++
	if t.Try == 0 && w.steps%7 == 0 {
		return o, time.Nanosecond
	}
	name := t.Target.Physical
	w.there[name] = t.Action != stack.Delete
	return stack.Outcome{Physical: name, Attributes: map[string]any{"Arn": "arn:" + name}}, 0
}

func sealer(t *testing.T) *seal.Sealer {
	t.Helper()
	keys, _, err := seal.NewKeys(seal.NewRoot())
	if err != nil {
		t.Fatal(err)
	}
	return keys.Sealer(stacks.Purpose)
}

// with runs f with a module over a store, until nothing is under way any more.
func with(t *testing.T, st store.Store, s *seal.Sealer, f func(k *kernel.Kernel, m *stacks.Module)) {
	t.Helper()
	log := journal.Open(journal.Options{Store: st})
	k := kernel.New(kernel.Options{Journal: log, Clock: clock.NewVirtual(shardtest.Start), Logger: slog.New(slog.DiscardHandler)})
	m := stacks.New(k, s, refusal.Text)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	f(k, m)
	err := k.Close()
	log.Close()
	if err != nil {
		t.Error(err)
	}
}

func creation(t *testing.T, queues int) *stacks.Creation {
	t.Helper()
	var b strings.Builder
	b.WriteString("Resources:\n")
	for i := range queues {
		fmt.Fprintf(&b, "  Q%d: {Type: AWS::SQS::Queue, Properties: {Tags: [{Key: k, Value: %s}]}}\n", i, secret)
	}
	c := &stacks.Creation{ID: first, Name: "shop", Account: account, Region: region, Body: []byte(b.String())}
	c.Request = stack.Request{Design: design(t, b.String()), OnFailure: stack.OnFailureRollback}
	return c
}

func design(t *testing.T, text string) *stack.Design {
	t.Helper()
	read, err := template.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	bound, err := stack.Bind(read, &stack.Stack{ID: first, Name: "shop", Account: account, Region: region}, &stack.Input{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return stack.Designed(bound)
}

// awaitIdle waits until nothing of the stack is under way.
func awaitIdle(t *testing.T, k *kernel.Kernel, m *stacks.Module) stacks.View {
	t.Helper()
	for {
		k.AwaitIdle() // what was put off comes again
		v, err := m.Get(account, region, first)
		if err != nil {
			t.Fatal(err)
		}
		if !v.Status.Busy() {
			return v
		}
		runtime.Gosched()
	}
}

// A stack continues with the first worker that there is, after a restart too; what is on disk
// is what was reported, and shows no property.
func TestStack(t *testing.T) {
	const queues = 100 // more than begin at once
	st, s := memory.New(), sealer(t)
	w := &maker{there: map[string]bool{}}
	with(t, st, s, func(_ *kernel.Kernel, m *stacks.Module) {
		c := creation(t, queues)
		c.Request.Token = "once"
		for range 2 {
			if id, err := m.Create(t.Context(), c); id != first || err != nil {
				t.Fatalf("%s, %v", id, err)
			}
		}
		c.Request.Token = "twice"
		if _, err := m.Create(t.Context(), c); !errors.Is(err, stacks.ErrExists) {
			t.Errorf("another one of its name: %v", err)
		}
	})
	var made stacks.View
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(w)
		if made = awaitIdle(t, k, m); made.Status != stack.CreateComplete || len(made.Resources) != queues || len(w.there) != queues {
			t.Errorf("%s with %d resources, of which %d are there", made.Status, len(made.Resources), len(w.there))
		}
		events, _, err := m.Events(account, region, "shop", 0, 1000)
		if want := 2 + 2*queues; len(events) != want || err != nil {
			t.Errorf("%d events, want %d: %v", len(events), want, err)
		}
		page, _, err := m.Events(account, region, "shop", 3, 1000)
		if len(page) != 2 || page[1].Number != 1 || err != nil {
			t.Errorf("the first page: %+v, %v", page, err)
		}
	})
	for k, value := range storetest.Dump(t, st) {
		if k[0] == keyspace.StackSpace && bytes.Contains(value, []byte(secret)) {
			t.Errorf("%q is in clear", k)
		}
	}
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(w)
		got := awaitIdle(t, k, m)
		if d := cmp.Diff(made.Stack, got.Stack); d != "" {
			t.Errorf("after a restart (-was +is):\n%s", d)
		}
		if err := m.Delete(t.Context(), account, region, "shop", &stack.Request{}); err != nil {
			t.Fatal(err)
		}
		if got = awaitIdle(t, k, m); got.Status != stack.DeleteComplete {
			t.Errorf("%s", got.Status)
		}
		for name, there := range w.there {
			if there {
				t.Errorf("%s is left", name)
			}
		}
		if _, err := m.Get(account, region, "shop"); !errors.Is(err, stacks.ErrNone) {
			t.Errorf("by its name: %v", err)
		}
	})
}

// What was deleted is forgotten after 90 days, and leaves nothing.
func TestForgotten(t *testing.T) {
	st := memory.New()
	log := journal.Open(journal.Options{Store: st})
	c := clock.NewVirtual(shardtest.Start)
	k := kernel.New(kernel.Options{Journal: log, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	m := stacks.New(k, nil, refusal.Text)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	m.Start(&maker{there: map[string]bool{}})
	if _, err := m.Create(t.Context(), creation(t, 3)); err != nil {
		t.Fatal(err)
	}
	awaitIdle(t, k, m)
	if err := m.Delete(t.Context(), account, region, "shop", &stack.Request{}); err != nil {
		t.Fatal(err)
	}
	awaitIdle(t, k, m)
	if _, err := c.Advance(t.Context(), 91*24*time.Hour); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Get(account, region, first); !errors.Is(err, stacks.ErrNone) {
		t.Errorf("after 91 days: %v", err)
	}
	if err := k.Close(); err != nil {
		t.Error(err)
	}
	log.Close()
	for key := range storetest.Dump(t, st) {
		if key[0] == keyspace.StackSpace {
			t.Errorf("%q is left", key)
		}
	}
}

// stuck is a worker whose steps fail by the end of their context only.
type stuck struct{ begun chan *stacks.Task }

func (w stuck) Do(ctx context.Context, t *stacks.Task) (o stack.Outcome, later time.Duration) {
	w.begun <- t
	<-ctx.Done()
	return stack.Outcome{Reason: ctx.Err().Error()}, 0
}

func (w stuck) Compare(ctx context.Context, _ *stacks.Reading) stack.Drift {
	w.begun <- nil
	<-ctx.Done()
	return stack.Drift{Status: stack.NotChecked}
}

// A step, or a comparison, that does not end is cut off by the end of the kernel, and begins again
// with the next start: it has not failed.
func TestCutOff(t *testing.T) {
	st, s := memory.New(), sealer(t)
	with(t, st, s, func(_ *kernel.Kernel, m *stacks.Module) {
		w := stuck{make(chan *stacks.Task, 1)}
		m.Start(w)
		if _, err := m.Create(t.Context(), creation(t, 1)); err != nil {
			t.Fatal(err)
		}
		if step := <-w.begun; step.Again {
			t.Error("it was taken before")
		}
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		w := &maker{there: map[string]bool{}}
		m.Start(w)
		if v := awaitIdle(t, k, m); v.Status != stack.CreateComplete {
			t.Errorf("%s: %s", v.Status, v.Reason)
		}
	})
	with(t, st, s, func(_ *kernel.Kernel, m *stacks.Module) {
		w := stuck{make(chan *stacks.Task, 1)}
		m.SetReader(w)
		m.Start(w)
		if _, err := m.Detect(t.Context(), account, region, "shop", stack.Detection{ID: "one"}); err != nil {
			t.Fatal(err)
		}
		<-w.begun
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.SetReader(reader{})
		m.Start(&maker{there: map[string]bool{}})
		k.AwaitIdle()
		if d, _, err := m.Detection(account, region, "one"); err != nil || d.Status != stack.Drifted {
			t.Errorf("%+v, %v", d, err)
		}
	})
}
