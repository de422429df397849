package server

import (
	"context"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
)

// authorization refuses what policies do not let a caller do; nil where nobody asks.
func authorization(deps Deps, resources authorize.Resources) func(context.Context, *api.Call, *api.Operation, any) error {
	if !deps.Config.Enforce {
		return nil
	}
	identities := deps.Identities
	if identities == nil {
		identities = authorize.Nobody{}
	}
	return guarded(&authorize.Authorizer{Identities: identities, Resources: resources})
}

// guarded asks for everything that an operation needs.
func guarded(a *authorize.Authorizer) func(context.Context, *api.Call, *api.Operation, any) error {
	return func(ctx context.Context, call *api.Call, op *api.Operation, in any) error {
		if op.Access == nil || call.Caller == nil {
			return fault.Newf(fault.Internal, "nobody says what %s needs, or who calls", op.Name)
		}
		if call.Caller.Kind == caller.Anonymous && op.Open {
			return nil // what it brings instead of credentials is the operation's to judge
		}
		needs, err := op.Access(call, in)
		if err != nil {
			return err
		}
		for i := range needs {
			known := authorize.Context{Caller: call.Caller, Region: call.Region, Now: call.Time.UnixMilli(), Address: call.RemoteAddr, Transport: authorize.Plain}
			if strings.HasPrefix(call.Host, "https:") {
				known.Transport = authorize.TLS
			}
			result, err := a.Decide(ctx, &needs[i], &known)
			if err != nil {
				return err
			}
			if !result.Allowed() {
				return api.Denied(call.Caller, &needs[i], &result)
			}
		}
		return nil
	}
}
