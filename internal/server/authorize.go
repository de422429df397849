package server

import (
	"context"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/alarms"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/keys"
)

// authorization makes policies, including those of keys, decide on requests; nil if IAM is not
// enforced.
func authorization(deps Deps, a *authorize.Authorizer, keyring *keys.Module) func(context.Context, *api.Call, *api.Operation, any) error {
	if !deps.Config.Enforce {
		return nil
	}
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
		needs, err := op.Access(ctx, call, in)
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
				return api.Denied(known.Caller, &needs[i], &result) // by the name of now
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

	identities *identity.Module
	tagged     map[string]tagsOf // of other services, by their names in ARNs
}

// tagsOf finds the tags of a service's resources; nil: they have none, or are not there.
type tagsOf func(a arn.ARN) map[string]string

// tagged are the modules whose resources have tags and no policies.
func (s *state) tagged() map[string]tagsOf {
	return map[string]tagsOf{
		"firehose": s.deliveryStreams.PolicyTags,
		"logs": func(a arn.ARN) map[string]string {
			a.Resource, _, _ = strings.Cut(a.Resource, ":log-stream:") // a stream has those of its group
			tags, _ := s.logs.Tags(a)
			return tags
		},
		"cloudwatch": func(a arn.ARN) map[string]string {
			name, _ := a.AlarmName()
			found, _ := s.monitoring.Alarms.Get(alarms.ID{Account: a.Account, Region: a.Region, Name: name})
			return found.Tags
		},
		"cloudformation": func(a arn.ARN) map[string]string {
			name, byName := strings.CutSuffix(strings.TrimPrefix(a.Resource, "stack/"), "/*")
			if !byName {
				name = a.String()
			}
			return s.stacks.Tags(a.Account, a.Region, name)
		},
	}
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
	if a.Service == "iam" {
		return r.identities.TagsOf(a.String())
	}
	if find := r.tagged[a.Service]; find != nil {
		return find(a)
	}
	return r.Engine.TagsOf(ctx, a)
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
