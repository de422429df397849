package policy

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// Principal is who makes a request. The zero value is a caller without
// credentials.
type Principal struct {
	// Services are the names of the service that makes the request on its own
	// account, as "sns.amazonaws.com"; all fields but this are then empty.
	Services []string
	Account  string   // 12 digits
	ARNs     []string // of the user; of the role, and of its session
}

// principals are those that a statement names.
type principals struct {
	all      bool
	services []string
	accounts []string
	arns     []string
}

var (
	accountID = regexp.MustCompile(`^[0-9]{12}$`)
	// identity is a user, role or session; account root is found before it.
	identity = regexp.MustCompile(`^arn:[a-z-]+:(iam|sts)::[0-9]{12}:(user|role|group|assumed-role|federated-user)/[^*?]+$`)
	root     = regexp.MustCompile(`^arn:[a-z-]+:iam::([0-9]{12}):root$`)
	// uniqueID is what IAM shows for a user or role that was deleted. It is
	// no one's any more.
	uniqueID = regexp.MustCompile(`^A[A-Z0-9]{15,127}$`)
	service  = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`)
)

func parsePrincipals(raw json.RawMessage) (p principals, err error) {
	if raw[0] == '"' {
		if all, err := text(raw); err != nil || all != "*" {
			return p, malformed("bad Principal")
		}
		p.all = true
		return p, nil
	}
	kinds := 0
	err = members(raw, func(kind string, value json.RawMessage) error {
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
		case "Federated", "CanonicalUser": // nobody whom a request here comes from
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
	case accountID.MatchString(name):
		p.accounts = append(p.accounts, name)
	case identity.MatchString(name):
		p.arns = append(p.arns, name)
	case uniqueID.MatchString(name):
	default:
		m := root.FindStringSubmatch(name)
		if m == nil {
			return malformed("bad AWS in a Principal")
		}
		p.accounts = append(p.accounts, m[1])
	}
	return nil
}

// names reports whether who is among the principals.
func (p *principals) names(who *Principal) bool {
	if p.all || who.Account != "" && slices.Contains(p.accounts, who.Account) {
		return true
	}
	for _, name := range who.Services {
		if slices.Contains(p.services, name) {
			return true
		}
	}
	for _, name := range who.ARNs {
		if slices.Contains(p.arns, name) {
			return true
		}
	}
	return false
}
