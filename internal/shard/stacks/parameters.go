package stacks

import (
	"maps"
	"slices"

	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/stack"
)

// parameterType is the type of the parameters that templates reference by name. They exist only
// in stacks.
const parameterType = "AWS::SSM::Parameter"

// Parameters returns a lookup of existing parameters by name. may says which may be read; nil:
// all.
func (m *Module) Parameters(account, region string, may func(name string) bool) (lookup func(name string) (value string, ok bool)) {
	var values map[string]string
	_ = m.shard.RunDurableReads(func(*kernel.Tx) error {
		values = m.parameters(account, region)
		return nil
	})
	if may != nil { // called without the lock, as templates are bound under it
		maps.DeleteFunc(values, func(name, _ string) bool { return !may(name) })
	}
	return in(values)
}

func in(values map[string]string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := values[name]
		return value, ok
	}
}

// storing notes that a stack has, or had, a resource of the types that are searched for in all
// stacks.
func (m *Module) storing(e *entry, r *stack.Resource) {
	if slices.ContainsFunc(versions(r), func(v *stack.Version) bool { return v.Type == parameterType }) || hasPolicies(&r.Version) || r.Before != nil && hasPolicies(r.Before) || r.Next != nil && hasPolicies(&r.Next.Target) {
		m.stores[e.id] = e
	}
}

// each calls f with each resource of an account's stacks that have or had parameters or inline policies.
func (m *Module) each(account string, f func(e *entry, r *stack.Resource)) {
	for _, e := range m.stores {
		if e.Account != account || e.Status == stack.DeleteComplete {
			continue
		}
		for _, r := range e.Resources {
			f(e, r)
		}
	}
}

// versions are a resource, and what an update has put it in the place of and not deleted yet.
func versions(r *stack.Resource) []*stack.Version {
	all := []*stack.Version{&r.Version}
	if r.Before != nil && r.Before.Physical != r.Physical {
		all = append(all, r.Before)
	}
	for i := range r.Spares {
		all = append(all, &r.Spares[i])
	}
	return all
}

// inStore calls f with each resource that is a parameter, was one, or is to be one.
func (m *Module) inStore(account, region string, f func(e *entry, r *stack.Resource)) {
	m.each(account, func(e *entry, r *stack.Resource) {
		if e.Region == region {
			f(e, r)
		}
	})
}

// there are the parameters that a resource is, and those that it was and that are there still.
func there(r *stack.Resource) []*stack.Version {
	return slices.DeleteFunc(versions(r), func(v *stack.Version) bool {
		return v.Type != parameterType || v.Physical == "" || v == &r.Version && !r.Exists()
	})
}

func (m *Module) parameters(account, region string) map[string]string {
	values := map[string]string{}
	m.inStore(account, region, func(_ *entry, r *stack.Resource) {
		for _, v := range slices.Backward(there(r)) {
			if value, ok := v.Attributes["Value"].(string); ok {
				values[v.Physical] = value
			}
		}
	})
	return values
}

// Holds reports that another resource has the parameter name of a step, or is getting it by an
// earlier step.
func (m *Module) Holds(t *Task) (held bool) {
	_ = m.shard.RunDurable(func(*kernel.Tx) error {
		m.inStore(t.Account, t.Region, func(e *entry, r *stack.Resource) {
			if e.ID != t.Stack || r.Logical != t.Logical {
				held = held || named(r, t, e.ID)
			}
		})
		return nil
	})
	return held
}

// named reports that a resource has the name of a step's resource, or is being created with it
// by an earlier step.
func named(r *stack.Resource, t *Task, id string) bool {
	if slices.ContainsFunc(there(r), func(v *stack.Version) bool { return v.Physical == t.Target.Physical }) {
		return true
	}
	n := r.Next
	return n != nil && n.Action == stack.Create && n.Target.Type == parameterType && n.Target.Physical == t.Target.Physical && before(n, id+r.Logical, t)
}

// before reports that a step of the resource of an id began before another step.
func before(n *stack.Step, id string, t *Task) bool {
	if n.Order != t.Order { // 0: a version that did not count the steps began it
		return n.Order < t.Order
	}
	if n.Began != t.Began {
		return n.Began < t.Began
	}
	return id < t.Stack+t.Logical
}
