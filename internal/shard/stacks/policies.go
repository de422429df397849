package stacks

import (
	"slices"

	"godwit.dev/godwit/internal/shard/kernel"
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
		return name == p.Holder
	})
}

// Managers are the other resources that have an inline policy, of whichever stack of the account,
// as STACK|RESOURCE. With begun those count too whose step to have it began before this one.
func (m *Module) Managers(t *Task, p Inline, begun bool) (found []string) {
	_ = m.shard.RunDurable(func(*kernel.Tx) error {
		m.ofType(policyType, t.Account, func(e *entry, r *stack.Resource) {
			if e.ID == t.Stack && r.Logical == t.Logical {
				return
			}
			n := r.Next
			if has(r, p) || begun && n != nil && n.Action != stack.Delete && before(n, e.ID+r.Logical, t) && p.in(n.Target.Properties) {
				found = append(found, e.Name+"|"+r.Logical)
			}
		})
		return nil
	})
	slices.Sort(found)
	return found
}

// has reports that a resource has an inline policy, or goes back to it.
func has(r *stack.Resource, p Inline) bool {
	versions := slices.Clone(r.Spares)
	if r.Before != nil {
		versions = append(versions, *r.Before)
	}
	if r.Exists() && (r.Status != stack.UpdateFailed || r.Before == nil) { // else it was to be so
		versions = append(versions, r.Version)
	}
	return slices.ContainsFunc(versions, func(v stack.Version) bool { return v.Type == policyType && p.in(v.Properties) })
}
