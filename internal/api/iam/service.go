package iam

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
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
	return s.guarded(slices.Concat(s.users(), s.groups(), s.roles(), s.inlines(), s.attachments(), s.policies(), s.providers(), s.profiles(), s.accounts(), simulate.New(s.engine).Operations()))
}

// checkName refuses what cannot be the name of anything.
func checkName(member, name string, most int) error {
	if err := check.Length(member, name, 1, most); err != nil {
		return err
	}
	if strings.ContainsFunc(name, func(c rune) bool { return !isWord(c) && !strings.ContainsRune("+=,.@-", c) }) {
		return check.Invalid("The specified value for %s is invalid. It must contain only alphanumeric characters and/or the following: +=,.@_-", member)
	}
	return nil
}

func isWord(c rune) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '_'
}

const maxPath = 512

// readPath reads a path; absent is the root.
func readPath(member string, path *string) (string, error) {
	if path == nil {
		return "/", nil
	}
	p := *path
	if err := check.Length(member, p, 1, maxPath); err != nil {
		return "", err
	}
	if p != "/" && (len(p) < 3 || p[0] != '/' || p[len(p)-1] != '/' || strings.ContainsFunc(p, func(c rune) bool { return c < '!' || c > '~' })) {
		return "", check.Invalid("The specified value for %s is invalid. It must begin and end with / and contain only alphanumeric characters and/or / characters.", member)
	}
	return p, nil
}

// The limits of tags, in characters.
const (
	maxTagKey   = 128
	maxTagValue = 256
)

func readTags(tags []Tag) ([]iam.Tag, error) {
	all := make([]iam.Tag, 0, len(tags))
	if len(tags) > iam.MaxTags {
		return nil, check.Invalid("1 validation error detected: Value at 'tags' failed to satisfy constraint: Member must have length less than or equal to %d", iam.MaxTags)
	}
	for i, t := range tags {
		at := "tags." + itoa(i+1) + ".member."
		if t.Key == nil || t.Value == nil {
			lacks := "value"
			if t.Key == nil {
				lacks = "key"
			}
			return nil, check.Invalid("1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null", at+lacks)
		}
		if err := checkTag(at, *t.Key, *t.Value); err != nil {
			return nil, err
		}
		all = append(all, iam.Tag{Key: *t.Key, Value: *t.Value})
	}
	return all, nil
}

func checkTag(at, name, value string) error {
	if err := cmp.Or(check.Length(at+"key", name, 1, maxTagKey), check.Length(at+"value", value, 0, maxTagValue)); err != nil {
		return err
	}
	for member, text := range map[string]string{"key": name, "value": value} {
		if !isTagText(text) {
			return check.Constraint(text, at+member, `Member must satisfy regular expression pattern: [\p{L}\p{Z}\p{N}_.:/=+\-@]+`)
		}
	}
	if strings.HasPrefix(strings.ToLower(name), "aws:") {
		return fault.New(fault.InvalidInput, "Tag keys beginning with aws: are reserved for system use")
	}
	return nil
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
