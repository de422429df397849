package server

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/keys"
)

// authorization makes policies, including those of keys, decide on requests; nil if IAM is not
// enforced.
func authorization(deps Deps, identities *identity.Module, engine *shard.Engine, keyring *keys.Module, deliveryStreams tagged) func(context.Context, *api.Call, *api.Operation, any) error {
	if !deps.Config.Enforce {
		return nil
	}
	a := &authorize.Authorizer{Identities: identities, Resources: resources{engine, identities, deliveryStreams}}
	keyring.Decide(func(own *policy.Policy, granted bool, need *authorize.Need, known *authorize.Context) error {
		return useOfKey(a, own, granted, need, known)
	})
	return guarded(a)
}

// guarded checks all permissions that an operation needs.
func guarded(a *authorize.Authorizer) func(context.Context, *api.Call, *api.Operation, any) error {
	return func(ctx context.Context, call *api.Call, op *api.Operation, in any) error {
		if op.Access == nil || call.Caller == nil {
			return fault.Newf(fault.Internal, "nobody says what %s needs, or who calls", op.Name)
		}
		if call.Caller.Kind == caller.Anonymous && op.Open {
			return nil // the operation checks what it has instead of credentials
		}
		if err := ofSession(call, op); err != nil {
			return err
		}
		needs, err := op.Access(call, in)
		if err != nil {
			if call.Caller.Kind == caller.Root {
				return nil // it may do everything in its account: the operation reports what is wrong
			}
			return err
		}
		for i := range needs {
			if needs[i].Inside {
				continue
			}
			known := authorize.Context{Caller: call.Caller, Region: call.Region, Now: call.Time.UnixMilli(), Address: call.RemoteAddr, Transport: call.Transport(), Via: call.Via}
			if of, err := arn.Parse(needs[i].Resource); err == nil && of.Region != "" {
				known.Region = of.Region // a queue's URL may name another region than the signature
			}
			result, err := a.Decide(ctx, &needs[i], &known)
			if err != nil {
				return err
			}
			switch {
			case result.Allowed():
			case needs[i].Absent != nil && needs[i].Account != call.Caller.Account:
				return needs[i].Absent
			default:
				return api.Denied(call.Caller, &needs[i], &result)
			}
		}
		call.Authorized = true
		return nil
	}
}

// ofSession refuses operations that credentials of GetSessionToken and GetFederationToken may
// not call, whatever policies say: they must not obtain credentials that last longer. Source:
// the IAM user guide, on comparing STS credentials, for sessions without MFA.
func ofSession(call *api.Call, op *api.Operation) error {
	if call.Caller.Issued.IsZero() || call.Caller.Kind == caller.Session {
		return nil
	}
	switch call.Service {
	case "iam":
		return fault.New(fault.Unauthenticated, "The security token included in the request is invalid.")
	case "sts":
		if op.Name != "GetCallerIdentity" && (op.Name != "AssumeRole" || call.Caller.Kind == caller.Federated) {
			return fault.Newf(fault.AccessDenied, "Cannot call %s with session credentials", op.Name)
		}
	}
	return nil
}

// resources are the resources with policies: queues, topics and functions, and roles, whose
// trust policies say who may assume them.
type resources struct {
	*shard.Engine

	identities      *identity.Module
	deliveryStreams tagged // delivery streams
}

// tagged finds the tags of some resources.
type tagged interface {
	PolicyTags(ctx context.Context, a arn.ARN) map[string]string
}

// PolicyOf implements authorize.Resources.
func (r resources) PolicyOf(ctx context.Context, a arn.ARN) *policy.Policy {
	if a.Service != "iam" {
		return r.Engine.PolicyOf(ctx, a)
	}
	role := r.identities.RoleOf(a.String())
	if role == nil {
		return nil
	}
	trust, err := r.identities.TrustOf(role)
	if err != nil {
		return nil // its policy is unreadable, and so allows nobody
	}
	return trust
}

// TagsOf implements authorize.Resources.
func (r resources) TagsOf(ctx context.Context, a arn.ARN) map[string]string {
	switch a.Service {
	case "iam":
	case "firehose":
		return r.deliveryStreams.PolicyTags(ctx, a)
	default:
		return r.Engine.TagsOf(ctx, a)
	}
	return r.identities.TagsOf(a.String())
}

// useOfKey refuses a use of a key that its policy, a grant and the caller's policies do not
// allow together.
func useOfKey(a *authorize.Authorizer, own *policy.Policy, granted bool, need *authorize.Need, known *authorize.Context) error {
	result, err := a.DecideBy(own, granted, need, known)
	if err != nil {
		return err
	}
	if result.Allowed() {
		return nil
	}
	if who := known.Caller; who.Kind != caller.Service && who.Account != need.Account && result.Kind == policy.Resource {
		return fault.New(fault.KMSAccessDenied, api.DenialAbroad(who, need.Action))
	}
	return fault.New(fault.KMSAccessDenied, api.Denial(known.Caller, need, &result))
}
