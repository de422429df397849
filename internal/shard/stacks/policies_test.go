package stacks_test

import (
	"slices"
	"testing"

	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/store/memory"
)

// Who has an inline policy is found by its name and holder, behind a restart too, and of those that
// are being made the one that was begun first.
func TestManagers(t *testing.T) {
	const template = `Resources:
  P: {Type: AWS::IAM::Policy, Properties: {PolicyName: rights, Roles: [clerk, smith], PolicyDocument: {}}}
  Q: {Type: AWS::IAM::Policy, Properties: {PolicyName: rights, Roles: [clerk], Users: [smith], PolicyDocument: {}}}`
	st, s := memory.New(), sealer(t)
	asked := func(m *stacks.Module, logical, property, holder string, begun bool, want ...string) {
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
		task := &stacks.Task{Account: account, Region: "eu-west-1", Stack: first, Step: step}
		if got := m.Managers(task, stacks.Inline{Policy: "rights", Property: property, Holder: holder}, begun); !slices.Equal(got, want) {
			t.Errorf("%s of %s, begun: %t: %q, want %q", property, holder, begun, got, want)
		}
		if got := m.Managers(task, stacks.Inline{Policy: "others", Property: property, Holder: holder}, begun); len(got) > 0 {
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
		asked(m, "Q", "Roles", "clerk", false)
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(writer{})
		settled(t, k, m)
	})
	with(t, st, s, func(k *kernel.Kernel, m *stacks.Module) {
		asked(m, "P", "Roles", "clerk", false, "shop|Q")
		asked(m, "Q", "Roles", "clerk", false, "shop|P")
		asked(m, "R", "Roles", "clerk", true, "shop|P", "shop|Q")
		asked(m, "R", "Roles", "smith", true, "shop|P")
		asked(m, "R", "Users", "smith", true, "shop|Q")
		m.Start(writer{})
		if err := m.Delete(t.Context(), account, region, "shop", &stack.Order{}); err != nil {
			t.Fatal(err)
		}
		settled(t, k, m)
		asked(m, "R", "Roles", "clerk", true)
	})
}
