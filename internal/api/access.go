package api

import (
	"cmp"
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

// Access reports what a request needs to be allowed: actions, each on a resource. A request
// of which it cannot tell is refused with its error.
type Access func(call *Call, in any) ([]authorize.Need, error)

// Needs makes an Access of a function of the operation's input.
func Needs[In any](f func(call *Call, in *In) ([]authorize.Need, error)) Access {
	return func(call *Call, in any) ([]authorize.Need, error) { return f(call, in.(*In)) }
}

// Free needs nothing: whoever is who they say may do it.
func Free(*Call, any) ([]authorize.Need, error) { return nil, nil }

// Inside is the Access of an operation that asks for actions itself: only it can find what
// the request is about.
func Inside(actions ...string) Access {
	needs := make([]authorize.Need, 0, len(actions))
	for _, action := range actions {
		needs = append(needs, authorize.Need{Action: action, Inside: true})
	}
	return func(*Call, any) ([]authorize.Need, error) { return needs, nil }
}

// Guarded gives operations their Access, by their names. It panics where one is
// missing, or there is no such operation: a mistake in the program.
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

// Transport is how a request came.
func (c *Call) Transport() authorize.Transport {
	if strings.HasPrefix(c.Host, "https:") {
		return authorize.TLS
	}
	return authorize.Plain
}

// One is a need of a single action on the resource of an account.
func One(action string, resource arn.ARN) []authorize.Need {
	return []authorize.Need{{Action: action, Resource: resource.String(), Account: resource.Account}}
}

// Any is a need of an action that is about no resource.
func Any(action string) []authorize.Need {
	return []authorize.Need{{Action: action, Resource: "*"}}
}

// Owned refuses what belongs to another account, unless authorization has let the caller
// use it. why is what is denied, as policies name the action.
func Owned(call *Call, a arn.ARN, action string) error {
	if call.Authorized || call.Unsigned() || a.Account == call.Account {
		return nil
	}
	return Denied(authorize.RootOf(call.Account), &authorize.Need{Action: action, Resource: a.String()}, &policy.Result{Kind: policy.Resource})
}

// Denied refuses what a caller may not do.
func Denied(who *caller.Caller, need *authorize.Need, result *policy.Result) error {
	return fault.New(fault.AccessDenied, Denial(who, need, result))
}

// DenialAbroad is what KMS says of another account's key, be there one or not.
func DenialAbroad(who *caller.Caller, action string) string {
	return "User: " + who.ARN + " is not authorized to perform: " + action + " on this resource because the resource does not exist in this Region, " +
		"no resource-based policies allow access, or a resource-based policy explicitly denies access"
}

// Denial is AWS's sentence for what a caller may not do.
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
