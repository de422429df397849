package stacks_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/store/memory"
)

// policyTask is a step of a resource of the stack, which began when those under way did.
func policyTask(t *testing.T, m *stacks.Module, logical string) *stacks.Task {
	t.Helper()
	v, err := m.Get(account, region, first)
	if err != nil {
		t.Fatal(err)
	}
	step := stack.Step{Logical: logical}
	for i := range v.Resources {
		if next := v.Resources[i].Next; next != nil {
			step.Began = next.Began
		}
	}
	return &stacks.Task{Account: account, Region: "eu-west-1", Stack: first, Step: step}
}

// Who has an inline policy is found by its name and holder, behind a restart too, and of those that
// are being made the one that was begun first.
func TestManagers(t *testing.T) {
	const template = `Resources:
  P: {Type: AWS::IAM::Policy, Properties: {PolicyName: rights, Roles: [clerk, smith], PolicyDocument: {}}}
  Q: {Type: AWS::IAM::Policy, Properties: {PolicyName: rights, Roles: [Clerk], Users: [smith], PolicyDocument: {}}}`
	st, s := memory.New(), sealer(t)
	asked := func(m *stacks.Module, logical, property, holder string, kept bool, want ...string) {
		t.Helper()
		task := policyTask(t, m, logical)
		p := stacks.Inline{Policy: "rights", Property: property, Holder: holder}
		if got := m.Managers(task, p); !slices.Equal(got, want) {
			t.Errorf("%s, %s of %s: managed by %q, want %q", logical, property, holder, got, want)
		}
		if got := m.Kept(task, p); got != kept {
			t.Errorf("%s, %s of %s: kept: %t", logical, property, holder, got)
		}
		p.Policy = "others"
		if got := m.Managers(task, p); len(got) > 0 || m.Kept(task, p) {
			t.Errorf("another policy is managed by %q", got)
		}
	}
	with(t, st, s, func(_ *kernel.Kernel, m *stacks.Module) {
		c := &stacks.Creation{ID: first, Name: "shop", Account: account, Region: region, Body: []byte(template)}
		c.Order = stack.Order{Design: design(t, template), OnFailure: stack.OnFailureRollback}
		if _, err := m.Create(t.Context(), c); err != nil { // whose steps nobody takes yet
			t.Fatal(err)
		}
		asked(m, "P", "Roles", "clerk", true)
		asked(m, "Q", "Roles", "clerk", true, "shop|P")
		asked(m, "Q", "Users", "smith", false)
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(writer{})
		awaitIdle(t, k, m)
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		asked(m, "P", "Roles", "clerk", true) // what it has it can have in another form
		asked(m, "Q", "Roles", "clerk", true)
		asked(m, "Q", "Roles", "smith", true, "shop|P")
		asked(m, "R", "Roles", "CLERK", true, "shop|P", "shop|Q")
		asked(m, "R", "Roles", "smith", true, "shop|P")
		asked(m, "R", "Users", "smith", true, "shop|Q")
		if err := m.Delete(t.Context(), account, region, "shop", &stack.Order{}); err != nil {
			t.Fatal(err)
		}
		for _, logical := range []string{"P", "Q"} { // else each would leave it to the other
			asked(m, logical, "Roles", "clerk", false)
		}
		asked(m, "R", "Roles", "clerk", false, "shop|P", "shop|Q")
		m.Start(writer{})
		awaitIdle(t, k, m)
		asked(m, "R", "Roles", "clerk", false)
	})
}

// fastidious makes everything, but changes nothing into what is called forbidden.
type fastidious struct{}

func (fastidious) Do(_ context.Context, t *stacks.Task) (stack.Outcome, time.Duration) {
	o := stack.Outcome{Physical: t.Target.Physical}
	if t.Target.Properties["PolicyName"] == "forbidden" {
		o.Reason = "no"
	}
	return o, 0
}

// An update that has failed has not what it was to have, and what it was stays: another one may have
// the first, and while it is being given that nobody takes it away.
func TestManagersAfterFailedUpdate(t *testing.T) {
	template := func(p, q string) string {
		return "Resources:\n  P: {Type: AWS::IAM::Policy, Properties: {PolicyName: " + p + ", Roles: [clerk], PolicyDocument: {}}}\n" +
			"  Q: {Type: AWS::IAM::Policy, Properties: {PolicyName: " + q + ", Roles: [clerk], PolicyDocument: {}}}\n"
	}
	st, s := memory.New(), sealer(t)
	asked := func(m *stacks.Module, logical, policy string, kept bool, want ...string) {
		t.Helper()
		task, p := policyTask(t, m, logical), stacks.Inline{Policy: policy, Property: "Roles", Holder: "clerk"}
		if got, stays := m.Managers(task, p), m.Kept(task, p); !slices.Equal(got, want) || stays != kept {
			t.Errorf("%s, %s: managed by %q, want %q; kept: %t", logical, policy, got, want, stays)
		}
	}
	update := func(m *stacks.Module, p, q string) {
		t.Helper()
		o := &stack.Order{Design: design(t, template(p, q)), OnFailure: stack.OnFailureNothing}
		if _, err := m.Update(t.Context(), account, region, "shop", []byte(template(p, q)), o); err != nil {
			t.Fatal(err)
		}
	}
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(fastidious{})
		c := &stacks.Creation{ID: first, Name: "shop", Account: account, Region: region, Body: []byte(template("mine", "other"))}
		c.Order = stack.Order{Design: design(t, template("mine", "other")), OnFailure: stack.OnFailureRollback}
		if _, err := m.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		update(m, "forbidden", "other")
		awaitIdle(t, k, m)
		asked(m, "R", "mine", true, "shop|P")
		asked(m, "R", "forbidden", false)
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		update(m, "forbidden", "forbidden") // whose steps nobody takes yet
		asked(m, "P", "forbidden", true)
		asked(m, "Q", "other", false)
		m.Start(fastidious{})
		awaitIdle(t, k, m)
	})
	with(t, st, s, func(_ *kernel.Kernel, m *stacks.Module) {
		update(m, "new", "mine")
		asked(m, "P", "mine", false) // it had that, and so the other one is refused it
		asked(m, "Q", "mine", false, "shop|P")
	})
}
