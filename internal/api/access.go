package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/policy"
)

// Access returns the permissions that a request requires: actions on resources. If it fails,
// the request is refused with its error. Where ctx has ended, whose a resource is was not read:
// then it fails with ctx's error, so that the caller is not taken for somebody else.
type Access func(ctx context.Context, call *Call, in any) ([]authorize.Need, error)

// Needs makes an Access from a function of the operation's input, which waits for nothing.
func Needs[In any](f func(call *Call, in *In) ([]authorize.Need, error)) Access {
	return func(_ context.Context, call *Call, in any) ([]authorize.Need, error) { return f(call, in.(*In)) }
}

// Free requires no permission: every authenticated caller may use the operation.
func Free(context.Context, *Call, any) ([]authorize.Need, error) { return nil, nil }

// Anywhere requires an action on no particular resource.
func Anywhere(action string) Access {
	return func(context.Context, *Call, any) ([]authorize.Need, error) { return Any(action), nil }
}

// Inside is the Access of an operation that checks these actions itself, because only it can
// find the resource.
func Inside(actions ...string) Access {
	needs := make([]authorize.Need, 0, len(actions))
	for _, action := range actions {
		needs = append(needs, authorize.Need{Action: action, Inside: true})
	}
	return func(context.Context, *Call, any) ([]authorize.Need, error) { return needs, nil }
}

// Guarded adds to operations their Access, by name. It panics if one is missing, or if there
// is no such operation: both are bugs.
func Guarded(access map[string]Access, operations []Operation) []Operation {
	left := maps.Clone(access)
	for i := range operations {
		o := &operations[i]
		if o.Access = left[o.Name]; o.Access == nil {
			panic(fmt.Sprintf("api: nobody says what %s needs to be allowed", o.Name))
		}
		delete(left, o.Name)
	}
	if len(left) > 0 {
		panic(fmt.Sprintf("api: there are no operations %v", slices.Sorted(maps.Keys(left))))
	}
	return operations
}

// Transport is the transport of the request, for condition keys.
func (c *Call) Transport() authorize.Transport {
	if strings.HasPrefix(c.Host, "https:") {
		return authorize.TLS
	}
	return authorize.Plain
}

// Passing requires iam:PassRole for a role that a service, such as sns.amazonaws.com, is to take.
func Passing(role, service string) authorize.Need {
	a, _ := arn.Parse(role) // an invalid role: the account is the caller's, and nobody may pass it, or the operation refuses it
	return authorize.Need{
		Action: "iam:PassRole", Resource: role, Account: a.Account,
		Keys: []authorize.Key{{Name: "iam:passedtoservice", Values: []string{service}}},
	}
}

// One requires a single action on a resource of an account.
func One(action string, resource arn.ARN) []authorize.Need {
	return []authorize.Need{{Action: action, Resource: resource.String(), Account: resource.Account}}
}

// Any requires an action on no particular resource.
func Any(action string) []authorize.Need {
	return []authorize.Need{{Action: action, Resource: "*"}}
}

// Owned refuses a resource of another account, unless authorization has allowed the access.
// action is the denied action, as in policies.
func Owned(call *Call, a arn.ARN, action string) error {
	if call.Authorized || call.Unsigned() || a.Account == call.Account {
		return nil
	}
	return Denied(authorize.RootOf(call.Account), &authorize.Need{Action: action, Resource: a.String()}, &policy.Result{Kind: policy.Resource})
}

// Denied is the error for an access that policies do not allow.
func Denied(who *caller.Caller, need *authorize.Need, result *policy.Result) error {
	return fault.New(fault.AccessDenied, Denial(who, need, result))
}

// DenialAbroad is KMS's message for a key of another account, whether it exists or not.
func DenialAbroad(who *caller.Caller, action string) string {
	return "User: " + who.ARN + " is not authorized to perform: " + action + " on this resource because the resource does not exist in this Region, " +
		"no resource-based policies allow access, or a resource-based policy explicitly denies access"
}

// Denial is AWS's message for an access that policies do not allow.
func Denial(who *caller.Caller, need *authorize.Need, result *policy.Result) string {
	service, name, _ := strings.Cut(need.Action, ":")
	action := need.Action
	switch service {
	case "sqs":
		action = strings.ToLower(need.Action)
	case "sns":
		action = "SNS:" + name
	}
	user, resource := who.ARN, cmp.Or(need.Named, need.Resource)
	switch who.Kind {
	case caller.Anonymous:
		user = "anonymous"
	case caller.Service:
		user = strings.Join(who.Services, ", ")
	default:
	}
	switch need.Action {
	case "sts:AssumeRoleWithWebIdentity":
		return "Not authorized to perform sts:AssumeRoleWithWebIdentity"
	case "sts:AssumeRole":
		return fmt.Sprintf("User: %s is not authorized to perform: %s on resource: %s", user, action, resource)
	}
	return fmt.Sprintf("User: %s is not authorized to perform: %s on resource: %s %s", user, action, resource, result.Because(action))
}
