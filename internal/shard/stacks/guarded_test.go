package stacks_test

import (
	"errors"
	"testing"

	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/stacks"
	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/store/memory"
)

// A change set is of the stack as it was: once that has changed, it is not what somebody has
// looked at, and would remove what was made since.
func TestObsoleteChangeSet(t *testing.T) {
	const one, two = "Resources: {Q0: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: 1}}}", "Resources: {Q0: {Type: AWS::SQS::Queue}, Precious: {Type: AWS::SQS::Queue}}"
	with(t, memory.New(), (*seal.Sealer)(nil), func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(&maker{there: map[string]bool{}})
		if _, err := m.Create(t.Context(), creation(t, 1)); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		set := &stacks.ChangeSet{ID: "arn:aws:cloudformation:us-east-1:000000000000:changeSet/old/21111111-2222-4333-8444-555555555555", Name: "old", Design: design(t, one)}
		if _, err := m.PutChangeSet(t.Context(), &stacks.Creation{Name: "shop", Account: account, Region: region, Body: []byte(one)}, set); err != nil {
			t.Fatal(err)
		}
		if found, err := m.ChangeSet(account, region, "shop", "old"); err != nil || found.Obsolete {
			t.Errorf("before: %t, %v", found.Obsolete, err)
		}
		if _, err := m.Update(t.Context(), account, region, "shop", []byte(two), &stack.Request{Design: design(t, two)}); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		if found, err := m.ChangeSet(account, region, "shop", "old"); err != nil || !found.Obsolete {
			t.Errorf("after: %t, %v", found.Obsolete, err)
		}
		if err := m.Execute(t.Context(), account, region, "shop", "old", &stack.Request{}); !errors.Is(err, stacks.ErrState) {
			t.Errorf("executed: %v", err)
		}
	})
}

// A stack that a change set has brought into being has no template before the change set is executed.
func TestNoTemplateYet(t *testing.T) {
	const one = "Resources: {Q0: {Type: AWS::SQS::Queue}}"
	with(t, memory.New(), (*seal.Sealer)(nil), func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(&maker{there: map[string]bool{}})
		set := &stacks.ChangeSet{ID: "arn:aws:cloudformation:us-east-1:000000000000:changeSet/new/21111111-2222-4333-8444-555555555555", Name: "new", Design: design(t, one), Make: true}
		if _, err := m.PutChangeSet(t.Context(), &stacks.Creation{ID: first, Name: "shop", Account: account, Region: region, Body: []byte(one)}, set); err != nil {
			t.Fatal(err)
		}
		if text, err := m.Template(account, region, "shop"); len(text) > 0 || err != nil {
			t.Errorf("before: %q, %v", text, err)
		}
		if err := m.Execute(t.Context(), account, region, "shop", "new", &stack.Request{}); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		if text, err := m.Template(account, region, "shop"); string(text) != one || err != nil {
			t.Errorf("after: %q, %v", text, err)
		}
	})
}

// An update, and a change set, made for a stack that has changed since would take back what it has
// become, and put a design beside a template that is another one.
func TestUpdateOfWhatWasSeen(t *testing.T) {
	const one, two = "Resources: {Q0: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: 1}}}", "Resources: {Q0: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: 2}}}"
	with(t, memory.New(), (*seal.Sealer)(nil), func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(&maker{there: map[string]bool{}})
		if _, err := m.Create(t.Context(), creation(t, 1)); err != nil {
			t.Fatal(err)
		}
		seen := awaitIdle(t, k, m).Phase
		if _, err := m.Update(t.Context(), account, region, "shop", []byte(one), &stack.Request{Design: design(t, one), Seen: seen}); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		if _, err := m.Update(t.Context(), account, region, "shop", []byte(two), &stack.Request{Design: design(t, two), Seen: seen}); !errors.Is(err, stacks.ErrChanged) {
			t.Errorf("updated: %v", err)
		}
		set := &stacks.ChangeSet{ID: "arn:aws:cloudformation:us-east-1:000000000000:changeSet/old/21111111-2222-4333-8444-555555555555", Name: "old", Design: design(t, two), Seen: seen}
		if _, err := m.PutChangeSet(t.Context(), &stacks.Creation{ID: first, Name: "shop", Account: account, Region: region, Body: []byte(two)}, set); !errors.Is(err, stacks.ErrChanged) {
			t.Errorf("planned: %v", err)
		}
	})
}

// A resource of another type under the same name would be replaced, with what is in it: no update does
// that, and a change set of it fails.
func TestTypeOfResourceStays(t *testing.T) {
	const other = "Resources: {Q0: {Type: AWS::SNS::Topic}, Q1: {Type: AWS::SNS::Topic}}"
	with(t, memory.New(), (*seal.Sealer)(nil), func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(&maker{there: map[string]bool{}})
		if _, err := m.Create(t.Context(), creation(t, 1)); err != nil {
			t.Fatal(err)
		}
		awaitIdle(t, k, m)
		if _, err := m.Update(t.Context(), account, region, "shop", []byte(other), &stack.Request{Design: design(t, other)}); !errors.Is(err, stacks.ErrRetyped) {
			t.Errorf("updated: %v", err)
		}
		set := &stacks.ChangeSet{ID: "arn:aws:cloudformation:us-east-1:000000000000:changeSet/other/21111111-2222-4333-8444-555555555555", Name: "other", Design: design(t, other)}
		if _, err := m.PutChangeSet(t.Context(), &stacks.Creation{ID: first, Name: "shop", Account: account, Region: region, Body: []byte(other)}, set); err != nil {
			t.Fatal(err)
		}
		const want = "Update of resource type is not permitted. The new template modifies resource type of the following resources: [Q0]"
		if found, err := m.ChangeSet(account, region, "shop", "other"); err != nil || found.Failure != want || len(found.Changes) > 0 {
			t.Errorf("%v, %+v", err, found)
		}
	})
}

// A name that is spelled wrongly among those that are to be retained, or skipped, is refused: what it
// was to name would be deleted, or rolled back.
func TestNamesOfResources(t *testing.T) {
	const changed = "Resources: {Q0: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: 1}}, Q1: {Type: AWS::SQS::Queue}}"
	with(t, memory.New(), (*seal.Sealer)(nil), func(_ *kernel.Kernel, m *stacks.Module) {
		g := &gate{fails: map[string]bool{"update Q0": true, "delete Q0": true}}
		m.Start(g)
		if _, err := m.Create(t.Context(), creation(t, 2)); err != nil {
			t.Fatal(err)
		}
		idle(t, m, first, stack.CreateComplete)
		if _, err := m.Update(t.Context(), account, region, "shop", []byte(changed), &stack.Request{Design: design(t, changed)}); err != nil {
			t.Fatal(err)
		}
		idle(t, m, first, stack.UpdateRollbackFailed)
		for name, want := range map[string]error{"q0": stacks.ErrNoResource, "Q1": stacks.ErrNotSkipped} {
			if err := m.ContinueRollback(t.Context(), account, region, "shop", &stack.Request{Keep: []string{"Q0", name}}); !errors.Is(err, want) {
				t.Errorf("%s is skipped: %v", name, err)
			}
		}
		if err := m.ContinueRollback(t.Context(), account, region, "shop", &stack.Request{Keep: []string{"Q0"}}); err != nil {
			t.Fatal(err)
		}
		idle(t, m, first, stack.UpdateRollbackDone)
		if err := m.Delete(t.Context(), account, region, "shop", &stack.Request{}); err != nil {
			t.Fatal(err)
		}
		idle(t, m, first, stack.DeleteFailed)
		if err := m.Delete(t.Context(), account, region, "shop", &stack.Request{Keep: []string{"q0"}}); !errors.Is(err, stacks.ErrNoResource) {
			t.Errorf("q0 is retained: %v", err)
		}
		if err := m.Delete(t.Context(), account, region, "shop", &stack.Request{Keep: []string{"Q0"}}); err != nil {
			t.Fatal(err)
		}
		idle(t, m, first, stack.DeleteComplete)
	})
}

// What is nested in a protected stack is deleted by a step of that alone.
func TestNestedProtection(t *testing.T) {
	with(t, memory.New(), (*seal.Sealer)(nil), func(k *kernel.Kernel, m *stacks.Module) {
		m.Start(&maker{there: map[string]bool{}})
		root := creation(t, 1)
		root.Protected = true
		below := creation(t, 1)
		below.Name, below.ID = "below", "arn:aws:cloudformation:us-east-1:000000000000:stack/below/31111111-2222-4333-8444-555555555555"
		below.Parent, below.Root, below.Depth = first, first, 1
		for _, c := range []*stacks.Creation{root, below} {
			if _, err := m.Create(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		awaitIdle(t, k, m)
		if err := m.Delete(t.Context(), account, region, "below", &stack.Request{}); !errors.Is(err, stacks.ErrRootProtected) {
			t.Errorf("deleted: %v", err)
		}
		if _, err := m.Protect(t.Context(), account, region, "below", true); !errors.Is(err, stacks.ErrNestedProtection) {
			t.Errorf("protected by itself: %v", err)
		}
		if err := m.Delete(t.Context(), account, region, "below", &stack.Request{Nested: true}); err != nil {
			t.Errorf("as a step: %v", err)
		}
		awaitIdle(t, k, m)
	})
}
