package iam

import (
	"net/url"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/constraints"
	"godwit.dev/godwit/internal/api/iam/entity"
	"godwit.dev/godwit/internal/api/iam/providers"
	"godwit.dev/godwit/internal/api/iam/simulate"
	"godwit.dev/godwit/internal/shard/identity"
)

// Engine is what the handlers need of the owner of identities, which is
// *identity.Module. Refusals are of package fault.
type Engine interface {
	entity.Engine
	// Seal makes what a record has of a secret.
	Seal(name string, secret identity.Secret) ([]byte, error)
	// BindPolicy puts unique ids in the place of ARNs that a trust policy names, and tells
	// the first that nobody has. ShowPolicy is the opposite.
	BindPolicy(document string) (bound, unknown string)
	ShowPolicy(document string) string
	LastUse(id string) (identity.Use, bool)
	AccountOfKey(id string) (string, bool)
}

// Options are what a Service is made of.
type Options struct{ Engine Engine }

// Service answers the operations of IAM.
type Service struct {
	engine   Engine
	entities entity.Store
}

// New makes a Service.
func New(o Options) *Service { return &Service{o.Engine, entity.Store{Engine: o.Engine}} }

// Operations declares the operations that are built.
func (s *Service) Operations() []api.Operation {
	return s.guarded(constraints.Guard("iam", slices.Concat(s.users(), s.groups(), s.roles(), s.inlines(), s.attachments(), s.policies(), providers.New(s.entities).Operations(), s.profiles(), s.accounts(), simulate.New(s.engine).Operations())))
}

// encoded is a document as answers have it.
func encoded(document string) string {
	return strings.ReplaceAll(url.QueryEscape(document), "+", "%20")
}
