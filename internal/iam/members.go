package iam

import (
	"slices"
	"strings"
)

// MaxGroups bounds the groups of a user.
const MaxGroups = 10

// AddToGroup makes a user a member of a group; it is idempotent.
func (a *Account) AddToGroup(group, user string) error {
	g, err := a.Find(Group, group)
	if err != nil {
		return err
	}
	return a.edit(User, user, func(u *Entity) error {
		if slices.Contains(u.Groups, g.ID) {
			return nil
		}
		if len(u.Groups) >= MaxGroups {
			return ErrQuota.With("GroupsPerUser", MaxGroups)
		}
		u.Groups = append(u.Groups, g.ID)
		return nil
	})
}

// RemoveFromGroup ends a membership; it is idempotent.
func (a *Account) RemoveFromGroup(group, user string) error {
	if _, err := a.Find(User, user); err != nil {
		return err
	}
	g, err := a.Find(Group, group)
	if err != nil {
		return err
	}
	return a.edit(User, user, func(u *Entity) error {
		u.Groups = slices.DeleteFunc(u.Groups, func(id string) bool { return id == g.ID })
		return nil
	})
}

// Members are the users of a group, by its unique id, ordered by name.
func (a *Account) Members(group string) []*Entity {
	var all []*Entity
	for _, u := range a.entities[User] {
		if slices.Contains(u.Groups, group) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(x, y *Entity) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// GroupsOf are the groups of a user, ordered by name.
func (a *Account) GroupsOf(u *Entity) []*Entity {
	all := make([]*Entity, 0, len(u.Groups))
	for _, id := range u.Groups {
		if g := a.byID[id]; g != nil {
			all = append(all, g)
		}
	}
	slices.SortFunc(all, func(x, y *Entity) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// AddToProfile adds a role to an instance profile, which can have one.
func (a *Account) AddToProfile(profile, role string) error {
	return a.edit(Profile, profile, func(p *Entity) error {
		r, err := a.Find(Role, role)
		switch {
		case err != nil:
			return err
		case p.Profile != "":
			return ErrQuota.With("InstanceSessionsPerInstanceProfile", 1)
		}
		p.Profile = r.ID
		return nil
	})
}

// RemoveFromProfile removes a role from an instance profile.
func (a *Account) RemoveFromProfile(profile, role string) error {
	return a.edit(Profile, profile, func(p *Entity) error {
		r, err := a.Find(Role, role)
		switch {
		case err != nil:
			return err
		case p.Profile != r.ID:
			return ErrNotInProfile.With(r.Name, p.Name)
		}
		p.Profile = ""
		return nil
	})
}

// ProfilesOf are the instance profiles of a role, by its unique id.
func (a *Account) ProfilesOf(role string) []*Entity {
	var all []*Entity
	for _, p := range a.entities[Profile] {
		if p.Profile == role {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y *Entity) int { return strings.Compare(x.Name, y.Name) })
	return all
}
