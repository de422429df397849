package stacks

import (
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// policyType is the type of inline policies. IAM puts one of the same name in the place of
// another's, and so two resources that have the same one would undo each other's.
const policyType = "AWS::IAM::Policy"

// Inline is the policy of a name that a role, user or group has of its own.
type Inline struct{ Policy, Property, Holder string } // Property is the one that lists such holders

// in reports that properties have it.
func (p Inline) in(properties map[string]any) bool {
	if name, _ := resource.Scalar(properties["PolicyName"]); name != p.Policy {
		return false
	}
	holders, _ := properties[p.Property].([]any)
	return slices.ContainsFunc(holders, func(holder any) bool {
		name, _ := resource.Scalar(holder)
		return strings.EqualFold(name, p.Holder) // as IAM compares names
	})
}

// of reports that a version is of it.
func (p Inline) of(v *stack.Version) bool { return v.Type == policyType && p.in(v.Properties) }

// owned reports that a resource has it for certain. One whose update is not complete may have in part
// what it is to be, and has or goes back to what it was.
func (p Inline) owned(r *stack.Resource) bool {
	if r.Before != nil {
		return p.of(r.Before)
	}
	return r.Exists() && p.of(&r.Version)
}

// claimed reports that a resource has it, or goes back to it.
func (p Inline) claimed(r *stack.Resource) bool {
	certain := r.Exists() && (r.Status != stack.UpdateFailed || r.Before == nil) // else it was to be so
	return p.owned(r) || certain && p.of(&r.Version) || slices.ContainsFunc(r.Spares, func(v stack.Version) bool { return p.of(&v) })
}

// coming reports that a step gives it to a resource.
func (p Inline) coming(n *stack.Step) bool {
	return n != nil && n.Action != stack.Delete && p.of(&n.Target)
}

// kept reports that a resource has it and is not about to give it up.
func (p Inline) kept(r *stack.Resource) bool {
	switch {
	case r.Doomed, r.Next != nil && r.Next.Action == stack.Update && !p.of(&r.Next.Target):
		return false
	case r.Status == stack.UpdateComplete:
		return p.of(&r.Version)
	}
	return p.owned(r)
}

// Managers are the other resources that have an inline policy which a step gives, or whose step to
// have it began before this one, as STACK|RESOURCE, of whichever stack of the account. What the
// step's own resource has already it may have in another form, and back, whoever else has it.
func (m *Module) Managers(t *Task, p Inline) (found []string) {
	m.shard.View(func() {
		mine := false
		m.ofType(policyType, t.Account, func(e *entry, r *stack.Resource) {
			switch {
			case e.ID == t.Stack && r.Logical == t.Logical:
				mine = p.owned(r)
			case p.claimed(r) || p.coming(r.Next) && before(r.Next, e.ID+r.Logical, t):
				found = append(found, e.Name+"|"+r.Logical)
			}
		})
		if mine {
			found = nil
		}
	})
	slices.Sort(found)
	return found
}

// Kept reports that an inline policy which a step takes away stays, as another resource has it. What
// the step's own resource was to have only, and may have been refused, stays as well where another
// one is being given it.
func (m *Module) Kept(t *Task, p Inline) (kept bool) {
	m.shard.View(func() {
		mine, coming := false, false
		m.ofType(policyType, t.Account, func(e *entry, r *stack.Resource) {
			if e.ID == t.Stack && r.Logical == t.Logical {
				mine = p.owned(r)
				return
			}
			kept, coming = kept || p.kept(r), coming || p.coming(r.Next)
		})
		kept = kept || coming && !mine
	})
	return kept
}
