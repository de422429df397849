package function

import (
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
)

// Alias is an alias of one or two versions. Callers read it; only commands change it.
type Alias struct {
	Name        string `json:"-"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	// Other is the second version, with the share Weight of the invocations.
	Other    string  `json:"other,omitempty"`
	Weight   float64 `json:"weight,omitempty"` // 0 to 1
	Revision string  `json:"revision"`
}

func compareAliases(a, b *Alias) int { return strings.Compare(a.Name, b.Name) }

// pick is the version for an invocation with a draw in [0, 1).
func (a *Alias) pick(draw float64) string {
	if a.Other != "" && draw < a.Weight {
		return a.Other
	}
	return a.Version
}

// Alias finds an alias by its name.
func (f *Function) Alias(name string) (*Alias, bool) {
	list := f.aliases.From(func(a *Alias) bool { return a.Name < name })
	if len(list) == 0 || list[0].Name != name {
		return nil, false
	}
	return list[0], true
}

// aliasesOf are the names of the aliases of a version.
func (f *Function) aliasesOf(version string) (names []string) {
	for _, a := range f.aliases.Items {
		if a.Version == version || a.Other == version {
			names = append(names, a.Name)
		}
	}
	return names
}

// Routing is the second version of an alias; zero: none.
type Routing struct {
	Version string
	Weight  float64 // 0 to 1
}

// CreateAlias is the command that creates an alias.
type CreateAlias struct {
	Function    arn.ARN
	Name        string
	Version     string
	Description string
	Routing     Routing
	Revision    string
}

// CreateAlias creates an alias. Errors: ResourceNotFound for an unknown function or version;
// ResourceConflict for an existing name; InvalidParameter for an invalid routing.
func (s *State) CreateAlias(cmd CreateAlias, b *mutation.Batch) (*Alias, error) {
	f, err := s.function(cmd.Function)
	if err != nil {
		return nil, ErrNotFound.With(cmd.Function.Qualify(cmd.Version))
	}
	if _, ok := f.Alias(cmd.Name); ok {
		return nil, ErrAliasExists.With(cmd.Function.Qualify(cmd.Name))
	}
	a := &Alias{
		Name: cmd.Name, Version: cmd.Version, Description: cmd.Description,
		Other: cmd.Routing.Version, Weight: cmd.Routing.Weight, Revision: cmd.Revision,
	}
	if err := f.checkAlias(a); err != nil {
		return nil, err
	}
	f.aliases.Add(a)
	s.putAlias(b, f, a)
	return a, nil
}

// UpdateAlias is the command that changes an alias; nil members stay unchanged.
type UpdateAlias struct {
	Function    arn.ARN
	Name        string
	RevisionID  string // must be the alias's; empty: any
	Version     *string
	Description *string
	Routing     *Routing
	Revision    string
}

// UpdateAlias changes an alias. Errors: as CreateAlias, ResourceNotFound for an unknown
// alias, and PreconditionFailed.
func (s *State) UpdateAlias(cmd UpdateAlias, b *mutation.Batch) (*Alias, error) {
	f, err := s.function(cmd.Function)
	if err != nil {
		return nil, err
	}
	a, ok := f.Alias(cmd.Name)
	if !ok {
		return nil, ErrAliasUnknown.With(cmd.Function.Qualify(cmd.Name))
	}
	if err := checkRevision(cmd.RevisionID, a.Revision); err != nil {
		return nil, err
	}
	changed := *a
	if cmd.Version != nil {
		changed.Version = *cmd.Version
	}
	if cmd.Description != nil {
		changed.Description = *cmd.Description
	}
	if cmd.Routing != nil {
		changed.Other, changed.Weight = cmd.Routing.Version, cmd.Routing.Weight
	}
	if err := f.checkAlias(&changed); err != nil {
		return nil, err
	}
	changed.Revision = cmd.Revision
	*a = changed
	s.putAlias(b, f, a)
	return a, nil
}

// FindAlias finds an alias. Errors: ResourceNotFound.
func (s *State) FindAlias(function arn.ARN, name string) (*Function, *Alias, error) {
	f, err := s.function(function)
	if err != nil {
		return nil, nil, err
	}
	a, ok := f.Alias(name)
	if !ok {
		return nil, nil, ErrAliasNotFound.With(function.Qualify(name))
	}
	return f, a, nil
}

// DeleteAlias deletes an alias, if it exists, with its policy and its URL. Errors: ResourceNotFound for an
// unknown function.
func (s *State) DeleteAlias(function arn.ARN, name string, b *mutation.Batch) error {
	f, err := s.function(function)
	if err != nil {
		return err
	}
	a, ok := f.Alias(name)
	if !ok {
		return nil
	}
	f.aliases.Remove(a)
	b.Delete(s.aliasKey(f, name))
	_, policed := f.policies[name]
	if event, url := f.forgetEventInvoke(name), s.forgetURL(f, name); policed || event || url {
		delete(f.policies, name)
		s.put(b, f)
	}
	return nil
}

// checkAlias refuses an alias of unknown versions, or with an invalid routing.
func (f *Function) checkAlias(a *Alias) error {
	if _, ok := f.Version(a.Version); !ok {
		return ErrNotFound.With(f.ARN.Qualify(a.Version))
	}
	switch {
	case a.Other == "":
		return nil
	case a.Version == Latest:
		return ErrRoutingOfLatest
	case a.Other == a.Version:
		return ErrRoutingToItself.With(a.Other, a.Other)
	}
	if _, ok := f.Version(a.Other); !ok {
		return ErrNotFound.With(f.ARN.Qualify(a.Other))
	}
	return nil
}

// Aliases is a page of a function's aliases, ordered by name: up to limit after the name
// after; only those of version, unless it is empty. more says that there are further ones.
// Errors: ResourceNotFound.
func (s *State) Aliases(function arn.ARN, version, after string, limit int) (page []Alias, more bool, err error) {
	f, err := s.function(function)
	if err != nil {
		return nil, false, err
	}
	of := f.aliasesOf(version)
	for _, a := range f.aliases.From(func(a *Alias) bool { return a.Name <= after }) {
		if version != "" && !slices.Contains(of, a.Name) {
			continue
		}
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, *a)
	}
	return page, false, nil
}
