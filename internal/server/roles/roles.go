// Package roles has functions and what Lambda does for them act in sessions of their
// roles.
package roles

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/shard/identity"
)

// Acting asks what the roles of functions may; nil where nobody asks.
func (s *Sessions) Acting(a *authorize.Authorizer) invoke.Acting {
	if !s.Strict {
		return nil
	}
	return func(ctx context.Context, t *function.Target, resource arn.ARN, action string) (*caller.Caller, error) {
		role, err := s.assume(lambda, t.Function, t.Role)
		if err != nil {
			return nil, err
		}
		session := sessionOf(role, t.Name)
		need := authorize.Need{Action: action, Resource: resource.String(), Account: resource.Account, Shared: true}
		result, err := a.Decide(ctx, &need, &authorize.Context{Caller: session, Region: resource.Region, Now: s.Clock.Now().UnixMilli()})
		if err != nil {
			return nil, err
		}
		if !result.Allowed() {
			return nil, api.Denied(session, &need, &result)
		}
		return session, nil
	}
}

// sessionOf is who acts with a role, in a session of a name.
func sessionOf(role *iam.Entity, name string) *caller.Caller {
	return &caller.Caller{
		Kind: caller.Session, Account: role.Account, ARN: identity.RoleSessionARN(role.Account, role.Name, name),
		ID: role.ID + ":" + name, Name: name, Role: role.ARN(), RoleID: role.ID, Tags: role.TagMap(),
	}
}
