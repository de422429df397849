package identity

import (
	"fmt"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
)

// policyCache caches compiled policies: by document, and by identity for the current revision.
type policyCache struct {
	documents  *lru.Cache[string, *policy.Policy]
	mu         sync.RWMutex
	identities map[string]compiled // by unique id
}

type compiled struct {
	revision uint64
	identity []*policy.Policy
	boundary *policy.Policy
}

const (
	maxDocuments  = 16_384
	maxIdentities = 16_384
)

func newPolicyCache() policyCache {
	documents, _ := lru.New[string, *policy.Policy](maxDocuments) // it fails for no other size than 0
	return policyCache{documents: documents, identities: map[string]compiled{}}
}

// compile parses a document of an identity or a session.
func (m *Module) compile(document string) (*policy.Policy, error) {
	if p, ok := m.policies.documents.Get(document); ok {
		return p, nil
	}
	p, err := policy.ParseIdentity(document)
	if err != nil {
		return nil, err
	}
	m.policies.documents.Add(document, p)
	return p, nil
}

// everything is the policy of an account's root.
var everything = func() []*policy.Policy {
	p, err := policy.ParseIdentity(`{"Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`)
	if err != nil {
		panic(err) // it is a constant
	}
	return []*policy.Policy{p}
}()

// PoliciesOf are the compiled policies of a caller: those of the user with its groups, of the
// role, or of the user that made a federation token; the boundary; and the session policies. A
// document that cannot be compiled is an error: what it denies is not known.
func (m *Module) PoliciesOf(c *caller.Caller) (identity []*policy.Policy, boundary *policy.Policy, session []*policy.Policy, err error) {
	id := c.ID
	switch c.Kind {
	case caller.User:
	case caller.Session:
		id = c.RoleID
	case caller.Federated:
		id = c.User
	default:
		return nil, nil, nil, nil
	}
	for _, document := range c.Policies {
		p, err := m.compile(document)
		if err != nil {
			return nil, nil, nil, err
		}
		session = append(session, p)
	}
	switch id {
	case "":
		return nil, nil, session, nil
	case c.Account: // the account's root made it, which has all permissions
		return everything, nil, session, nil
	}
	of, err := m.policiesOf(c.Account, id)
	return of.identity, of.boundary, session, err
}

func (m *Module) policiesOf(account, id string) (compiled, error) {
	revision := m.revision.Load()
	cache := &m.policies
	cache.mu.RLock()
	of, ok := cache.identities[id]
	cache.mu.RUnlock()
	if ok && of.revision == revision {
		return of, nil
	}
	of = compiled{revision: revision}
	documents, boundary := m.Documents(account, id)
	for _, document := range documents {
		p, err := m.compile(document)
		if err != nil {
			return compiled{}, fmt.Errorf("identity: a policy of %s: %w", id, err)
		}
		of.identity = append(of.identity, p)
	}
	if boundary != "" {
		p, err := m.compile(boundary)
		if err != nil {
			return compiled{}, fmt.Errorf("identity: the boundary of %s: %w", id, err)
		}
		of.boundary = p
	}
	cache.mu.Lock()
	defer cache.mu.Unlock()
	if len(cache.identities) >= maxIdentities {
		clear(cache.identities)
	}
	cache.identities[id] = of
	return of, nil
}

// Documents are the policy documents of a user (with those of its groups) or of a role, by its
// unique id, and that of its boundary, empty if it has none. A deleted boundary allows nothing.
func (m *Module) Documents(account, id string) (documents []string, boundary string) {
	m.peek(account, func(a *iam.Account) {
		e := a.ByID(id)
		if e == nil {
			return
		}
		for _, s := range PolicySources(a, e) {
			documents = append(documents, s.Document)
		}
		if e.Boundary != "" {
			boundary = denyAll
			if p, err := a.Managed(e.Boundary); err == nil {
				boundary = p.DefaultVersion().Document
			}
		}
	})
	return documents, boundary
}

const denyAll = `{"Version":"2012-10-17","Statement":[{"Effect":"Deny","Action":"*","Resource":"*"}]}`

// PolicySource is a policy of an identity, and its origin.
type PolicySource struct {
	Document string
	Name     string // of the policy
	Type     string // "user", "group", "role", or "aws-managed", "user-managed"
	Holder   *iam.Entity
}

// PolicySources are the policies of a user, with those of its groups, of a group, or of a role.
func PolicySources(a *iam.Account, e *iam.Entity) (all []PolicySource) {
	add := func(h *iam.Entity) {
		kind := map[iam.Kind]string{iam.User: "user", iam.Group: "group", iam.Role: "role"}[h.Kind]
		for _, p := range h.Inline {
			all = append(all, PolicySource{p.Document, p.Name, kind, h})
		}
		for _, arn := range h.Attached {
			if p, err := a.Managed(arn); err == nil {
				kind := "user-managed"
				if p.Account != a.ID {
					kind = "aws-managed"
				}
				all = append(all, PolicySource{p.DefaultVersion().Document, p.Name, kind, h})
			}
		}
	}
	add(e)
	if e.Kind == iam.User {
		for _, g := range a.GroupsOf(e) {
			add(g)
		}
	}
	return all
}
