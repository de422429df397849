package policy

// Decision is what a policy says about a request.
type Decision uint8

// The decisions. ImplicitDeny is the zero value: nothing allows it.
const (
	ImplicitDeny Decision = iota
	Allow
	ExplicitDeny // whatever else allows it
)

// Context gives what is known about a request beyond who, what and on which.
type Context interface {
	// Values are those of a condition key, whose name is in lower case as
	// "aws:sourcearn". None means that the request does not have it.
	Values(key string) []string
}

// Request is what is to be decided.
type Request struct {
	Principal Principal
	Action    string // service:name
	Resource  string // an ARN
	Context   Context
}

// Evaluate decides: ExplicitDeny if a statement that applies denies, else Allow
// if one allows, else ImplicitDeny.
func (p *Policy) Evaluate(r *Request) Decision {
	decision := ImplicitDeny
	for _, s := range p.statements {
		if s.Deny || decision != Allow {
			switch {
			case !s.applies(r):
			case s.Deny:
				return ExplicitDeny
			default:
				decision = Allow
			}
		}
	}
	return decision
}

// applies reports whether all elements of a statement hold of a request.
func (s *Statement) applies(r *Request) bool {
	if s.principals.names(&r.Principal) == s.NotPrincipal || s.namesAction(r) == s.NotAction || s.namesResource(r) == s.NotResource {
		return false
	}
	for i := range s.conditions {
		if !s.conditions[i].holds(r.Context) {
			return false
		}
	}
	return true
}

func (s *Statement) namesAction(r *Request) bool {
	for i := range s.actions {
		if s.actions[i].match(r.Action, true, r.Context) {
			return true
		}
	}
	return false
}

func (s *Statement) namesResource(r *Request) bool {
	for i := range s.resources {
		if s.resources[i].match(r.Resource, r.Context) {
			return true
		}
	}
	return false
}

// MatchAction reports whether an action fits a pattern as Action has it.
func MatchAction(pattern, action string) bool {
	p := compile(pattern, true, false)
	return p.match(action, true, nil)
}
