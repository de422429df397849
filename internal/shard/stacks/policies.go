package stacks

import (
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// policyType is the type of inline policies. In IAM a policy replaces another of the same name,
// so that two resources with the same name would overwrite each other.
const policyType = "AWS::IAM::Policy"

// Inline identifies an inline policy of a role, user or group by name.
type Inline struct{ Policy, Property, Holder string } // Property lists the holders of this kind

// in reports that properties contain the policy.
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

// of reports that a version contains the policy.
func (p Inline) of(v *stack.Version) bool { return v.Type == policyType && p.in(v.Properties) }

// owned reports that a resource certainly has the policy. An incomplete update may have made
// part of the new version; the resource still has, or returns to, the version before.
func (p Inline) owned(r *stack.Resource) bool {
	if r.Before != nil {
		return p.of(r.Before)
	}
	return r.Exists() && p.of(&r.Version)
}

// claimed reports that a resource has the policy, or may return to it.
func (p Inline) claimed(r *stack.Resource) bool {
	certain := r.Exists() && (r.Status != stack.UpdateFailed || r.Before == nil) // else the version may not have been applied
	return p.owned(r) || certain && p.of(&r.Version) || slices.ContainsFunc(r.Spares, func(v stack.Version) bool { return p.of(&v) })
}

// coming reports that a step adds the policy to a resource.
func (p Inline) coming(n *stack.Step) bool {
	return n != nil && n.Action != stack.Delete && p.of(&n.Target)
}

// kept reports that a resource has the policy and is not about to lose it.
func (p Inline) kept(r *stack.Resource) bool {
	switch {
	case r.Doomed, r.Next != nil && r.Next.Action == stack.Update && !p.of(&r.Next.Target):
		return false
	case r.Status == stack.UpdateComplete:
		return p.of(&r.Version)
	}
	return p.owned(r)
}

// Managers are the other resources, as STACK|RESOURCE, of any stack of the account, that have
// the inline policy which a step adds, or that are getting it by an earlier step. There are
// none if the step's own resource has the policy already: it may change it and change it back,
// regardless of the others.
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

// Kept reports that an inline policy which a step removes must stay, because another resource
// has it. If the step's own resource never certainly had the policy, it also stays when another
// resource is getting it.
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
