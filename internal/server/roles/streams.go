package roles

import (
	"context"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
)

// Service asks what roles may that a service acts in: Firehose for a delivery stream, SNS
// for a topic that one is subscribed to.
type Service struct {
	*Sessions

	// Principal is the service, as "sns.amazonaws.com"; Session is how its sessions are
	// called.
	Principal, Session string
	Authorizer         *authorize.Authorizer
}

// Assumable refuses a role that the service may not assume for a resource. Where nobody
// asks for permissions it may be any.
func (s *Service) Assumable(source arn.ARN, name string) error {
	_, err := s.assume(authorize.ServiceCaller(s.Principal), source, name)
	return err
}

// May refuses what the role may not do on a resource, for another resource's sake, with
// AccessDenied. Where nobody asks for permissions it may everything.
func (s *Service) May(ctx context.Context, source arn.ARN, name, action string, resource arn.ARN) error {
	if !s.Strict {
		return nil
	}
	role, err := s.assume(authorize.ServiceCaller(s.Principal), source, name)
	if err != nil {
		return err
	}
	session := sessionOf(role, s.Session)
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
