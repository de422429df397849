package identity

import (
	"strings"

	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
)

// Bind finds the unique ids of the users and roles that a trust policy names, by their
// ARNs. It fails with iam.ErrDocument if one is not there.
func (m *Module) Bind(document string) (bound map[string]string, err error) {
	bound = map[string]string{}
	iam.Principals(document, func(arn string) {
		id := m.IDOf(arn)
		if id == "" && err == nil {
			err = iam.ErrDocument.With(`Invalid principal in policy: "AWS":"` + arn + `"`)
		}
		bound[arn] = id
	})
	return bound, err
}

// IDOf is the unique id of the user or role that an ARN names; empty if there is none.
func (m *Module) IDOf(arn string) (id string) {
	account, _, _, ok := iam.ParseARN(arn)
	if !ok {
		return ""
	}
	m.peek(account, func(a *iam.Account) {
		if e := a.ByARN(arn); e != nil {
			id = e.ID
		}
	})
	return id
}

// ShownTrust is a role's trust policy as it stands: who was named and is not there any
// more, or no longer under that name, stands with the unique id, which is nobody else's.
func (m *Module) ShownTrust(role *iam.Entity) string {
	document := role.Role.Trust
	for arn, id := range role.Role.Bound {
		if m.IDOf(arn) != id {
			document = strings.ReplaceAll(document, `"`+arn+`"`, `"`+id+`"`)
		}
	}
	return document
}

// TrustOf is a role's trust policy, compiled.
func (m *Module) TrustOf(role *iam.Entity) (*policy.Policy, error) {
	document := m.ShownTrust(role)
	if p, ok := m.policies.documents.Get(trustMark + document); ok {
		return p, nil
	}
	p, err := policy.ParseTrust(document)
	if err == nil {
		m.policies.documents.Add(trustMark+document, p)
	}
	return p, err
}

// trustMark tells trust policies from others in the cache.
const trustMark = "trust\x00"

// RoleOf is the role that an ARN names, of any account; nil if there is none.
func (m *Module) RoleOf(arn string) (role *iam.Entity) {
	account, kind, _, ok := iam.ParseARN(arn)
	if !ok || kind != iam.Role {
		return nil
	}
	m.peek(account, func(a *iam.Account) { role = a.ByARN(arn) })
	return role
}

// CheckPolicy refuses a document, whose elements were checked, that the evaluator cannot
// read: an operator or an operand that there is not.
func CheckPolicy(form iam.Form, document string) error {
	parse := policy.ParseIdentity
	if form == iam.Trust {
		parse = policy.ParseTrust
	}
	if _, err := parse(document); err != nil {
		return iam.ErrDocument.With("Syntax errors in policy.")
	}
	return nil
}
