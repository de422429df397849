package roles

import (
	"time"

	"godwit.dev/godwit/internal/api/lambda/variables"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/invoke"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/identity"
	"godwit.dev/godwit/internal/shard/keys"
)

// How long the sessions of functions last, and how much of one has to be left when an
// invocation begins, beside the function's own timeout. AWS tells neither; its
// environments last for some hours, too.
const (
	sessionTime = 6 * time.Hour
	sessionRest = 5 * time.Minute
)

// lambda is who assumes functions' roles.
var lambda = authorize.ServiceCaller("lambda.amazonaws.com")

// Sessions begins the sessions of their roles that functions run with. It implements
// invoke.Roles.
type Sessions struct {
	Identities *identity.Module
	Clock      clock.Clock
	// Strict has a role be there, and trust Lambda.
	Strict bool
	// Environments decrypts the variables of functions that have a customer's key.
	Environments *keys.Environments
}

var _ invoke.Roles = (*Sessions)(nil)

// Assumable refuses a role that Lambda may not assume for a function, with invoke.ErrRole.
func (s *Sessions) Assumable(fn arn.ARN, name string) error {
	if !s.Strict {
		return nil
	}
	_, err := s.assume(lambda, fn, name)
	return err
}

// assume finds a role that a service may assume for a resource of its, with invoke.ErrRole
// for another; nil is one that is not there, where it need not be.
func (s *Sessions) assume(by *caller.Caller, source arn.ARN, name string) (*iam.Entity, error) {
	role := s.Identities.RoleOf(name)
	switch {
	case !s.Strict:
		return role, nil
	case role == nil || role.Account != source.Account:
		return nil, invoke.ErrRole
	}
	trust, err := s.Identities.TrustOf(role)
	if err != nil {
		return nil, err
	}
	known := &authorize.Context{
		Caller: by, Account: role.Account, Region: source.Region, Now: s.Clock.Now().UnixMilli(), Source: source.String(), Owner: source.Account,
	}
	if source.Service == "firehose" { // it gives its account: the trust policy of its documentation asks for that
		known.Need = &authorize.Need{Keys: []authorize.Key{{Name: "sts:externalid", Values: []string{source.Account}}}}
	}
	request := policy.Request{Caller: by, Action: "sts:AssumeRole", Resource: role.ARN(), Owner: role.Account, Context: known}
	if result := policy.Decide(&request, &policy.Policies{Resource: trust, Rule: policy.ResourceSide}); !result.Allowed() {
		return nil, invoke.ErrRole
	}
	return role, nil
}

// Credentials implements invoke.Roles.
func (s *Sessions) Credentials(t *function.Target) (*invoke.Credentials, error) {
	role, err := s.assume(lambda, t.Function, t.Role)
	if role == nil {
		return nil, err
	}
	began := s.Clock.Now().UTC().Truncate(time.Second)
	session := identity.Session{
		Kind: caller.Session, Account: role.Account, Of: role.ID, Name: t.Name, Issued: began, Expires: began.Add(sessionTime),
	}
	token, err := s.Identities.NewSession(&session)
	if err != nil {
		return nil, err
	}
	s.Identities.Used(role.ID, "", t.Function.Region)
	return &invoke.Credentials{
		AccessKey: session.AccessKey, Secret: string(session.Secret), Token: token, Expires: session.Expires, Role: role.ID,
	}, nil
}

// Lasts implements invoke.Roles: a role that was deleted, or made again, takes its sessions
// with it.
func (s *Sessions) Lasts(t *function.Target, c *invoke.Credentials) bool {
	id := ""
	if role := s.Identities.RoleOf(t.Role); role != nil {
		id = role.ID
	}
	if c == nil {
		return id == ""
	}
	return c.Role == id && c.Expires.Sub(s.Clock.Now()) >= t.Timeout+sessionRest
}

// Variables decrypts the environment of a function as its role. Errors: ErrRole, and KMS's,
// with Lambda's texts.
func (s *Sessions) Variables(t *function.Target) (map[string]string, error) {
	role, err := s.assume(lambda, t.Function, t.Role)
	if err != nil {
		return nil, err
	}
	who := authorize.RootOf(t.Function.Account) // where a role need not be there
	if role != nil {
		who = sessionOf(role, t.Name)
	}
	all, err := s.Environments.Open(keys.Access{Caller: who}, t.Function, t.Cipher)
	if err != nil {
		return nil, variables.Unreadable(err)
	}
	return all, nil
}
