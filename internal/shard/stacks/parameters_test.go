package stacks_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/store/memory"
)

// writer makes parameters with their values.
type writer struct{}

func (writer) Do(_ context.Context, t *stacks.Task) (stack.Outcome, time.Duration) {
	return stack.Outcome{Physical: t.Target.Physical, Attributes: map[string]any{"Value": t.Target.Properties["Value"]}}, 0
}

// Parameters of the store are found by their names in their own account and region, after a
// restart too, until their stack is gone; nobody else can have their names.
func TestParameters(t *testing.T) {
	const template = "Resources: {P: {Type: AWS::SSM::Parameter, Properties: {Name: /shop/size, Type: String, Value: large}}}"
	st, s := memory.New(), sealer(t)
	has := func(m *stacks.Module, want string) {
		t.Helper()
		if got, ok := m.Parameters(account, region, nil)("/shop/size"); got != want || ok != (want != "") {
			t.Errorf("%q, %t; want %q", got, ok, want)
		}
		if _, ok := m.Parameters(account, "eu-west-1", nil)("/shop/size"); ok {
			t.Error("there is one in another region")
		}
		other := &stacks.Task{Account: account, Region: region, Stack: first + "6", Step: stack.Step{Logical: "P", Target: stack.Version{Physical: "/shop/size"}}}
		if held := m.Holds(other); held != (want != "") {
			t.Errorf("the name is held: %t", held)
		}
		other.Stack = first
		if m.Holds(other) {
			t.Error("it stands in its own way")
		}
	}
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		has(m, "")
		m.Start(writer{})
		c := &stacks.Creation{ID: first, Name: "shop", Account: account, Region: region, Body: []byte(template)}
		c.Request = stack.Request{Design: design(t, template), OnFailure: stack.OnFailureRollback}
		if _, err := m.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		has(m, "large")
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(writer{})
		has(m, "large")
		if err := m.Delete(t.Context(), account, region, "shop", &stack.Request{}); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		has(m, "")
	})
}

// Of two that are being made under one name, the one that was begun first has it.
func TestParametersSideBySide(t *testing.T) {
	const template = "Resources: {P: {Type: AWS::SSM::Parameter, Properties: {Name: n, Type: String, Value: v}}, Q: {Type: AWS::SSM::Parameter, Properties: {Name: n, Type: String, Value: v}}}"
	with(t, memory.New(), sealer(t), func(_ *kernel.Kernel, m *stacks.Module) {
		c := &stacks.Creation{ID: first, Name: "shop", Account: account, Region: region, Body: []byte(template)}
		c.Request = stack.Request{Design: design(t, template), OnFailure: stack.OnFailureRollback}
		if _, err := m.Create(t.Context(), c); err != nil { // whose steps nobody takes
			t.Fatal(err)
		}
		v, err := m.Get(account, region, first)
		if err != nil {
			t.Fatal(err)
		}
		held := map[string]bool{}
		for i := range v.Resources {
			r := &v.Resources[i]
			held[r.Logical] = m.Holds(&stacks.Task{Account: account, Region: region, Stack: first, Step: stack.Step{
				Logical: r.Logical, Began: r.Next.Began, Order: r.Next.Order, Target: stack.Version{Type: "AWS::SSM::Parameter", Physical: "n"},
			}})
		}
		if len(held) != 2 || held["P"] || !held["Q"] {
			t.Errorf("%v", held)
		}
	})
}

// A parameter that an update replaces is there until that is complete: it may be rolled back to it.
func TestParametersWhileReplaced(t *testing.T) {
	const template = "Resources: {P: {Type: AWS::SSM::Parameter, Properties: {Name: %s, Type: String, Value: v}}, Q: {Type: AWS::SQS::Queue, DependsOn: P, Properties: {DelaySeconds: %d}}}"
	st := memory.New()
	named := func(m *stacks.Module, want ...string) {
		t.Helper()
		for _, name := range []string{"before", "after"} {
			_, found := m.Parameters(account, region, nil)(name)
			other := &stacks.Task{Account: account, Region: region, Stack: first + "6", Step: stack.Step{Logical: "P", Target: stack.Version{Type: "AWS::SSM::Parameter", Physical: name}}}
			if is := slices.Contains(want, name); found != is || m.Holds(other) != is {
				t.Errorf("%s is there: %t, and held: %t; want %t", name, found, m.Holds(other), is)
			}
		}
	}
	with(t, st, nil, func(_ *kernel.Kernel, m *stacks.Module) {
		m.Start(fussy{})
		text := fmt.Sprintf(template, "before", 0)
		c := &stacks.Creation{ID: first, Name: "shop", Account: account, Region: region, Body: []byte(text)}
		c.Request = stack.Request{Design: design(t, text), OnFailure: stack.OnFailureRollback}
		if _, err := m.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		idle(t, m, first, stack.CreateComplete)
		named(m, "before")
		text = fmt.Sprintf(template, "after", 1)
		if _, err := m.Update(t.Context(), account, region, "shop", []byte(text), &stack.Request{Design: design(t, text), OnFailure: stack.OnFailureNothing}); err != nil {
			t.Fatal(err)
		}
		idle(t, m, first, stack.UpdateFailed)
		named(m, "before", "after")
	})
	with(t, st, nil, func(_ *kernel.Kernel, m *stacks.Module) {
		m.Start(writer{})
		named(m, "before", "after")
		if _, err := m.Rollback(t.Context(), account, region, "shop", &stack.Request{}); err != nil {
			t.Fatal(err)
		}
		idle(t, m, first, stack.UpdateRollbackDone)
		named(m, "before")
	})
}

// fussy is a writer that changes no queue.
type fussy struct{ writer }

func (f fussy) Do(ctx context.Context, t *stacks.Task) (stack.Outcome, time.Duration) {
	if t.Logical == "Q" && t.Action == stack.Update {
		return stack.Outcome{Physical: t.Target.Physical, Reason: "no"}, 0
	}
	return f.writer.Do(ctx, t)
}
