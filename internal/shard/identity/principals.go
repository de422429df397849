package identity

import (
	"regexp"
	"strings"

	"godwit.dev/godwit/internal/iam"
	"godwit.dev/godwit/internal/policy"
)

// BindPolicy replaces the ARNs of users, roles and roles' sessions in a policy by unique ids.
// unknown is the first name that does not exist; it stays.
func (m *Module) BindPolicy(document string) (bound, unknown string) {
	return bindPolicy(document, m.BindPrincipal)
}

func bindPolicy(document string, bind func(name string) (id string, known bool)) (bound, unknown string) {
	bound = policy.MapPrincipals(document, func(name string) string {
		id, known := bind(name)
		if !known && unknown == "" {
			unknown = name
		}
		return id
	})
	return bound, unknown
}

// ShowPolicy reverses BindPolicy. Deleted identities stay unique ids.
func (m *Module) ShowPolicy(document string) string {
	if !strings.Contains(document, iam.PrefixUser) && !strings.Contains(document, iam.PrefixRole) {
		return document
	}
	return policy.MapPrincipals(document, m.ShowPrincipal)
}

// sessionARN matches the ARN of a role's session, and captures its account, role and name.
var sessionARN = regexp.MustCompile(`^arn:aws:sts::([0-9]{12}):assumed-role/([^/]+)/([\w+=,.@-]{2,64})$`)

// BindPrincipal is the unique id of the user, role or role's session that an ARN names; any
// other name is its own id. known is false if the user or role, or the given id, does not
// exist, and for groups, which are no principals.
func (m *Module) BindPrincipal(name string) (id string, known bool) {
	if of := sessionARN.FindStringSubmatch(name); of != nil {
		m.peek(of[1], func(a *iam.Account) {
			if role, err := a.Find(iam.Role, of[2]); err == nil {
				id, known = role.ID+":"+of[3], true
			}
		})
		if !known {
			id = name
		}
		return id, known
	}
	account, kind, _, ok := iam.ParseARN(name)
	if !ok || kind != iam.User && kind != iam.Role {
		of, _, _ := strings.Cut(name, ":")
		return name, !isGroup(name) && (!isID(of) || m.byID(of) != nil)
	}
	m.peek(account, func(a *iam.Account) {
		if e := a.ByARN(name); e != nil {
			id, known = e.ID, true
		}
	})
	if !known {
		id = name
	}
	return id, known
}

// ShowPrincipal reverses BindPrincipal. Deleted identities stay unique ids.
func (m *Module) ShowPrincipal(id string) string {
	of, session, isSession := strings.Cut(id, ":")
	if !isID(of) {
		return id
	}
	e := m.byID(of)
	switch {
	case e == nil:
		return id
	case isSession:
		return RoleSessionARN(e.Account, e.Name, session)
	default:
		return e.ARN()
	}
}

// isGroup reports whether a name is the ARN of a group.
func isGroup(name string) bool {
	_, kind, _, ok := iam.ParseARN(name)
	return ok && kind == iam.Group
}

// isID reports whether a text has the form of a user's or role's unique id.
func isID(text string) bool {
	_, ok := iam.AccountOf(text)
	return ok && (strings.HasPrefix(text, iam.PrefixUser) || strings.HasPrefix(text, iam.PrefixRole))
}

// byID is the user or role with a unique id; nil if it does not exist.
func (m *Module) byID(id string) (e *iam.Entity) {
	account, _ := iam.AccountOf(id)
	m.peek(account, func(a *iam.Account) { e = a.ByID(id) })
	return e
}

// TagsOf are the tags of the user or role that an ARN names; none if it does not exist.
func (m *Module) TagsOf(arn string) (tags map[string]string) {
	account, _, _, ok := iam.ParseARN(arn)
	if !ok {
		return nil
	}
	m.peek(account, func(a *iam.Account) {
		if e := a.ByARN(arn); e != nil {
			tags = e.TagMap()
		}
	})
	return tags
}

// Principals are the principals that resource policies and grants may name. If IAM is not
// enforced, they may name users and roles that do not exist.
type Principals struct {
	*Module

	Enforced bool
}

// BindPolicy is the module's; unknown is at most a group if IAM is not enforced.
func (p Principals) BindPolicy(document string) (bound, unknown string) {
	return bindPolicy(document, p.BindPrincipal)
}

// BindPrincipal is the module's; all but groups are known if IAM is not enforced.
func (p Principals) BindPrincipal(name string) (id string, known bool) {
	id, known = p.Module.BindPrincipal(name)
	return id, known || !p.Enforced && !isGroup(name)
}
