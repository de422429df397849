package roles

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/identity"
)

// Service asks what the roles may that a service other than Lambda acts in. Make it of the
// Sessions that know the roles.
type Service struct {
	*Sessions

	// Principal is the service, as "sns.amazonaws.com"; Session is how its sessions are
	// called.
	Principal, Session string
	Authorizer         *authorize.Authorizer
}

// errAssume refuses a role that is not there, or does not trust the service.
var errAssume = fault.New(fault.AccessDenied, "the role does not exist, or does not trust the service")

// Assumable refuses a role that the service may not assume for a resource. Where nobody
// asks for permissions it may be any.
func (s *Service) Assumable(source arn.ARN, name string) error {
	if !s.Strict {
		return nil
	}
	_, err := s.assumed(source, name)
	return err
}

func (s *Service) assumed(source arn.ARN, name string) (*iam.Entity, error) {
	role := s.Identities.RoleOf(name)
	if role == nil || role.Account != source.Account {
		return nil, errAssume
	}
	trust, err := s.Identities.TrustOf(role)
	if err != nil {
		return nil, err
	}
	who := authorize.ServiceCaller(s.Principal)
	request := policy.Request{Caller: who, Action: "sts:AssumeRole", Resource: role.ARN(), Owner: role.Account, Context: &authorize.Context{
		Caller: who, Account: role.Account, Region: source.Region, Now: s.Clock.Now().UnixMilli(), Source: source.String(), Owner: source.Account,
	}}
	if result := policy.Decide(&request, &policy.Policies{Resource: trust, Rule: policy.ResourceSide}); !result.Allowed() {
		return nil, errAssume
	}
	return role, nil
}

// May refuses what the role may not do on a resource, for another resource's sake, with
// AccessDenied. Where nobody asks for permissions it may everything.
func (s *Service) May(ctx context.Context, source arn.ARN, name, action string, resource arn.ARN) error {
	if !s.Strict {
		return nil
	}
	role, err := s.assumed(source, name)
	if err != nil {
		return err
	}
	session := &caller.Caller{
		Kind: caller.Session, Account: role.Account, ARN: identity.RoleSessionARN(role.Account, role.Name, s.Session),
		ID: role.ID + ":" + s.Session, Name: s.Session, Role: role.ARN(), RoleID: role.ID, Tags: role.TagMap(),
	}
	need := authorize.Need{Action: action, Resource: resource.String(), Account: resource.Account}
	result, err := s.Authorizer.Decide(ctx, &need, &authorize.Context{Caller: session, Region: resource.Region, Now: s.Clock.Now().UnixMilli()})
	if err != nil {
		return err
	}
	if !result.Allowed() {
		return api.Denied(session, &need, &result)
	}
	return nil
}
