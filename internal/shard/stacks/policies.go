package stacks

import (
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack"
	"godwit.dev/godwit/internal/stack/resource"
)

// policyType is the type of inline policies. In IAM a policy replaces another of the same name,
// so that two resources with the same name would overwrite each other.
const policyType = "AWS::IAM::Policy"

// holderTypes are the types of what has inline policies, among them those of its own properties, and the
// properties by which policies list it.
var holderTypes = map[string]string{"AWS::IAM::Role": "Roles", "AWS::IAM::User": "Users", "AWS::IAM::Group": "Groups"}

// ownPolicies is the property of holders that has policies.
const ownPolicies = "Policies"

// hasPolicies reports that a version is, or has, inline policies.
func hasPolicies(v *stack.Version) bool {
	return v.Type == policyType || holderTypes[v.Type] != "" && v.Properties[ownPolicies] != nil
}

// Inline is the policy of a name that a role, user or group has of its own.
type Inline struct{ Policy, Property, Holder string } // Property is the one that lists such holders

// named reports that properties have its name.
func (p Inline) named(properties map[string]any) bool {
	name, _ := resource.Scalar(properties["PolicyName"])
	return name == p.Policy
}

// holds reports that its holder is meant, as IAM compares names.
func (p Inline) holds(name string) bool { return strings.EqualFold(name, p.Holder) }

// of reports that a version is of it.
func (p Inline) of(v *stack.Version) bool {
	if v.Type == policyType {
		holders, _ := v.Properties[p.Property].([]any)
		return p.named(v.Properties) && slices.ContainsFunc(holders, func(holder any) bool {
			name, _ := resource.Scalar(holder)
			return p.holds(name)
		})
	}
	if holderTypes[v.Type] != p.Property || !p.holds(v.Physical) {
		return false
	}
	own, _ := v.Properties[ownPolicies].([]any)
	return slices.ContainsFunc(own, func(policy any) bool {
		properties, _ := policy.(map[string]any)
		return p.named(properties)
	})
}

// owned reports that a resource certainly has the policy. An incomplete update may have made
// part of the new version; the resource still has, or returns to, the version before.
func (p Inline) owned(r *stack.Resource) bool {
	if r.Before != nil {
		return p.of(r.Before)
	}
	return r.Exists() && p.of(&r.Version)
}

// left reports that a holder has given it up in an update that only takes it back together with what
// its stack has made of it meanwhile.
func (p Inline) left(r *stack.Resource) bool {
	return r.Type != policyType && r.Before != nil && r.Next == nil && r.Status == stack.UpdateComplete && !p.of(&r.Version)
}

// claimed reports that a resource has it, or goes back to it.
func (p Inline) claimed(r *stack.Resource) bool {
	certain := r.Exists() && (r.Status != stack.UpdateFailed || r.Before == nil) // else the version may not have been applied
	return p.owned(r) || certain && p.of(&r.Version) || slices.ContainsFunc(r.Spares, func(v stack.Version) bool { return p.of(&v) })
}

// coming reports that a step adds the policy to a resource.
func (p Inline) coming(n *stack.Step) bool {
	return n != nil && n.Action != stack.Delete && p.of(&n.Target)
}

// going reports that a step takes it away from a resource, which may have it.
func (p Inline) going(r *stack.Resource) bool {
	return r.Next != nil && (p.owned(r) || p.of(&r.Version)) && (r.Next.Action == stack.Delete || r.Next.Action == stack.Update && !p.of(&r.Next.Target))
}

// kept reports that a resource has it and is not about to give it up.
func (p Inline) kept(e *entry, r *stack.Resource) bool {
	switch {
	case r.PendingDelete && !e.Leaves(r), r.Next != nil && r.Next.Action == stack.Update && !p.of(&r.Next.Target):
		return false
	case r.Status == stack.UpdateComplete:
		return p.of(&r.Version)
	}
	return p.owned(r)
}

// Claims say what other resources, of whichever stack of the account, have to do with an inline policy
// that a step gives or takes away.
type Claims struct {
	// By are those that have it, as STACK|RESOURCE in order: it is not given, and not taken away.
	By []string
	// Shared are those of By that are of another stack, where the step's own resource has it too.
	Shared []string
	// Wait says that a step which began earlier decides: this one is to be taken when that is over.
	Wait bool
}

// claims collects those of the resources that has is true of.
func (m *Module) claims(t *Task, p Inline, has func(e *entry, r, own *stack.Resource) (has, wait bool)) (c Claims) {
	id, _ := idOf(t.Stack)
	m.shard.View(func() {
		own := &stack.Resource{}
		if e := m.byID[id]; e != nil && e.Resources[t.Logical] != nil {
			own = e.Resources[t.Logical]
		}
		m.each(t.Account, func(e *entry, r *stack.Resource) {
			if e.id == id && r.Logical == t.Logical {
				return
			}
			has, wait := has(e, r, own)
			c.Wait = c.Wait || wait
			if !has {
				return
			}
			c.By = append(c.By, e.Name+"|"+r.Logical)
			if e.id != id && p.owned(own) {
				c.Shared = append(c.Shared, e.Name+"|"+r.Logical)
			}
		})
	})
	slices.Sort(c.By)
	slices.Sort(c.Shared)
	return c
}

// Giving are the claims on an inline policy that a step gives: of resources that have it, or whose step to
// have it began before this one. What the step's own resource has already it may have in another form
// unless another stack's has it too, and always back.
func (m *Module) Giving(t *Task, p Inline) Claims {
	mine, back := false, false
	c := m.claims(t, p, func(e *entry, r, own *stack.Resource) (has, wait bool) {
		mine = p.owned(own)
		back = own.Before != nil && maps.EqualFunc(own.Before.Properties, t.Target.Properties, resource.Same)
		first := r.Next != nil && before(r.Next, e.ID+r.Logical, t)
		switch {
		case p.going(r) && (mine || !p.owned(r)):
			return false, first
		case e.ID == t.Stack && p.left(r):
			return false, false
		}
		return p.claimed(r) || p.coming(r.Next) && first, false
	})
	switch {
	case mine && back:
		c.By = nil
	case mine:
		c.By = c.Shared
	}
	return c
}

// Taking are the claims on an inline policy that a step takes away: of resources that have it and keep it.
// Where another one is being given what the step's own resource was to have only, and may have been
// refused, the step that began first decides.
func (m *Module) Taking(t *Task, p Inline) Claims {
	return m.claims(t, p, func(e *entry, r, own *stack.Resource) (has, wait bool) {
		return p.kept(e, r), !p.owned(own) && p.coming(r.Next) && before(r.Next, e.ID+r.Logical, t)
	})
}
