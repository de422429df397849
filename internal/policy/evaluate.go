package policy

import "godwit.dev/godwit/internal/caller"

// Decision is the decision of a policy on a request.
type Decision uint8

// The decisions. ImplicitDeny is the zero value: nothing allows the request.
const (
	ImplicitDeny Decision = iota
	Allow
	ExplicitDeny // overrides every Allow
)

// String is the decision in the words of IAM's simulator.
func (d Decision) String() string {
	return [...]string{"implicitDeny", "allowed", "explicitDeny"}[d]
}

// Context has the condition keys of a request.
type Context interface {
	// Values are the values of a condition key, whose name is in lower case as "aws:sourcearn".
	// None means that the request does not have it. A slice of one value is valid until the
	// next call.
	Values(key string) []string
}

// Request is a request to be decided. Caller is required.
type Request struct {
	Caller   *caller.Caller
	Action   string // service:name
	Resource string // an ARN, or "*"
	// Owner is the account of the resource; empty: the caller's.
	Owner   string
	Context Context // nil: nothing is known
}

// values are the values of a condition key.
func (r *Request) values(key string) []string {
	if r.Context == nil {
		return nil
	}
	return r.Context.Values(key)
}

// Evaluate decides by this policy alone: ExplicitDeny if a statement that applies
// denies, else Allow if one allows, else ImplicitDeny.
func (p *Policy) Evaluate(r *Request) Decision { return p.evaluate(r, false).decision }

// outcome is the decision of one policy, or a list of them.
type outcome struct {
	decision  Decision
	statement *Statement // the deciding one; nil: none did
	policy    int        // its index in the list
	form      Form
}

// evaluate decides by the policy. Of the statements that allow, the one that names the caller
// in the strongest form is used.
func (p *Policy) evaluate(r *Request, bounded bool) (v outcome) {
	if p == nil {
		return v
	}
	for _, s := range p.statements {
		if !s.Deny && v.decision == Allow && (!s.hasPrincipal || v.form.exact()) {
			continue // no stronger form exists
		}
		form, ok := s.applies(r, bounded)
		switch {
		case !ok:
		case s.Deny:
			return outcome{decision: ExplicitDeny, statement: s, form: form}
		case v.decision != Allow || form > v.form:
			v = outcome{decision: Allow, statement: s, form: form}
		}
	}
	return v
}

// evaluateAll decides by several policies of one kind.
func evaluateAll(list []*Policy, r *Request) (v outcome) {
	for i, p := range list {
		switch one := p.evaluate(r, false); {
		case one.decision == ExplicitDeny:
			one.policy = i
			return one
		case one.decision == Allow && v.decision != Allow:
			v = one
			v.policy = i
		}
	}
	return v
}

// applies reports whether all elements of a statement match a request, and how it names the
// caller.
func (s *Statement) applies(r *Request, bounded bool) (form Form, ok bool) {
	if s.namesAction(r) == s.NotAction || s.hasResource && s.namesResource(r) == s.NotResource {
		return NoForm, false
	}
	if s.hasPrincipal {
		if form = s.form(r.Caller, bounded); form == NoForm {
			return NoForm, false
		}
	}
	for i := range s.conditions {
		if !s.conditions[i].holds(r, s.Deny) {
			return NoForm, false
		}
	}
	return form, true
}

func (s *Statement) namesAction(r *Request) bool {
	for i := range s.actions {
		if s.actions[i].match(r.Action, true, r) {
			return true
		}
	}
	return false
}

func (s *Statement) namesResource(r *Request) bool {
	for i := range s.resources {
		if s.resources[i].match(r.Resource, r) {
			return true
		}
	}
	return false
}

// Matches calls f with each statement that applies to a request, in order: the result of a
// simulation.
func (p *Policy) Matches(r *Request, f func(*Statement)) {
	for _, s := range p.statements {
		if _, ok := s.applies(r, false); ok {
			f(s)
		}
	}
}

// MatchAction reports whether an action matches a pattern of an Action element.
func MatchAction(pattern, action string) bool {
	p := compile(pattern, special{wildcards: true})
	return p.match(action, true, nil)
}
