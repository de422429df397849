package stacks_test

import (
	"context"
	"errors"
	"testing"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// reader finds that each resource but one has other tags.
type reader struct{ same string }

func (r reader) Compare(_ context.Context, at *stacks.Reading) stack.Drift {
	actual := map[string]any{"Tags": []any{map[string]any{"Key": "k", "Value": "other"}}}
	if at.Logical == r.same {
		actual = at.Properties
	}
	return at.Compared(actual)
}

// A comparison goes on after a restart; another one waits until it is over; a change of the
// stack meanwhile makes nothing of it.
func TestDetect(t *testing.T) {
	st, s := memory.New(), sealer(t)
	w := &maker{there: map[string]bool{}}
	detect := func(m *stacks.Module, id string) error {
		_, err := m.Detect(t.Context(), account, region, "shop", stack.Detection{ID: id})
		return err
	}
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(w)
		if _, err := m.Create(t.Context(), creation(t, 3)); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		if err := detect(m, "one"); err != nil {
			t.Fatal(err)
		}
		if err := detect(m, "two"); !errors.Is(err, stacks.ErrDetecting) {
			t.Errorf("a second one at once: %v", err)
		}
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.SetReader(reader{same: "Q1"})
		m.Start(w)
		k.AwaitIdle()
		d, of, err := m.Detection(account, region, "one")
		if err != nil || of != first || d.Ended == 0 || d.Status != stack.Drifted || d.Drifted != 2 || d.Failure != "" {
			t.Errorf("after a restart: %+v of %s, %v", d, of, err)
		}
		v, err := m.Get(account, region, "shop")
		if err != nil || v.Drift != stack.Drifted || v.Resources[1].Drift.Status != stack.InSync || v.Resources[0].Drift.Differences[0].Path != "/Tags/0/Value" {
			t.Errorf("%+v, %v", v, err)
		}
		m.SetReader(nil)
		if err := detect(m, "two"); err != nil {
			t.Fatal(err)
		}
		m.SetReader(reader{})
		if _, err := m.Update(t.Context(), account, region, "shop", []byte("Resources: {Q0: {Type: AWS::SQS::Queue}}"), &stack.Request{Design: design(t, "Resources: {Q0: {Type: AWS::SQS::Queue}}")}); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		m.Start(w) // which begins it again
		k.AwaitIdle()
		if d, _, err = m.Detection(account, region, "two"); err != nil || d.Status != stack.Unknown || d.Failure == "" {
			t.Errorf("of a stack that was changed meanwhile: %+v, %v", d, err)
		}
		if _, _, err := m.Detection(account, region, "none"); !errors.Is(err, stacks.ErrNoDetection) {
			t.Errorf("of none: %v", err)
		}
	})
}

// A reset forgets all that there is of an account's stacks in a region, and of no others.
func TestReset(t *testing.T) {
	st := memory.New()
	with(t, st, nil, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(&maker{there: map[string]bool{}})
		if _, err := m.Create(t.Context(), creation(t, 3)); err != nil {
			t.Fatal(err)
		}
		if n, err := m.Reset(t.Context(), account, "elsewhere"); n != 0 || err != nil {
			t.Errorf("elsewhere: %d, %v", n, err)
		}
		if n, err := m.Reset(t.Context(), account, region); n != 1 || err != nil { // with steps under way
			t.Errorf("%d, %v", n, err)
		}
		k.AwaitIdle()
		if left := m.List(account, region); len(left) != 0 {
			t.Errorf("left: %+v", left)
		}
		if _, err := m.Create(t.Context(), creation(t, 3)); err != nil {
			t.Errorf("another one of the name: %v", err)
		}
		awaitIdle(t, k, m)
		if _, err := m.Reset(t.Context(), account, region); err != nil {
			t.Error(err)
		}
	})
	for key := range storetest.Dump(t, st) {
		if key[0] == keyspace.StackSpace {
			t.Errorf("%q is left", key)
		}
	}
}
