package sts

import (
	"context"
	"errors"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/identity"
)

const (
	// tolerance is the allowed clock skew of an identity provider.
	tolerance = 5 * time.Minute
	// fetchTime is the timeout for fetching a provider's keys.
	fetchTime = 10 * time.Second
	// maxIssuers bounds the providers whose keys are cached.
	maxIssuers = 256
	// issuerAge is how long a provider's configuration and keys are cached: then a key that it
	// has withdrawn is not trusted any more.
	issuerAge = time.Hour
)

// issuers caches the configurations and keys of identity providers.
type issuers struct {
	client *http.Client
	mu     sync.Mutex
	known  map[string]knownIssuer
}

type knownIssuer struct {
	*oidc.Provider

	fetched time.Time
}

// get fetches the configuration of an identity provider, unless it was at most issuerAge before
// now. Package oidc fetches its keys, and fetches them again for an unknown key.
func (p *issuers) get(ctx context.Context, now time.Time, issuer string) (*oidc.Provider, error) {
	p.mu.Lock()
	known, ok := p.known[issuer]
	p.mu.Unlock()
	if age := now.Sub(known.fetched); ok && 0 <= age && age <= issuerAge { // a clock may be set back
		return known.Provider, nil
	}
	// The provider uses the context for the keys that it fetches later.
	provider, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), p.client), issuer)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known == nil || len(p.known) >= maxIssuers {
		p.known = map[string]knownIssuer{}
	}
	p.known[issuer] = knownIssuer{provider, now}
	return provider, nil
}

func badToken(why string) error { return fault.New(fault.InvalidIdentityToken, why) }

var (
	errWebIdentity = fault.New(fault.AccessDenied, "Not authorized to perform sts:AssumeRoleWithWebIdentity")
	errUnreachable = fault.New(fault.IDPCommunicationError, "Couldn't retrieve verification key from your identity provider,  please reference AssumeRoleWithWebIdentity documentation for requirements")
)

// assumeRoleWithWebIdentity answers AssumeRoleWithWebIdentity. The token is verified with the
// keys of its issuer, which must be a provider of the role's account; then the role's trust
// policy is evaluated with the issuer's name and the token's claims.
func (s *Service) assumeRoleWithWebIdentity(ctx context.Context, call *api.Call, in *AssumeRoleWithWebIdentityInput) (*AssumeRoleWithWebIdentityOutput, error) {
	account, kind, _, ok := iam.ParseARN(*in.RoleArn)
	if !ok || kind != iam.Role {
		return nil, errWebIdentity
	}
	said, err := peek(*in.WebIdentityToken)
	if err != nil {
		return nil, err
	}
	name := strings.TrimPrefix(said.Issuer, "https://")
	var provider *iam.Entity
	_ = s.engine.Read(account, func(a *iam.Account) error {
		provider, _ = a.Find(iam.Provider, name)
		return nil
	})
	// Names are looked up case-insensitively, but the issuer must be equal.
	if provider == nil || provider.Name != name || !strings.HasPrefix(said.Issuer, "https://") {
		return nil, badToken("No OpenIDConnect provider found in your account for " + said.Issuer)
	}
	if err := s.verify(ctx, *in.WebIdentityToken, &said); err != nil {
		return nil, err
	}
	client := said.Audience[0]
	if len(said.Audience) > 1 { // the authorized party (azp) decides
		if client = said.Party; client == "" {
			return nil, badToken("Missing a required claim: azp")
		}
	}
	if !slices.Contains(provider.Provider.ClientIDs, client) {
		return nil, badToken("Incorrect token audience")
	}
	if said.SourceIdentity != "" && !isName(said.SourceIdentity) {
		return nil, badToken("The ID Token has a source identity that is none")
	}
	// Only callers with a verified token may find out whether a role exists.
	role := s.engine.RoleOf(*in.RoleArn)
	if role == nil {
		return nil, errWebIdentity
	}
	keys := said.keys(name, client)
	if err := s.admits(call, role, provider, keys, &said, *in.RoleSessionName); err != nil {
		return nil, err
	}
	lasts, err := lasting(in.DurationSeconds, role, false)
	if err != nil {
		return nil, err
	}
	session := &identity.Session{
		Kind: caller.Session, Account: role.Account, Of: role.ID, Name: *in.RoleSessionName, Provider: provider.ARN(), Source: said.SourceIdentity, Claims: keys,
	}
	credentials, packed, err := s.begin(call, session, lasts, passed{in.Policy, in.PolicyArns, said.Tags, said.Transitive})
	if err != nil {
		return nil, err
	}
	return &AssumeRoleWithWebIdentityOutput{credentials, said.Subject, assumed(role, session), packed, provider.ARN(), client}, nil
}

// verify checks a token's signature and times.
func (s *Service) verify(ctx context.Context, token string, said *claims) error {
	now := s.clock.Now()
	at := func(seconds float64) time.Time { return time.Unix(int64(seconds), 0) }
	if !now.Before(at(*said.Expires).Add(tolerance)) {
		return fault.New(fault.ExpiredIdentityToken, "Token expired: current date/time "+now.UTC().Format("Mon Jan 02 15:04:05 UTC 2006")+" must be before the expiration date/time "+at(*said.Expires).UTC().Format("Mon Jan 02 15:04:05 UTC 2006"))
	}
	if now.Add(tolerance).Before(at(*said.Issued)) {
		return badToken("The ID Token provided was issued in the future")
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	provider, err := s.issuers.get(ctx, now, said.Issuer)
	if err != nil {
		return errUnreachable
	}
	_, err = provider.Verifier(&oidc.Config{SkipClientIDCheck: true, SkipExpiryCheck: true}).Verify(ctx, token)
	var unreachable net.Error
	var refused *url.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &unreachable), errors.As(err, &refused):
		return errUnreachable
	}
	return badToken("Couldn't verify the ID Token's signature")
}

// webContext are the condition keys of a request with a web identity.
type webContext struct {
	claims map[string][]string
	other  authorize.Context // the condition keys of any request
}

// Values implements policy.Context.
func (c *webContext) Values(key string) []string {
	if values, ok := c.claims[key]; ok {
		return values
	}
	return c.other.Values(key)
}

// admits evaluates the role's trust policy. of are the condition keys of the claims.
func (s *Service) admits(call *api.Call, role, provider *iam.Entity, of map[string][]string, said *claims, session string) error {
	trust, err := s.engine.TrustOf(role)
	if err != nil {
		return errWebIdentity
	}
	who := &caller.Caller{Kind: caller.Anonymous, Provider: provider.ARN()}
	keys := maps.Clone(of)
	keys["sts:rolesessionname"] = []string{session}
	known := webContext{claims: keys, other: authorize.Context{
		Caller: who, Account: role.Account, Region: call.Region, Now: call.Time.UnixMilli(), Address: call.RemoteAddr, Transport: call.Transport(),
		Need: said.tagging(),
	}}
	if said.SourceIdentity != "" {
		keys["sts:sourceidentity"] = []string{said.SourceIdentity}
	}
	if len(said.Transitive) > 0 {
		keys["sts:transitivetagkeys"] = said.Transitive
	}
	for _, action := range said.actions() {
		result := policy.Decide(&policy.Request{
			Caller: who, Action: action, Resource: role.ARN(), Owner: role.Account, Context: &known,
		}, &policy.Policies{Resource: trust, Rule: policy.ResourceSide})
		if !result.Allowed() {
			return errWebIdentity
		}
	}
	return nil
}
