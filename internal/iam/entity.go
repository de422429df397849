package iam

import (
	"slices"
	"strings"
	"time"
)

// Kind is the kind of an Entity.
type Kind byte

// The kinds, as in records.
const (
	User     Kind = 'u'
	Group    Kind = 'g'
	Role     Kind = 'r'
	Policy   Kind = 'p' // a managed policy of the account
	Provider Kind = 'o' // an OpenID Connect provider
	Profile  Kind = 'i' // an instance profile
	Alias    Kind = 'a' // of the account
)

// Kinds are all kinds.
var Kinds = []Kind{User, Group, Role, Policy, Provider, Profile, Alias}

// Entity is a named entity of an account. It is immutable once an account has it.
type Entity struct {
	Kind        Kind      `json:"-"`
	Account     string    `json:"-"`
	Path        string    `json:"path,omitempty"` // begins and ends with a slash
	Name        string    `json:"name"`           // of a provider its URL without https://
	ID          string    `json:"id,omitempty"`   // unique: never reused for the name
	Created     time.Time `json:"created"`
	Description string    `json:"description,omitempty"`
	Tags        []Tag     `json:"tags,omitempty"`

	// Of users, groups and roles.
	Inline   []Inline `json:"inline,omitempty"`   // ordered by name
	Attached []string `json:"attached,omitempty"` // ARNs of managed policies, in the order of attachment
	Boundary string   `json:"boundary,omitempty"` // the ARN of a managed policy
	// Groups are a user's groups, by unique id.
	Groups []string `json:"groups,omitempty"`

	Role     *RolePart     `json:"role,omitempty"`
	Policy   *PolicyPart   `json:"policy,omitempty"`
	Provider *ProviderPart `json:"provider,omitempty"`
	// Profile is the unique id of an instance profile's role; empty if it has none.
	Profile string `json:"profile,omitempty"`
}

// Tag is a tag of an entity.
type Tag struct{ Key, Value string }

// Inline is an inline policy.
type Inline struct{ Name, Document string }

// RolePart is what only roles have.
type RolePart struct {
	// Trust is the trust policy, with unique ids instead of users' and roles' ARNs.
	Trust      string `json:"trust"`
	MaxSession int    `json:"maxSession"` // in seconds
}

// PolicyPart is what only managed policies have.
type PolicyPart struct {
	Versions []Version `json:"versions"` // ordered by number
	Default  int       `json:"default"`  // the number of the default version
	Latest   int       `json:"latest"`   // the highest number so far
	Updated  time.Time `json:"updated"`
}

// Version is a version of a managed policy.
type Version struct {
	Number   int
	Document string
	Created  time.Time
}

// ProviderPart is what only OpenID Connect providers have.
type ProviderPart struct {
	ClientIDs   []string `json:"clientIds,omitempty"`
	Thumbprints []string `json:"thumbprints,omitempty"`
}

// words are the names of kinds in ARNs.
var words = map[Kind]string{
	User: "user", Group: "group", Role: "role", Policy: "policy", Provider: "oidc-provider", Profile: "instance-profile",
}

const arnPrefix = "arn:aws:iam::"

// ARN is the entity's ARN.
func (e *Entity) ARN() string {
	path := e.Path
	if e.Kind == Provider {
		path = "/"
	}
	return arnPrefix + e.Account + ":" + words[e.Kind] + path + e.Name
}

// ParseARN parses the ARN of an entity, of a kind with a word in ARNs. The path is not
// validated.
func ParseARN(text string) (account string, kind Kind, name string, ok bool) {
	rest, ok := strings.CutPrefix(text, arnPrefix)
	if !ok {
		return "", 0, "", false
	}
	account, rest, _ = strings.Cut(rest, ":")
	word, name, ok := strings.Cut(rest, "/")
	if !ok {
		return "", 0, "", false
	}
	for k, w := range words {
		if w == word {
			if k != Provider {
				name = name[strings.LastIndexByte(name, '/')+1:]
			}
			return account, k, name, name != ""
		}
	}
	return "", 0, "", false
}

// key is the lookup key of a name: names are case-insensitive.
func key(name string) string { return strings.ToLower(name) }

// clone copies an entity, including all parts that commands change.
func (e *Entity) clone() *Entity {
	c := *e
	c.Tags, c.Inline, c.Attached, c.Groups = slices.Clone(e.Tags), slices.Clone(e.Inline), slices.Clone(e.Attached), slices.Clone(e.Groups)
	if e.Role != nil {
		role := *e.Role
		c.Role = &role
	}
	if e.Policy != nil {
		p := *e.Policy
		p.Versions = slices.Clone(p.Versions)
		c.Policy = &p
	}
	if e.Provider != nil {
		p := *e.Provider
		p.ClientIDs, p.Thumbprints = slices.Clone(p.ClientIDs), slices.Clone(p.Thumbprints)
		c.Provider = &p
	}
	return &c
}

// FindInline is the document of an inline policy. Errors: ErrNoInline.
func (e *Entity) FindInline(name string) (document string, err error) {
	for _, p := range e.Inline {
		if p.Name == name {
			return p.Document, nil
		}
	}
	return "", ErrNoInline.With(words[e.Kind], name)
}

// DefaultVersion is the default version of a managed policy.
func (e *Entity) DefaultVersion() *Version { return e.Version(e.Policy.Default) }

// Version is a version of a managed policy; nil: there is none.
func (e *Entity) Version(number int) *Version {
	for i := range e.Policy.Versions {
		if v := &e.Policy.Versions[i]; v.Number == number {
			return v
		}
	}
	return nil
}

// TagMap are the entity's tags by key.
func (e *Entity) TagMap() map[string]string {
	if len(e.Tags) == 0 {
		return nil
	}
	tags := make(map[string]string, len(e.Tags))
	for _, t := range e.Tags {
		tags[t.Key] = t.Value
	}
	return tags
}
