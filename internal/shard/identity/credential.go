package identity

import (
	"crypto/rand"
	"encoding/base64"
	"maps"
	"strings"
	"time"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/iam"
)

// Credential is what an access key stands for.
type Credential struct {
	Secret   Secret
	Caller   *caller.Caller
	Expires  time.Time // of a session; else zero
	Revision uint64    // another one means that anything may be otherwise
}

// Credential finds what an access key stands for, with the token that came with it. It
// fails with ErrToken for a key that is not known or not active, a token that is missing,
// not the key's or not needed, and for what was deleted since; it is the caller who looks
// at Expires.
func (m *Module) Credential(accessKey, token string) (Credential, error) {
	if token != "" {
		s, err := m.openToken(accessKey, token)
		if err != nil {
			return Credential{}, err
		}
		return Credential{s.Secret, s.caller, s.Expires, s.revision}, nil
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	a := m.accounts[m.owners[accessKey]]
	if a == nil {
		return Credential{}, ErrToken
	}
	k := a.Key(accessKey)
	if k == nil || !k.Active {
		return Credential{}, ErrToken
	}
	u := a.ByID(k.User)
	if u == nil {
		return Credential{}, ErrToken
	}
	secret, err := m.open(k.ID, k.Secret)
	if err != nil {
		return Credential{}, err
	}
	return Credential{Secret(secret), userCaller(u, k.ID), time.Time{}, m.revision.Load()}, nil
}

// Revision counts the changes of identities.
func (m *Module) Revision() uint64 { return m.revision.Load() }

func userCaller(u *iam.Entity, accessKey string) *caller.Caller {
	return &caller.Caller{
		Kind: caller.User, Account: u.Account, ARN: u.ARN(), ID: u.ID, Name: u.Name, AccessKey: accessKey, Tags: u.TagMap(),
	}
}

// RootCaller is the root of an account.
func RootCaller(account, accessKey string) *caller.Caller {
	return &caller.Caller{Kind: caller.Root, Account: account, ARN: "arn:aws:iam::" + account + ":root", ID: account, AccessKey: accessKey}
}

// RoleSessionARN is the ARN of a role's session, which has the role's name without its
// path.
func RoleSessionARN(account, role, session string) string {
	return "arn:aws:sts::" + account + ":assumed-role/" + role + "/" + session
}

// callerOf is who a session's requests come from. It fails with ErrToken once its role or
// user is gone.
func (m *Module) callerOf(s *Session) (*caller.Caller, error) {
	var of *iam.Entity
	if s.Of != "" {
		m.peek(s.Account, func(a *iam.Account) { of = a.ByID(s.Of) })
		if of == nil {
			return nil, ErrToken
		}
	}
	var c *caller.Caller
	switch {
	case s.Kind == caller.Session:
		if of == nil || of.Kind != iam.Role {
			return nil, ErrToken
		}
		c = &caller.Caller{
			Account: s.Account, ARN: RoleSessionARN(s.Account, of.Name, s.Name), ID: of.ID + ":" + s.Name, Name: s.Name,
			Role: of.ARN(), RoleID: of.ID, Tags: of.TagMap(), Provider: s.Provider,
		}
	case s.Kind == caller.Federated:
		c = &caller.Caller{
			Account: s.Account, ARN: "arn:aws:sts::" + s.Account + ":federated-user/" + s.Name, ID: s.Account + ":" + s.Name, Name: s.Name,
		}
	case of != nil:
		c = userCaller(of, "")
	default:
		c = RootCaller(s.Account, "")
	}
	c.Kind, c.AccessKey, c.Issued = s.Kind, s.AccessKey, s.Issued
	if len(s.Tags) > 0 {
		tags := map[string]string{}
		maps.Copy(tags, c.Tags)
		for k, v := range s.Tags { // a session's tag stands in the place of its role's
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

// sessionDocuments are the documents that cap a session, as managed policies are now.
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

// NewRandom draws what a unique id has that its account does not tell.
func NewRandom() (r iam.Random) {
	_, _ = rand.Read(r[:]) // it gives no error
	return r
}

// NewSecret draws a secret of 40 characters, as AWS's have.
func NewSecret() Secret {
	var raw [30]byte
	_, _ = rand.Read(raw[:]) // it gives no error
	return Secret(base64.StdEncoding.EncodeToString(raw[:]))
}
