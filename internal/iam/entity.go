package iam

import (
	"slices"
	"strings"
	"time"
)

// Kind is what an Entity is.
type Kind byte

// The kinds, as records have them.
const (
	User     Kind = 'u'
	Group    Kind = 'g'
	Role     Kind = 'r'
	Policy   Kind = 'p' // a managed policy of the account
	Provider Kind = 'o' // an OpenID Connect provider
	Profile  Kind = 'i' // an instance profile
	Alias    Kind = 'a' // of the account
)

// Kinds are all of them.
var Kinds = []Kind{User, Group, Role, Policy, Provider, Profile, Alias}

// Entity is anything that has a name in an account. It does not change once an account
// has it.
type Entity struct {
	Kind        Kind      `json:"-"`
	Account     string    `json:"-"`
	Path        string    `json:"path,omitempty"` // begins and ends with a slash
	Name        string    `json:"name"`           // of a provider its URL without https://
	ID          string    `json:"id,omitempty"`   // unique: no later entity of the name has it
	Created     time.Time `json:"created"`
	Description string    `json:"description,omitempty"`
	Tags        []Tag     `json:"tags,omitempty"`

	// Of users, groups and roles.
	Inline   []Inline `json:"inline,omitempty"`   // in the order of their names
	Attached []string `json:"attached,omitempty"` // ARNs of managed policies, in the order in which they were attached
	Boundary string   `json:"boundary,omitempty"` // the ARN of a managed policy
	// Groups are a user's, by their unique ids.
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
	// Trust is the trust policy, with unique ids in the place of users' and roles' ARNs.
	Trust      string `json:"trust"`
	MaxSession int    `json:"maxSession"` // in seconds
}

// PolicyPart is what only managed policies have.
type PolicyPart struct {
	Versions []Version `json:"versions"` // in the order of their numbers
	Default  int       `json:"default"`  // a number of one of them
	Latest   int       `json:"latest"`   // the highest number that was ever given
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

// words are how ARNs name the kinds.
var words = map[Kind]string{
	User: "user", Group: "group", Role: "role", Policy: "policy", Provider: "oidc-provider", Profile: "instance-profile",
}

const arnPrefix = "arn:aws:iam::"

// ARN is the entity's name for the world.
func (e *Entity) ARN() string {
	path := e.Path
	if e.Kind == Provider {
		path = "/"
	}
	return arnPrefix + e.Account + ":" + words[e.Kind] + path + e.Name
}

// ParseARN takes the ARN of an entity apart, for a kind that has a word in ARNs. The path
// is not looked at beyond its place.
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

// key is what an entity is found by: names differ by more than case.
func key(name string) string { return strings.ToLower(name) }

// clone copies an entity as deep as commands change it.
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

// InlineDocument is the document of an inline policy.
func (e *Entity) InlineDocument(name string) (document string, ok bool) {
	for _, p := range e.Inline {
		if p.Name == name {
			return p.Document, true
		}
	}
	return "", false
}

// FindInline is InlineDocument with the refusal of what is not there.
func (e *Entity) FindInline(name string) (document string, err error) {
	document, ok := e.InlineDocument(name)
	if !ok {
		return "", ErrNoInline.With(words[e.Kind], name)
	}
	return document, nil
}

// DefaultVersion is the version of a managed policy that counts.
func (e *Entity) DefaultVersion() *Version { return e.Version(e.Policy.Default) }

// Version is a version of a managed policy; nil if there is none of the number.
func (e *Entity) Version(number int) *Version {
	for i := range e.Policy.Versions {
		if v := &e.Policy.Versions[i]; v.Number == number {
			return v
		}
	}
	return nil
}

// TagMap are the entity's tags by their keys.
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
