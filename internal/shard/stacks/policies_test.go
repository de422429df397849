package stacks_test

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/store/memory"
)

// policyTask is a step of a resource of the stack, of one that has none under way the latest.
func policyTask(t *testing.T, m *stacks.Module, logical string) *stacks.Task {
	t.Helper()
	v, err := m.Get(account, region, first)
	if err != nil {
		t.Fatal(err)
	}
	step := stack.Step{Logical: logical, Order: math.MaxUint64}
	for i := range v.Resources {
		if r := v.Resources[i]; r.Logical == logical && r.Next != nil {
			step = *r.Next
			step.Logical = logical
		}
	}
	return &stacks.Task{Account: account, Region: "eu-west-1", Stack: first, Step: step}
}

// claimed holds the claims on an inline policy that a resource's step gives and takes away against what is
// wanted: names, SHARED, and WAIT.
func claimed(t *testing.T, m *stacks.Module, logical string, p stacks.Inline, giving, taking string) {
	t.Helper()
	task := policyTask(t, m, logical)
	shown := func(c stacks.Claims) string {
		words := c.By
		if len(c.Shared) > 0 {
			words = append(words, "SHARED")
		}
		if c.Wait {
			words = append(words, "WAIT")
		}
		return strings.Join(words, " ")
	}
	if got := shown(m.Giving(task, p)); got != giving {
		t.Errorf("%s is given %+v: %q, want %q", logical, p, got, giving)
	}
	if got := shown(m.Taking(task, p)); got != taking {
		t.Errorf("%s gives up %+v: %q, want %q", logical, p, got, taking)
	}
}

// Who has an inline policy is found by its name and holder, behind a restart too, and of those that
// are being made the one that was begun first.
func TestManagers(t *testing.T) {
	const template = `Resources:
  P: {Type: AWS::IAM::Policy, Properties: {PolicyName: rights, Roles: [clerk, smith], PolicyDocument: {}}}
  Q: {Type: AWS::IAM::Policy, Properties: {PolicyName: rights, Roles: [Clerk], Users: [smith], PolicyDocument: {}}}`
	st, s := memory.New(), sealer(t)
	asked := func(m *stacks.Module, logical, property, holder, giving, taking string) {
		t.Helper()
		claimed(t, m, logical, stacks.Inline{Policy: "rights", Property: property, Holder: holder}, giving, taking)
		claimed(t, m, logical, stacks.Inline{Policy: "others", Property: property, Holder: holder}, "", "")
	}
	with(t, st, s, func(_ *kernel.Kernel, m *stacks.Module) {
		create(t, m, "shop", first, template)
		asked(m, "P", "Roles", "clerk", "", "") // what Q begins later
		asked(m, "Q", "Roles", "clerk", "shop|P", "WAIT")
		asked(m, "Q", "Users", "smith", "", "")
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(writer{})
		awaitIdle(t, k, m)
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		asked(m, "P", "Roles", "clerk", "", "shop|Q") // what it has it can have in another form
		asked(m, "Q", "Roles", "clerk", "", "shop|P")
		asked(m, "Q", "Roles", "smith", "shop|P", "shop|P")
		asked(m, "R", "Roles", "CLERK", "shop|P shop|Q", "shop|P shop|Q")
		asked(m, "R", "Roles", "smith", "shop|P", "shop|P")
		asked(m, "R", "Users", "smith", "shop|Q", "shop|Q")
		if err := m.Delete(t.Context(), account, region, "shop", &stack.Request{}); err != nil {
			t.Fatal(err)
		}
		asked(m, "P", "Roles", "clerk", "", "") // else each would leave it to the other
		asked(m, "Q", "Roles", "clerk", "WAIT", "")
		asked(m, "R", "Roles", "clerk", "shop|P shop|Q", "")
		m.Start(writer{})
		awaitIdle(t, k, m)
		asked(m, "R", "Roles", "clerk", "", "")
	})
}

// Of steps that began in the same moment the one that was noted first has the policy, behind a restart
// too, whatever their stacks are called.
func TestManagersOfOneMoment(t *testing.T) {
	const template = "Resources: {P: {Type: AWS::IAM::Policy, Properties: {PolicyName: rights, Roles: [clerk], PolicyDocument: {}}}}"
	other := strings.Replace(first, "stack/shop/11111111", "stack/early/00000000", 1)
	st, s := memory.New(), sealer(t)
	check := func(m *stacks.Module) {
		t.Helper()
		for id, want := range map[string][]string{first: nil, other: {"shop|P"}} {
			v, err := m.Get(account, region, id)
			if err != nil {
				t.Fatal(err)
			}
			step := *v.Resources[0].Next
			step.Logical = "P"
			got := m.Giving(&stacks.Task{Account: account, Region: region, Stack: id, Step: step}, stacks.Inline{Policy: "rights", Property: "Roles", Holder: "clerk"})
			if !slices.Equal(got.By, want) || got.Wait {
				t.Errorf("%s: %+v", id, got)
			}
		}
	}
	with(t, st, s, func(_ *kernel.Kernel, m *stacks.Module) {
		create(t, m, "shop", first, template)
		create(t, m, "early", other, template)
		check(m)
	})
	with(t, st, s, func(_ *kernel.Kernel, m *stacks.Module) { check(m) })
}

func create(t *testing.T, m *stacks.Module, name, id, template string) {
	t.Helper()
	c := &stacks.Creation{ID: id, Name: name, Account: account, Region: region, Body: []byte(template)}
	c.Request = stack.Request{Design: design(t, template), OnFailure: stack.OnFailureRollback}
	if _, err := m.Create(t.Context(), c); err != nil {
		t.Fatal(err)
	}
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
	asked := func(m *stacks.Module, logical, policy, giving, taking string) {
		t.Helper()
		claimed(t, m, logical, stacks.Inline{Policy: policy, Property: "Roles", Holder: "clerk"}, giving, taking)
	}
	update := func(m *stacks.Module, p, q string) {
		t.Helper()
		o := &stack.Request{Design: design(t, template(p, q)), OnFailure: stack.OnFailureNothing}
		if _, err := m.Update(t.Context(), account, region, "shop", []byte(template(p, q)), o); err != nil {
			t.Fatal(err)
		}
	}
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(fastidious{})
		create(t, m, "shop", first, template("mine", "other"))
		awaitIdle(t, k, m)
		update(m, "forbidden", "other")
		awaitIdle(t, k, m)
		asked(m, "R", "mine", "shop|P", "shop|P")
		asked(m, "R", "forbidden", "", "")
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		update(m, "forbidden", "forbidden") // whose steps nobody takes yet
		asked(m, "P", "forbidden", "", "")
		asked(m, "Q", "forbidden", "shop|P", "WAIT")
		asked(m, "Q", "other", "", "")
		m.Start(fastidious{})
		awaitIdle(t, k, m)
	})
	with(t, st, s, func(_ *kernel.Kernel, m *stacks.Module) {
		update(m, "new", "mine")
		asked(m, "P", "mine", "", "") // it had that, and so the other one is refused it
		asked(m, "Q", "mine", "shop|P", "")
	})
}
