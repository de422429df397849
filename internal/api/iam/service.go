package iam

import (
	"net/url"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/constraints"
	"godwit.dev/godwit/internal/api/iam/simulate"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/identity"
)

// Engine is what the handlers need of the owner of identities, which is
// *identity.Module. Refusals are of package fault.
type Engine interface {
	// Run runs a command on an account's identities, and returns once all that it has
	// seen and done is durable. What fails has changed nothing.
	Run(account string, command func(a *iam.Account, now time.Time) error) error
	Read(account string, look func(a *iam.Account) error) error
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
type Service struct{ engine Engine }

// New makes a Service.
func New(o Options) *Service { return &Service{engine: o.Engine} }

// Operations declares the operations that are built.
func (s *Service) Operations() []api.Operation {
	return s.guarded(constraints.Guard("iam", slices.Concat(s.users(), s.groups(), s.roles(), s.inlines(), s.attachments(), s.policies(), s.providers(), s.profiles(), s.accounts(), simulate.New(s.engine).Operations())))
}

// pathOf is a path that a request may name; absent is the root.
func pathOf(path *string) string {
	if path == nil {
		return "/"
	}
	return *path
}

// readTags reads tags, of which the model's constraints hold.
func readTags(tags []Tag) ([]iam.Tag, error) {
	all := make([]iam.Tag, 0, len(tags))
	for _, t := range tags {
		if strings.HasPrefix(strings.ToLower(*t.Key), "aws:") {
			return nil, fault.New(fault.InvalidInput, "Tag keys beginning with aws: are reserved for system use")
		}
		all = append(all, iam.Tag{Key: *t.Key, Value: *t.Value})
	}
	return all, nil
}

func shownTags(tags []iam.Tag) []Tag {
	all := make([]Tag, 0, len(tags))
	for _, t := range tags {
		all = append(all, Tag{&t.Key, &t.Value})
	}
	return all
}

// encoded is a document as answers have it.
func encoded(document string) string {
	return strings.ReplaceAll(url.QueryEscape(document), "+", "%20")
}
