package iam

import (
	"slices"
	"strings"
)

// Account has the identities of an account.
type Account struct {
	ID       string // 12 digits
	entities map[Kind]map[string]*Entity
	byID     map[string]*Entity
	keys     map[string]*AccessKey
	ofUser   map[string][]string // access key ids by their user's unique id, ordered by creation
	attached map[string]int      // counts of entities by the ARN of an attached managed policy of the account
	capped   map[string]int      // counts of entities by the ARN of their boundary
	changes  []Change
}

// Change is the value before and after a command; nil: none.
type Change struct {
	Before, After       *Entity
	BeforeKey, AfterKey *AccessKey
}

// NewAccount makes an account without identities.
func NewAccount(id string) *Account {
	a := &Account{
		ID: id, entities: map[Kind]map[string]*Entity{}, byID: map[string]*Entity{}, keys: map[string]*AccessKey{},
		ofUser: map[string][]string{}, attached: map[string]int{}, capped: map[string]int{},
	}
	for _, k := range Kinds {
		a.entities[k] = map[string]*Entity{}
	}
	return a
}

// Load loads an entity. All entities are loaded before the first command.
func (a *Account) Load(e *Entity) {
	e.Account = a.ID
	a.swap(nil, e)
}

// LoadKey is Load for an access key.
func (a *Account) LoadKey(k *AccessKey) { a.swapKey(nil, k) }

// Changes returns the changes since the last call of Changes or Revert, in order.
func (a *Account) Changes() []Change {
	changes := a.changes
	a.changes = nil
	return changes
}

// Grows reports whether there were creations since the last call of Changes or Revert.
func (a *Account) Grows() bool {
	return slices.ContainsFunc(a.changes, func(c Change) bool {
		return c.Before == nil && c.After != nil || c.BeforeKey == nil && c.AfterKey != nil
	})
}

// Revert undoes the changes since the last call of Changes or Revert.
func (a *Account) Revert() {
	for _, c := range slices.Backward(a.changes) {
		a.swap(c.After, c.Before)
		a.swapKey(c.AfterKey, c.BeforeKey)
	}
	a.changes = nil
}

// Empty reports whether the account has no identities.
func (a *Account) Empty() bool {
	for _, all := range a.entities {
		if len(all) > 0 {
			return false
		}
	}
	return len(a.keys) == 0
}

// put replaces, creates or deletes an entity.
func (a *Account) put(before, after *Entity) {
	a.changes = append(a.changes, Change{Before: before, After: after})
	a.swap(before, after)
}

func (a *Account) putKey(before, after *AccessKey) {
	a.changes = append(a.changes, Change{BeforeKey: before, AfterKey: after})
	a.swapKey(before, after)
}

func (a *Account) swap(before, after *Entity) {
	if before != nil {
		delete(a.entities[before.Kind], key(before.Name))
		delete(a.byID, before.ID)
		a.count(before, -1)
	}
	if after != nil {
		a.entities[after.Kind][key(after.Name)] = after
		if after.ID != "" {
			a.byID[after.ID] = after
		}
		a.count(after, 1)
	}
}

func (a *Account) count(e *Entity, n int) {
	for _, arn := range e.Attached {
		if a.attached[arn] += n; a.attached[arn] == 0 {
			delete(a.attached, arn)
		}
	}
	if e.Boundary != "" {
		if a.capped[e.Boundary] += n; a.capped[e.Boundary] == 0 {
			delete(a.capped, e.Boundary)
		}
	}
}

// Attachments counts the entities of the account that a managed policy is attached to, and
// those that it is the boundary of.
func (a *Account) Attachments(arn string) (attached, boundaries int) {
	return a.attached[arn], a.capped[arn]
}

func (a *Account) swapKey(before, after *AccessKey) {
	if before != nil {
		delete(a.keys, before.ID)
		if after == nil || after.ID != before.ID {
			a.ofUser[before.User] = slices.DeleteFunc(slices.Clone(a.ofUser[before.User]), func(id string) bool { return id == before.ID })
			if len(a.ofUser[before.User]) == 0 {
				delete(a.ofUser, before.User)
			}
		}
	}
	if after != nil {
		a.keys[after.ID] = after
		if ids := a.ofUser[after.User]; !slices.Contains(ids, after.ID) {
			ids = append(slices.Clone(ids), after.ID)
			slices.SortFunc(ids, func(x, y string) int { return a.keys[x].Created.Compare(a.keys[y].Created) })
			a.ofUser[after.User] = ids
		}
	}
}

// Find finds an entity by name; it fails with the kind's error for an unknown one.
func (a *Account) Find(kind Kind, name string) (*Entity, error) {
	if e := a.entities[kind][key(name)]; e != nil {
		return e, nil
	}
	return nil, missing[kind].With(name)
}

// ByID is the entity with a unique id; nil: there is none.
func (a *Account) ByID(id string) *Entity { return a.byID[id] }

// ByARN is the account's entity with an ARN; nil: there is none.
func (a *Account) ByARN(arn string) *Entity {
	_, kind, name, ok := ParseARN(arn)
	if !ok {
		return nil
	}
	if e := a.entities[kind][key(name)]; e != nil && e.ARN() == arn {
		return e
	}
	return nil
}

// List returns the entities of a kind below a path, ordered by name. An empty prefix means
// all.
func (a *Account) List(kind Kind, pathPrefix string) []*Entity {
	var all []*Entity
	for _, e := range a.entities[kind] {
		if pathPrefix == "" || strings.HasPrefix(e.Path, pathPrefix) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y *Entity) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// Count is the number of entities of a kind.
func (a *Account) Count(kind Kind) int { return len(a.entities[kind]) }

// Quotas of an account. Source: IAM and AWS STS quotas.
var quotas = map[Kind]int{User: 5000, Group: 300, Role: 1000, Policy: 1500, Provider: 100, Profile: 1000, Alias: 1}

var quotaNames = map[Kind]string{
	User: "UsersPerAccount", Group: "GroupsPerAccount", Role: "RolesPerAccount", Policy: "PoliciesPerAccount",
	Provider: "OpenIDConnectProvidersPerAccount", Profile: "InstanceProfilesPerAccount", Alias: "AliasesPerAccount",
}

// Quota bounds an account's entities of a kind.
func Quota(kind Kind) int { return quotas[kind] }

// Create adds an entity, and sets its Account. Errors: ErrTaken…, ErrQuota, those of tags and
// documents' sizes.
func (a *Account) Create(e *Entity) error {
	e = e.clone()
	e.Account = a.ID
	if a.entities[e.Kind][key(e.Name)] != nil {
		return taken[e.Kind].With(e.Name)
	}
	if len(a.entities[e.Kind]) >= quotas[e.Kind] {
		return ErrQuota.With(quotaNames[e.Kind], quotas[e.Kind])
	}
	if err := checkTags(e.Kind, e.Tags); err != nil {
		return err
	}
	if e.Role != nil {
		if err := CheckTrustSize(e.Role.Trust); err != nil {
			return err
		}
	}
	if e.Policy != nil {
		if err := checkManagedSize(e.Policy.Versions[0].Document); err != nil {
			return err
		}
	}
	if e.Boundary != "" {
		if _, err := a.managed(e.Boundary); err != nil {
			return ErrNoBoundaryPolicy.With(e.Boundary)
		}
	}
	a.put(nil, e)
	return nil
}

// edit replaces an entity by a changed copy.
func (a *Account) edit(kind Kind, name string, f func(e *Entity) error) error {
	before, err := a.Find(kind, name)
	if err != nil {
		return err
	}
	after := before.clone()
	if err := f(after); err != nil {
		return err
	}
	a.put(before, after)
	return nil
}

// Rename changes the name, path, or both of a user or group; empty: unchanged.
func (a *Account) Rename(kind Kind, name, newName, newPath string) error {
	return a.edit(kind, name, func(e *Entity) error {
		if newName != "" && newName != e.Name {
			if other := a.entities[kind][key(newName)]; other != nil && other.ID != e.ID {
				return taken[kind].With(newName)
			}
			e.Name = newName
		}
		if newPath != "" {
			e.Path = newPath
		}
		return nil
	})
}

// Delete deletes an entity without dependents. Errors: those of its dependents.
func (a *Account) Delete(kind Kind, name string) error {
	e, err := a.Find(kind, name)
	if err != nil {
		return err
	}
	if err := a.inTheWay(e); err != nil {
		return err
	}
	a.put(e, nil)
	return nil
}

func (a *Account) inTheWay(e *Entity) error {
	switch {
	case e.Kind == User && len(a.ofUser[e.ID]) > 0:
		return ErrHasKeys
	case e.Kind == Role && len(a.ProfilesOf(e.ID)) > 0, e.Kind == Profile && e.Profile != "":
		return ErrHasProfiles
	case len(e.Attached) > 0:
		return ErrHasAttached
	case len(e.Inline) > 0:
		return ErrHasInline
	case len(e.Groups) > 0, e.Kind == Group && len(a.Members(e.ID)) > 0:
		return ErrHasMembers
	case e.Kind == Policy && (a.attached[e.ARN()] > 0 || a.capped[e.ARN()] > 0):
		return ErrIsAttached
	case e.Policy != nil && len(e.Policy.Versions) > 1:
		return ErrHasVersions
	}
	return nil
}

// Describe changes a role; nil: unchanged.
func (a *Account) Describe(name string, description *string, maxSession *int) error {
	return a.edit(Role, name, func(e *Entity) error {
		if description != nil {
			e.Description = *description
		}
		if maxSession != nil {
			e.Role.MaxSession = *maxSession
		}
		return nil
	})
}

// SetTrust replaces a role's trust policy.
func (a *Account) SetTrust(name, document string) error {
	if err := CheckTrustSize(document); err != nil {
		return err
	}
	return a.edit(Role, name, func(e *Entity) error {
		e.Role.Trust = document
		return nil
	})
}

// MaxTags is how many tags an entity may have.
const MaxTags = 50

// Tag adds tags to an entity, or replaces those with the same keys.
func (a *Account) Tag(kind Kind, name string, tags []Tag) error {
	return a.edit(kind, name, func(e *Entity) error {
		if err := checkTags(kind, tags); err != nil {
			return err
		}
		for _, t := range tags {
			// The latest spelling is kept.
			if i := slices.IndexFunc(e.Tags, func(old Tag) bool { return sameKey(kind, old.Key, t.Key) }); i >= 0 {
				e.Tags[i] = t
			} else {
				e.Tags = append(e.Tags, t)
			}
		}
		if len(e.Tags) > MaxTags {
			return ErrTooManyTags
		}
		return nil
	})
}

// sameKey reports whether two keys are equal. Those of users and roles are case-insensitive.
func sameKey(kind Kind, a, b string) bool {
	if kind == User || kind == Role {
		return strings.EqualFold(a, b)
	}
	return a == b
}

// Untag removes tags; unknown keys are ignored.
func (a *Account) Untag(kind Kind, name string, keys []string) error {
	return a.edit(kind, name, func(e *Entity) error {
		e.Tags = slices.DeleteFunc(e.Tags, func(t Tag) bool {
			return slices.ContainsFunc(keys, func(k string) bool { return sameKey(kind, k, t.Key) })
		})
		return nil
	})
}

var titles = map[Kind]string{User: "User", Group: "Group", Role: "Role", Policy: "Policy", Provider: "OpenIDConnectProvider", Profile: "InstanceProfile"}

func checkTags(kind Kind, tags []Tag) error {
	if len(tags) > MaxTags {
		return ErrTooManyTags
	}
	for i, t := range tags {
		switch {
		case !slices.ContainsFunc(tags[:i], func(other Tag) bool { return sameKey(kind, t.Key, other.Key) }):
		case kind == User || kind == Role:
			return ErrTagTwice
		default:
			return ErrSameTag
		}
	}
	return nil
}
