package policy

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
)

// Form is how a statement of a resource's policy names the caller. The effect of an Allow
// depends on it.
type Form uint8

// The forms, the weakest first.
const (
	NoForm            Form = iota // it does not name the caller
	FormAccount                   // the caller's account; the policies of its identities decide
	FormAll                       // everybody, or all but some
	FormRole                      // the role whose session the caller is
	FormService                   // the service
	FormProvider                  // the identity provider of the federated caller
	FormUser                      // the user
	FormSession                   // the session of a role
	FormFederatedUser             // the session of a user's federation token
)

// formNames are the names in audit logs.
var formNames = [...]string{"", "account", "all", "role", "service", "provider", "user", "session", "federated-user"}

// String names the form; empty for NoForm.
func (f Form) String() string { return formNames[f] }

// exact reports whether a form names the caller itself, so that implicit denies of its own
// policies do not apply.
func (f Form) exact() bool { return f >= FormUser }

// principals are the principals of a statement.
type principals struct {
	all       bool
	services  []string
	accounts  []string
	arns      []string
	ids       []string // unique ids of users, roles and sessions
	providers []string
}

var (
	// identity is a user, role or session; the account's root is handled before.
	identity = regexp.MustCompile(`^arn:[a-z-]+:(iam|sts)::[0-9]{12}:(user|role|group|assumed-role|federated-user)/[^*?]+$`)
	root     = regexp.MustCompile(`^arn:[a-z-]+:iam::([0-9]{12}):root$`)
	// uniqueID is the stored form of a user or role, which is shown once it was deleted;
	// followed by a name it is a session of a role. A later user or role of the same name has
	// another.
	uniqueID = regexp.MustCompile(`^A[A-Z0-9]{15,127}(:[\w+=,.@-]{2,64})?$`)
	service  = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`)
)

// IsPrincipal reports whether a name has the form of one principal of AWS, or of a service.
func IsPrincipal(name string) bool {
	return service.MatchString(name) || name != "*" && new(principals).addAWS(name) == nil
}

func parsePrincipals(raw json.RawMessage) (p principals, err error) {
	if raw[0] == '"' {
		if all, err := text(raw); err != nil || all != "*" {
			return p, malformed("bad Principal")
		}
		p.all = true
		return p, nil
	}
	kinds := 0
	_, err = members(raw, func(kind string, value json.RawMessage) error {
		kinds++
		names, err := texts(value)
		if err != nil {
			return err
		}
		switch kind {
		case "AWS":
			for _, name := range names {
				if err := p.addAWS(name); err != nil {
					return err
				}
			}
		case "Service":
			for _, name := range names {
				if !service.MatchString(name) {
					return malformed("bad Service in a Principal")
				}
				p.services = append(p.services, strings.ToLower(name))
			}
		case "Federated":
			p.providers = append(p.providers, names...)
		case "CanonicalUser": // no caller here has one
		default:
			return malformed("unknown kind of Principal")
		}
		return nil
	})
	if err == nil && kinds == 0 {
		err = malformed("an empty Principal")
	}
	return p, err
}

func (p *principals) addAWS(name string) error {
	switch {
	case name == "*":
		p.all = true
	case arn.IsAccount(name):
		p.accounts = append(p.accounts, name)
	case identity.MatchString(name):
		p.arns = append(p.arns, name)
	case uniqueID.MatchString(name):
		p.ids = append(p.ids, name)
	default:
		m := root.FindStringSubmatch(name)
		if m == nil {
			return malformed("bad AWS in a Principal")
		}
		p.accounts = append(p.accounts, m[1])
	}
	return nil
}

// form is the strongest form in which the principals name a caller.
func (p *principals) form(c *caller.Caller) Form {
	switch c.Kind {
	case caller.Service:
		for _, name := range c.Services {
			if slices.Contains(p.services, name) {
				return FormService
			}
		}
	case caller.Anonymous:
		if c.Provider != "" && slices.Contains(p.providers, c.Provider) {
			return FormProvider
		}
	case caller.User:
		if slices.Contains(p.arns, c.ARN) || c.ID != "" && slices.Contains(p.ids, c.ID) {
			return FormUser
		}
	case caller.Session, caller.Federated:
		if slices.Contains(p.arns, c.ARN) || c.ID != "" && slices.Contains(p.ids, c.ID) {
			if c.Kind == caller.Federated {
				return FormFederatedUser
			}
			return FormSession
		}
		if c.Role != "" && slices.Contains(p.arns, c.Role) || c.RoleID != "" && slices.Contains(p.ids, c.RoleID) {
			return FormRole
		}
	case caller.Root: // is the account
	}
	switch {
	case p.all:
		return FormAll
	case c.Account != "" && slices.Contains(p.accounts, c.Account):
		return FormAccount
	default:
		return NoForm
	}
}

// one reports whether a user, role or session is among the principals.
func (p *principals) one() bool { return len(p.arns)+len(p.ids) > 0 }

// form is how the statement's Principal or NotPrincipal includes the caller; NoForm: it does
// not. bounded says that a permissions boundary caps the caller.
func (s *Statement) form(c *caller.Caller, bounded bool) Form {
	f := s.principals.form(c)
	switch {
	case s.NotPrincipal:
		// AWS's Deny with NotPrincipal includes callers with a boundary, named or not. It
		// checks the account first and then the caller within it, so that beside a user or role
		// the account only means itself.
		if f == NoForm || s.Deny && (bounded || f == FormAccount && c.Kind != caller.Root && s.principals.one()) {
			return FormAll
		}
		return NoForm
	case f == FormAll && !s.Deny && c.Kind == caller.Anonymous && c.Provider != "":
		return NoForm // only a provider's name admits its federated callers
	default:
		return f
	}
}
