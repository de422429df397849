package authorize

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/policy"
)

// Identities knows the policies of users and roles.
type Identities interface {
	// PoliciesOf are the policies of whoever calls: the identity's, its boundary (nil: none)
	// and those that cap its session. An error means that they are not known, and so
	// nothing is allowed.
	PoliciesOf(c *caller.Caller) (identity []*policy.Policy, boundary *policy.Policy, session []*policy.Policy, err error)
}

// Resources knows what hangs on resources.
type Resources interface {
	// PolicyOf is a resource's policy; nil for none, and for a resource that is not
	// there.
	PolicyOf(ctx context.Context, resource arn.ARN) *policy.Policy
	// TagsOf are a resource's tags.
	TagsOf(ctx context.Context, resource arn.ARN) map[string]string
}

// Nobody is the Identities of a server that has none: only the roots of accounts have
// permissions of their own.
type Nobody struct{}

// PoliciesOf implements Identities.
func (Nobody) PoliciesOf(*caller.Caller) ([]*policy.Policy, *policy.Policy, []*policy.Policy, error) {
	return nil, nil, nil, nil
}

// Authorizer decides who may do what.
type Authorizer struct {
	Identities Identities
	Resources  Resources
}

// Decide decides a request by all policies that apply to it. known is what is known of
// the request; its Need, Account and tags are set here. An error means that nothing is
// decided, and so nothing allowed.
func (a *Authorizer) Decide(ctx context.Context, need *Need, known *Context) (policy.Result, error) {
	var own *policy.Policy
	if resource, err := arn.Parse(need.Resource); err == nil {
		// Operations do not look at the partition: under another one it is the same
		// resource, and what denies it by its name has to hold.
		need.Resource = resource.String()
		if need.Shared {
			own = a.Resources.PolicyOf(ctx, resource)
		}
		known.TagsOf = func() map[string]string { return a.Resources.TagsOf(ctx, resource) }
	}
	return a.DecideBy(own, false, need, known)
}

// DecideBy is Decide for a resource whose policy the caller of this has; nil: it has
// none. granted says that the resource allows it by other means, as by a grant of a key.
func (a *Authorizer) DecideBy(own *policy.Policy, granted bool, need *Need, known *Context) (policy.Result, error) {
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
