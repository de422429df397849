package sts

import (
	"context"
	"net/http"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/api/constraints"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/identity"
)

// Engine has the identities; *identity.Module implements it.
type Engine interface {
	// RoleOf is the role of an ARN; nil: there is none.
	RoleOf(arn string) *iam.Entity
	NewSession(s *identity.Session) (token string, err error)
	// SessionOf is the session of a token; nil: it is invalid.
	SessionOf(accessKey, token string) *identity.Session
	Read(account string, look func(a *iam.Account) error) error
	Used(id, service, region string)
	// TrustOf is a role's trust policy, compiled.
	TrustOf(role *iam.Entity) (*policy.Policy, error)
}

// Options are the dependencies of a Service. All but RootKey and RootAccount are required.
type Options struct {
	Engine Engine
	// Clock is the clock of sessions.
	Clock clock.Clock
	// Web fetches the keys of identity providers, whose addresses clients choose.
	Web *http.Client
	// RootKey is the access key id of the root user of RootAccount; empty: there is none.
	RootKey, RootAccount string
}

// Service answers the operations of STS.
type Service struct {
	engine Engine
	clock  clock.Clock

	rootKey, rootAccount string

	issuers issuers
}

// New makes a Service.
func New(o Options) *Service {
	return &Service{engine: o.Engine, clock: o.Clock, rootKey: o.RootKey, rootAccount: o.RootAccount, issuers: issuers{client: o.Web}}
}

// Operations are the operations that are implemented.
func (s *Service) Operations() []api.Operation {
	return api.Guarded(access, constraints.Guard("sts", []api.Operation{
		api.Op("AssumeRole", s.assumeRole),
		api.Op("AssumeRoleWithWebIdentity", s.assumeRoleWithWebIdentity).Opened(),
		api.Op("GetCallerIdentity", s.getCallerIdentity),
		api.Op("GetSessionToken", s.getSessionToken),
		api.Op("GetFederationToken", s.getFederationToken),
		api.Op("GetAccessKeyInfo", s.getAccessKeyInfo),
	}))
}

func (s *Service) getCallerIdentity(_ context.Context, call *api.Call, _ *GetCallerIdentityInput) (*GetCallerIdentityOutput, error) {
	c := call.Caller
	return &GetCallerIdentityOutput{UserId: c.ID, Account: c.Account, Arn: c.ARN}, nil
}

func (s *Service) getAccessKeyInfo(_ context.Context, _ *api.Call, in *GetAccessKeyInfoInput) (*GetAccessKeyInfoOutput, error) {
	if *in.AccessKeyId == s.rootKey { // its owner chose it: what it decodes to says nothing
		return &GetAccessKeyInfoOutput{s.rootAccount}, nil
	}
	account, ok := iam.AccountOf(*in.AccessKeyId)
	if !ok {
		return nil, check.Invalid("Invalid AccessKeyId: %s", *in.AccessKeyId)
	}
	return &GetAccessKeyInfoOutput{account}, nil
}

// duration is the duration of a session; asked is in seconds, within the bounds of the model.
func duration(asked *int, standard int) time.Duration {
	if asked != nil {
		standard = *asked
	}
	return time.Duration(standard) * time.Second
}

// issue makes the credentials of a session.
func (s *Service) issue(session *identity.Session, lasts time.Duration) (*Credentials, error) {
	session.Issued = s.clock.Now().UTC().Truncate(time.Second)
	session.Expires = session.Issued.Add(lasts)
	token, err := s.engine.NewSession(session)
	if err != nil {
		return nil, err
	}
	return &Credentials{session.AccessKey, string(session.Secret), token, api.TimeOf(session.Expires)}, nil
}

// noMFA refuses the code of an MFA device, as there are none.
func noMFA(serial, code *string) error {
	if serial != nil || code != nil {
		return fault.New(fault.AccessDenied, "MultiFactorAuthentication failed with invalid MFA one time pass code.")
	}
	return nil
}

func (s *Service) getSessionToken(_ context.Context, call *api.Call, in *GetSessionTokenInput) (*GetSessionTokenOutput, error) {
	const standard, ofRoot = 43_200, 3_600
	lasts := duration(in.DurationSeconds, standard)
	if err := noMFA(in.SerialNumber, in.TokenCode); err != nil {
		return nil, err
	}
	c := call.Caller
	session := &identity.Session{Kind: c.Kind, Account: c.Account}
	switch {
	case c.Kind == caller.Root && c.Issued.IsZero():
		lasts = min(lasts, ofRoot*time.Second)
	case c.Kind == caller.User && c.Issued.IsZero():
		var err error
		if session.Of, err = s.idOf(call); err != nil {
			return nil, err
		}
	default:
		return nil, fault.New(fault.AccessDenied, "Cannot call GetSessionToken with session credentials")
	}
	credentials, err := s.issue(session, lasts)
	if err != nil {
		return nil, err
	}
	return &GetSessionTokenOutput{credentials}, nil
}

// idOf is the unique id of the user that calls. It is empty, which is the account's root, for
// one that is unknown, as a server that does not verify signatures admits; a verified user was
// deleted since, and is refused.
func (s *Service) idOf(call *api.Call) (id string, err error) {
	err = s.engine.Read(call.Caller.Account, func(a *iam.Account) error {
		switch e := a.ByID(call.Caller.ID); {
		case e != nil:
			id = e.ID
		case call.Authorized:
			return fault.New(fault.Unauthenticated, "The security token included in the request is invalid.")
		}
		return nil
	})
	return id, err
}

func (s *Service) getFederationToken(_ context.Context, call *api.Call, in *GetFederationTokenInput) (*GetFederationTokenOutput, error) {
	const standard, ofRoot = 43_200, 3_600
	lasts := duration(in.DurationSeconds, standard)
	c := call.Caller
	if !c.Issued.IsZero() {
		return nil, fault.New(fault.AccessDenied, "Cannot call GetFederationToken with session credentials")
	}
	session := &identity.Session{Kind: caller.Federated, Account: c.Account, Name: *in.Name}
	if c.Kind == caller.Root {
		lasts = min(lasts, ofRoot*time.Second)
	} else {
		var err error
		if session.Of, err = s.idOf(call); err != nil {
			return nil, err
		}
	}
	packed, err := s.limit(session, passed{policy: in.Policy, managed: in.PolicyArns, tags: in.Tags})
	if err != nil {
		return nil, err
	}
	credentials, err := s.issue(session, lasts)
	if err != nil {
		return nil, err
	}
	return &GetFederationTokenOutput{
		credentials, &FederatedUser{c.Account + ":" + *in.Name, "arn:aws:sts::" + c.Account + ":federated-user/" + *in.Name}, packed,
	}, nil
}
