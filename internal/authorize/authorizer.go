package authorize

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/policy"
)

// Identities has the policies of users and roles.
type Identities interface {
	// PoliciesOf are the caller's policies: the identity's, its boundary (nil: none) and its
	// session policies. After an error nothing is allowed.
	PoliciesOf(c *caller.Caller) (identity []*policy.Policy, boundary *policy.Policy, session []*policy.Policy, err error)
}

// Resources has the policies and tags of resources.
type Resources interface {
	// PolicyOf is a resource's policy; nil: there is none, or the resource does not exist.
	PolicyOf(ctx context.Context, resource arn.ARN) *policy.Policy
	// TagsOf are a resource's tags.
	TagsOf(ctx context.Context, resource arn.ARN) map[string]string
}

// Authorizer evaluates policies.
type Authorizer struct {
	Identities Identities
	Resources  Resources
	// Current is the caller of a record as it is now; nil: as it was recorded.
	Current func(*caller.Caller) *caller.Caller
}

// current is a caller by the name and tags that it has now.
func (a *Authorizer) current(c *caller.Caller) *caller.Caller {
	if a.Current == nil {
		return c
	}
	return a.Current(c)
}

// Decide decides a request by all policies that apply to it. known is the context of the
// request; Decide sets its Need, Account and tags. After an error nothing is allowed. It is ctx's
// where that had ended when the resource was asked: a policy that was not read is not none.
func (a *Authorizer) Decide(ctx context.Context, need *Need, known *Context) (policy.Result, error) {
	var own *policy.Policy
	asked := false
	if resource, err := arn.Parse(need.Resource); err == nil {
		// Operations ignore the partition. So with another one it is the same resource, and a
		// Deny on its name must apply.
		need.Resource = resource.String()
		if need.Shared {
			own, asked = a.Resources.PolicyOf(ctx, resource), true
		}
		known.TagsOf = func() map[string]string {
			asked = true
			return a.Resources.TagsOf(ctx, resource)
		}
	}
	result, err := a.DecideBy(own, false, need, known)
	if err == nil && asked {
		err = ctx.Err()
	}
	if err != nil {
		return policy.Result{}, err
	}
	return result, nil
}

// DecideBy is Decide with the resource's policy as an argument; nil: it has none. granted
// says that the resource allows the access by other means, such as a grant of a key.
func (a *Authorizer) DecideBy(own *policy.Policy, granted bool, need *Need, known *Context) (policy.Result, error) {
	known.Caller = a.current(known.Caller)
	who := known.Caller
	identity, boundary, session, err := a.Identities.PoliciesOf(who)
	if err != nil {
		return policy.Result{}, err
	}
	policies := policy.Policies{Identity: identity, Boundary: boundary, Session: session, Capped: who.Capped, Resource: own, Granted: granted}
	if need.Must {
		policies.Rule = policy.ResourceSide
	}
	known.Need, known.Account = need, need.Account
	if known.Account == "" {
		known.Account = who.Account
	}
	return policy.Decide(&policy.Request{
		Caller: who, Action: need.Action, Resource: need.Resource, Owner: known.Account, Context: known,
	}, &policies), nil
}
