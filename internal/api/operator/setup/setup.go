// Package setup shows the identities and the settings of a server.
package setup

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/api/operator/rest"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/shard/identity"
)

// Options are the dependencies of Setup.
type Options struct {
	Identities *identity.Module
	Config     config.Config
}

// Setup answers the operations on identities and settings.
type Setup struct{ Options }

// New makes a Setup.
func New(o Options) *Setup { return &Setup{o} }

// User is a user of the server's account, or of another.
type User struct {
	Name      string      `json:"name"`
	ARN       string      `json:"arn"`
	CreatedAt time.Time   `json:"createdAt"`
	Groups    []string    `json:"groups"`
	Policies  []string    `json:"policies" doc:"ARNs of managed ones that are attached, and names of inline ones."`
	Boundary  *string     `json:"boundary"`
	Keys      []AccessKey `json:"keys"`
}

// AccessKey is an access key without its secret, which is only shown at its creation.
type AccessKey struct {
	ID              string     `json:"id"`
	User            string     `json:"user" doc:"The user's name."`
	Active          bool       `json:"active"`
	CreatedAt       time.Time  `json:"createdAt"`
	LastUsedAt      *time.Time `json:"lastUsedAt" doc:"Null: no use of it is known."`
	LastUsedService *string    `json:"lastUsedService"`
}

// Role is a role.
type Role struct {
	Name              string     `json:"name"`
	ARN               string     `json:"arn"`
	Description       string     `json:"description"`
	CreatedAt         time.Time  `json:"createdAt"`
	Policies          []string   `json:"policies" doc:"ARNs of managed ones that are attached, and names of inline ones."`
	Boundary          *string    `json:"boundary"`
	MaxSessionSeconds int        `json:"maxSessionSeconds"`
	TrustsOthers      bool       `json:"trustsOthers" doc:"Whether others than services may assume it."`
	LastUsedAt        *time.Time `json:"lastUsedAt" doc:"Null: no use of it is known."`
}

// ListEntities asks for identities.
type ListEntities struct {
	Search  string `query:"search" max:"140" doc:"Part of the name, whatever its case."`
	Account string `query:"account" min:"12" max:"12" doc:"By default the server's."`
	Limit   int    `query:"limit" min:"1" max:"1000" default:"100"`
	Cursor  string `query:"cursor" max:"4096" doc:"next of the page before."`
}

// Users is a page of users, by name.
type Users struct {
	Users []User  `json:"users"`
	Next  *string `json:"next"`
}

// Roles is a page of roles, by name.
type Roles struct {
	Roles []Role  `json:"roles"`
	Next  *string `json:"next"`
}

// Keys is a page of access keys, ordered by user.
type Keys struct {
	Keys []AccessKey `json:"keys"`
	Next *string     `json:"next" doc:"A page has all keys of so many users as the limit says."`
}

// page calls f with the entities of a kind on a page, and returns the cursor of the next
// page.
func (s *Setup) page(in *ListEntities, kind iam.Kind, f func(a *iam.Account, e *iam.Entity)) (next *string, err error) {
	from, err := rest.After(in.Cursor)
	if err != nil {
		return nil, err
	}
	err = s.Identities.Read(cmp.Or(in.Account, s.Config.Account), func(a *iam.Account) error {
		n, last := 0, ""
		all := a.List(kind, "")
		all = slices.DeleteFunc(slices.Clone(all), func(e *iam.Entity) bool { return e.Name <= from || !rest.Matches(e.Name, in.Search) })
		slices.SortFunc(all, func(a, b *iam.Entity) int { return strings.Compare(a.Name, b.Name) })
		for _, e := range all {
			if n == in.Limit {
				break
			}
			f(a, e)
			n, last = n+1, e.Name
		}
		next = rest.Next(last, n < len(all))
		return nil
	})
	return next, err
}

// ListUsers lists users with their access keys.
func (s *Setup) ListUsers(_ context.Context, _ *rest.Call, in *ListEntities) (*Users, error) {
	out := &Users{Users: []User{}}
	next, err := s.page(in, iam.User, func(a *iam.Account, e *iam.Entity) {
		u := User{
			Name: e.Name, ARN: e.ARN(), CreatedAt: e.Created.UTC(), Groups: []string{}, Policies: policies(e), Boundary: rest.Optional(e.Boundary),
			Keys: s.keys(a, e),
		}
		for _, g := range a.GroupsOf(e) {
			u.Groups = append(u.Groups, g.Name)
		}
		out.Users = append(out.Users, u)
	})
	out.Next = next
	return out, err
}

// ListKeys lists access keys.
func (s *Setup) ListKeys(_ context.Context, _ *rest.Call, in *ListEntities) (*Keys, error) {
	out := &Keys{Keys: []AccessKey{}}
	next, err := s.page(in, iam.User, func(a *iam.Account, e *iam.Entity) { out.Keys = append(out.Keys, s.keys(a, e)...) })
	out.Next = next
	return out, err
}

// ListRoles lists roles.
func (s *Setup) ListRoles(_ context.Context, _ *rest.Call, in *ListEntities) (*Roles, error) {
	out := &Roles{Roles: []Role{}}
	next, err := s.page(in, iam.Role, func(_ *iam.Account, e *iam.Entity) {
		r := Role{
			Name: e.Name, ARN: e.ARN(), Description: e.Description, CreatedAt: e.Created.UTC(), Policies: policies(e), Boundary: rest.Optional(e.Boundary),
			MaxSessionSeconds: e.Role.MaxSession, TrustsOthers: iam.TrustsOthers(e.Role.Trust),
		}
		if use, ok := s.Identities.LastUse(e.ID); ok {
			r.LastUsedAt = rest.Moment(use.At)
		}
		out.Roles = append(out.Roles, r)
	})
	out.Next = next
	return out, err
}

func (s *Setup) keys(a *iam.Account, e *iam.Entity) []AccessKey {
	all := []AccessKey{}
	for _, k := range a.Keys(e) {
		shown := AccessKey{ID: k.ID, User: e.Name, Active: k.Active, CreatedAt: k.Created.UTC()}
		if use, ok := s.Identities.LastUse(k.ID); ok {
			shown.LastUsedAt, shown.LastUsedService = rest.Moment(use.At), rest.Optional(use.Service)
		}
		all = append(all, shown)
	}
	return all
}

func policies(e *iam.Entity) []string {
	all := slices.Clone(e.Attached)
	for _, p := range e.Inline {
		all = append(all, p.Name)
	}
	if all == nil {
		return []string{}
	}
	return all
}

// ListSettings asks for the settings.
type ListSettings struct{}

// Settings are the flags of the server.
type Settings struct {
	Settings []Setting `json:"settings"`
}

// Setting is a flag of the server.
type Setting struct {
	Name    string `json:"name" doc:"As a flag has it, without the dashes."`
	Value   string `json:"value" doc:"What addresses have of user names, passwords and parameters is masked. Secrets are in files, of which this is the name."`
	Default string `json:"default" doc:"Empty: none, or another one in production than in development."`
	Help    string `json:"help"`
}

// ListSettings lists the settings.
func (s *Setup) ListSettings(_ context.Context, _ *rest.Call, _ *ListSettings) (*Settings, error) {
	out := &Settings{Settings: []Setting{}}
	for _, one := range s.Config.Flags() {
		out.Settings = append(out.Settings, Setting(one))
	}
	return out, nil
}
