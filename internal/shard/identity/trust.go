package identity

import (
	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
)

// TrustOf is a role's trust policy, compiled.
func (m *Module) TrustOf(role *iam.Entity) (*policy.Policy, error) {
	document := role.Role.Trust
	if p, ok := m.policies.documents.Get(trustMark + document); ok {
		return p, nil
	}
	p, err := policy.ParseTrust(document)
	if err == nil {
		m.policies.documents.Add(trustMark+document, p)
	}
	return p, err
}

// trustMark distinguishes trust policies from others in the cache.
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

// CheckPolicy refuses a document, whose elements were checked, if the evaluator cannot compile
// it: it has an unknown operator or a bad operand.
func CheckPolicy(form iam.Form, document string) error {
	parse := policy.ParseIdentity
	if form == iam.Trust {
		parse = policy.ParseTrust
	}
	if _, err := parse(document); err != nil {
		return iam.ErrSyntax
	}
	return nil
}
