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

// Engine executes the operations; *identity.Module implements it. Its errors are of package
// fault.
type Engine interface {
	entity.Engine
	// Seal makes the persisted form of a secret.
	Seal(name string, secret identity.Secret) ([]byte, error)
	// BindPolicy replaces the principals of a trust policy by their unique ids, and returns
	// the first unknown one. ShowPolicy is the inverse.
	BindPolicy(document string) (bound, unknown string)
	ShowPolicy(document string) string
	LastUse(id string) (identity.Use, bool)
	AccountOfKey(id string) (string, bool)
}

// Options are the dependencies of a Service.
type Options struct{ Engine Engine }

// Service answers the operations of IAM.
type Service struct {
	engine   Engine
	entities entity.Store
}

// New makes a Service.
func New(o Options) *Service { return &Service{o.Engine, entity.Store{Engine: o.Engine}} }

// Operations are the operations that are implemented.
func (s *Service) Operations() []api.Operation {
	return s.guarded(constraints.Guard("iam", slices.Concat(s.users(), s.groups(), s.roles(), s.inlines(), s.attachments(), s.policies(), providers.New(s.entities).Operations(), s.profiles(), s.accounts(), simulate.New(s.engine).Operations())))
}

// encoded is a document as encoded in answers.
func encoded(document string) string {
	return strings.ReplaceAll(url.QueryEscape(document), "+", "%20")
}
