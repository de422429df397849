package identity

import (
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
)

// An administrator can give itself any permission of its account: it is a user with an active
// access key, or a role that principals other than services may assume, whose policies allow
// iam:AttachUserPolicy and iam:AttachRolePolicy on every resource without a condition. The
// account's root is one, too, but does not count here: its key is kept offline, and is needed
// only when all other administrators are lost.

// administrator finds the unique id of an administrator, preferably the known one; empty: there
// is none. The caller has the lock.
func (m *Module) administrator(a *iam.Account, known string) string {
	if e := a.ByID(known); known != "" && e != nil && m.administers(a, e) {
		return known
	}
	for _, kind := range []iam.Kind{iam.User, iam.Role} {
		for _, e := range a.List(kind, "") {
			if m.administers(a, e) {
				return e.ID
			}
		}
	}
	return ""
}

func (m *Module) administers(a *iam.Account, e *iam.Entity) bool {
	sources := PolicySources(a, e)
	if len(sources) == 0 || !comesIn(a, e) {
		return false
	}
	var p policy.Policies
	for _, s := range sources {
		compiled, err := m.compile(s.Document)
		if err != nil {
			return false
		}
		p.Identity = append(p.Identity, compiled)
	}
	if e.Boundary != "" {
		boundary, err := a.Managed(e.Boundary)
		if err != nil {
			return false
		}
		if p.Boundary, err = m.compile(boundary.DefaultVersion().Document); err != nil {
			return false
		}
	}
	who := &caller.Caller{Kind: caller.User, Account: a.ID, ID: e.ID, Name: e.Name, ARN: e.ARN()}
	for action, resource := range map[string]string{"iam:AttachUserPolicy": ":user/any", "iam:AttachRolePolicy": ":role/any"} {
		decided := policy.Decide(&policy.Request{Caller: who, Owner: a.ID, Action: action, Resource: "arn:aws:iam::" + a.ID + resource}, &p)
		if !decided.Allowed() {
			return false
		}
	}
	return true
}

// comesIn reports whether a user has an active access key, or somebody can assume a role.
func comesIn(a *iam.Account, e *iam.Entity) bool {
	if e.Kind == iam.Role {
		return iam.TrustsOthers(e.Role.Trust)
	}
	for _, k := range a.Keys(e) {
		if k.Active {
			return true
		}
	}
	return false
}

// lostAdministrator runs a change, and reports that it has removed the last administrator. The
// caller has the lock.
func (m *Module) lostAdministrator(a *iam.Account, change func() error) (lost bool, err error) {
	if m.orphaned == nil {
		return false, change()
	}
	before := m.administrator(a, m.administrators[a.ID])
	if err := change(); err != nil {
		return false, err
	}
	after := m.administrator(a, before)
	m.administrators[a.ID] = after
	return before != "" && after == "", nil
}
