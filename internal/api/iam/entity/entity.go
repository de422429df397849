// Package entity is shared by the operations on IAM's entities: it finds, creates, changes
// and lists entities, and validates names, paths and tags.
package entity

import (
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/iam"
)

// Empty is an answer without members.
type Empty struct{}

// Tag is a tag of an entity.
type Tag struct {
	Key   *string `wire:"required"`
	Value *string `wire:"required"`
}

// TagsOutput is a list of tags.
type TagsOutput struct {
	Tags        []Tag
	IsTruncated bool
	Marker      string
}

// Engine stores the identities of accounts; *identity.Module implements it. Its errors are of
// package fault.
type Engine interface {
	// Run runs a command on an account's identities, and returns when its reads and writes
	// are durable. A command that fails changes nothing.
	Run(account string, command func(a *iam.Account, now time.Time) error) error
	Read(account string, look func(a *iam.Account) error) error
}

// Store finds and changes entities.
type Store struct{ Engine Engine }

// PathOf is the path in a request; absent means the root.
func PathOf(path *string) string {
	if path == nil {
		return "/"
	}
	return *path
}

// ReadTags converts tags that were validated.
func ReadTags(tags []Tag) ([]iam.Tag, error) {
	all := make([]iam.Tag, 0, len(tags))
	for _, t := range tags {
		if strings.HasPrefix(strings.ToLower(*t.Key), "aws:") {
			return nil, fault.New(fault.InvalidInput, "Tag keys beginning with aws: are reserved for system use")
		}
		all = append(all, iam.Tag{Key: *t.Key, Value: *t.Value})
	}
	return all, nil
}

// ShownTags are tags in an answer.
func ShownTags(tags []iam.Tag) []Tag {
	all := make([]Tag, 0, len(tags))
	for _, t := range tags {
		all = append(all, Tag{&t.Key, &t.Value})
	}
	return all
}

// Create adds an entity, created now, and returns it as stored.
func (s *Store) Create(account string, e *iam.Entity) (made *iam.Entity, err error) {
	err = s.Engine.Run(account, func(a *iam.Account, now time.Time) error {
		e.Created = now.Truncate(time.Second)
		if e.Policy != nil {
			e.Policy.Updated, e.Policy.Versions[0].Created = e.Created, e.Created
		}
		if err := a.Create(e); err != nil {
			return err
		}
		made, err = a.Find(e.Kind, e.Name)
		return err
	})
	return made, err
}

// Find reads an entity.
func (s *Store) Find(account string, kind iam.Kind, name string) (e *iam.Entity, err error) {
	err = s.Engine.Read(account, func(a *iam.Account) error {
		e, err = a.Find(kind, name)
		return err
	})
	return e, err
}

// Change runs a command without an answer.
func (s *Store) Change(account string, command func(a *iam.Account, now time.Time) error) (*Empty, error) {
	return nil, s.Engine.Run(account, command)
}

// List returns the entities of a kind below a path.
func (s *Store) List(call *api.Call, kind iam.Kind, prefix *string) (all []*iam.Entity, err error) {
	err = s.Engine.Read(call.Account, func(a *iam.Account) error {
		all = a.List(kind, api.Deref(prefix))
		return nil
	})
	return all, err
}

// NameOf is the sort key of lists.
func NameOf(e **iam.Entity) string { return (*e).Name }

// Tag adds tags to an entity of any kind.
func (s *Store) Tag(call *api.Call, kind iam.Kind, name string, tags []Tag) (*Empty, error) {
	all, err := ReadTags(tags)
	if err != nil {
		return nil, err
	}
	return s.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Tag(kind, name, all) })
}

// Untag removes tags.
func (s *Store) Untag(call *api.Call, kind iam.Kind, name string, keys []string) (*Empty, error) {
	return s.Change(call.Account, func(a *iam.Account, _ time.Time) error { return a.Untag(kind, name, keys) })
}

// Tags lists the tags of an entity.
func (s *Store) Tags(call *api.Call, kind iam.Kind, name string, marker *string, limit *int) (*TagsOutput, error) {
	e, err := s.Find(call.Account, kind, name)
	if err != nil {
		return nil, err
	}
	return TagsOf(e, marker, limit)
}

// TagsOf are a page of the tags of an entity.
func TagsOf(e *iam.Entity, marker *string, limit *int) (*TagsOutput, error) {
	tags := ShownTags(e.Tags)
	sortTags(tags)
	cut, truncated, next, err := check.Page("tags", tags, func(t *Tag) string { return *t.Key }, marker, limit)
	if err != nil {
		return nil, err
	}
	return &TagsOutput{cut, truncated, next}, nil
}

func sortTags(tags []Tag) {
	slices.SortFunc(tags, func(a, b Tag) int { return strings.Compare(*a.Key, *b.Key) })
}
