package identity

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"maps"
	"strings"

	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/sigv4"
)

// maxCredentials bounds the cache of credentials.
const maxCredentials = 65_536

// Credential finds the credential of an access key and the token sent with it. It fails with
// sigv4.ErrUnknownKey for a key that does not exist or is not active, also if its user or role
// was deleted, and with sigv4.ErrToken for a token that does not belong to the key. The caller
// must check Expires.
func (m *Module) Credential(accessKey, token string) (sigv4.Credential, error) {
	if token != "" {
		s, err := m.openToken(accessKey, token)
		if err != nil {
			return sigv4.Credential{}, err
		}
		return sigv4.Credential{Secret: string(s.Secret), Caller: s.caller, Expires: s.Expires}, nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c, ok := m.credentials.Load(accessKey); ok {
		return c.(sigv4.Credential), nil
	}
	a := m.accounts[m.owners[accessKey]]
	if a == nil {
		return sigv4.Credential{}, sigv4.ErrUnknownKey
	}
	k := a.Key(accessKey)
	if k == nil || !k.Active {
		return sigv4.Credential{}, sigv4.ErrUnknownKey
	}
	u := a.ByID(k.User)
	if u == nil {
		return sigv4.Credential{}, sigv4.ErrUnknownKey
	}
	secret, err := m.open(k.ID, k.Secret)
	if err != nil {
		return sigv4.Credential{}, err
	}
	c := sigv4.Credential{Secret: string(secret), Caller: userCaller(u, k.ID)}
	if m.kept.Add(1) > maxCredentials {
		m.forgetCredentials()
	}
	m.credentials.Store(k.ID, c) // a change of identities waits for the lock, and then removes it
	return c, nil
}

// forgetCredentials clears the cache of credentials.
func (m *Module) forgetCredentials() {
	m.credentials.Clear()
	m.kept.Store(0)
}

// Known is the principal of an access key and its token; nil if they were never issued. It does
// not check the session's expiry.
func (m *Module) Known(accessKey, token string) *caller.Caller {
	if len(accessKey) != 20 || accessKey[0] != 'A' { // not a key of ours
		return nil
	}
	c, err := m.Credential(accessKey, token)
	if err != nil {
		return nil
	}
	return c.Caller
}

func userCaller(u *iam.Entity, accessKey string) *caller.Caller {
	return &caller.Caller{
		Kind: caller.User, Account: u.Account, ARN: u.ARN(), ID: u.ID, Name: u.Name, AccessKey: accessKey, Tags: u.TagMap(),
	}
}

// Current is the caller of a record, such as that of a job, by the name and the tags that its user
// has now: policies decide by them, and somebody else may have the name of then. A deleted user
// stays as it was, and has no permissions. Callers of requests are current.
func (m *Module) Current(c *caller.Caller) *caller.Caller {
	if c == nil || c.Kind != caller.User || c.AccessKey != "" {
		return c
	}
	of := m.byID(c.ID)
	if of == nil {
		return c
	}
	now := *c
	now.ARN, now.Name, now.Tags = of.ARN(), of.Name, of.TagMap()
	return &now
}

// RoleSessionARN is the ARN of a role's session, which has the role's name without its
// path.
func RoleSessionARN(account, role, session string) string {
	return "arn:aws:sts::" + account + ":assumed-role/" + role + "/" + session
}

// RoleCaller is the caller of a role's session that has no credentials, such as the console's.
func RoleCaller(role *iam.Entity, session string) *caller.Caller {
	return &caller.Caller{
		Kind: caller.Session, Account: role.Account, ARN: RoleSessionARN(role.Account, role.Name, session), ID: role.ID + ":" + session, Name: session,
		Role: role.ARN(), RoleID: role.ID, Tags: role.TagMap(),
	}
}

// callerOf is the caller of a session. It fails with sigv4.ErrUnknownKey if the role or user
// was deleted.
func (m *Module) callerOf(s *Session) (*caller.Caller, error) {
	var of *iam.Entity
	if s.Of != "" {
		m.peek(s.Account, func(a *iam.Account) { of = a.ByID(s.Of) })
		if of == nil {
			return nil, sigv4.ErrUnknownKey
		}
	}
	var c *caller.Caller
	switch {
	case s.Kind == caller.Session:
		if of == nil || of.Kind != iam.Role {
			return nil, sigv4.ErrUnknownKey
		}
		c = RoleCaller(of, s.Name)
		c.Provider, c.Claims = s.Provider, s.Claims
	case s.Kind == caller.Federated:
		c = &caller.Caller{
			Account: s.Account, ARN: "arn:aws:sts::" + s.Account + ":federated-user/" + s.Name, ID: s.Account + ":" + s.Name, Name: s.Name,
			User: cmp.Or(s.Of, s.Account),
		}
		if of != nil {
			c.Tags = of.TagMap()
		}
	case of != nil:
		c = userCaller(of, "")
	default:
		c = authorize.RootOf(s.Account)
	}
	c.Kind, c.AccessKey, c.Issued, c.SourceIdentity, c.Transitive = s.Kind, s.AccessKey, s.Issued, s.Source, s.Transitive
	if len(s.Tags) > 0 {
		tags := map[string]string{}
		maps.Copy(tags, c.Tags)
		for k, v := range s.Tags { // a session's tag overrides its role's or user's
			for old := range tags {
				if strings.EqualFold(old, k) {
					delete(tags, old)
				}
			}
			tags[k] = v
		}
		c.Tags = tags
	}
	c.Policies = m.sessionDocuments(s)
	c.Capped = len(s.Policies)+len(s.Managed) > 0 || s.Kind == caller.Federated
	return c, nil
}

// sessionDocuments are the session policies, with the current documents of managed ones.
func (m *Module) sessionDocuments(s *Session) []string {
	if len(s.Managed) == 0 {
		return s.Policies
	}
	documents := append([]string(nil), s.Policies...)
	m.peek(s.Account, func(a *iam.Account) {
		for _, arn := range s.Managed {
			if e, err := a.Managed(arn); err == nil {
				documents = append(documents, e.DefaultVersion().Document)
			}
		}
	})
	return documents
}

// NewRandom generates the random part of a unique id, which does not depend on its account.
func NewRandom() (r iam.Random) {
	_, _ = rand.Read(r[:]) // it never fails
	return r
}

// NewSecret draws a secret of 40 characters, like AWS's.
func NewSecret() Secret {
	var raw [30]byte
	_, _ = rand.Read(raw[:]) // it never fails
	return Secret(base64.StdEncoding.EncodeToString(raw[:]))
}
