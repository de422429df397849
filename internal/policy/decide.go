package policy

import "godwit.dev/godwit/internal/caller"

// Kind is the kind of a policy, by what it is attached to.
type Kind uint8

// The kinds.
const (
	NoKind   Kind = iota // no policy decided: the account's root may do what none denies
	Identity             // of a user, its groups, or a role
	Resource
	Boundary // a permissions boundary
	Session  // a session policy
)

var kindNames = [...]string{"", "identity-based policy", "resource-based policy", "permissions boundary", "session policy"}

// String is the kind as written in refusals; empty for NoKind.
func (k Kind) String() string { return kindNames[k] }

// Rule is the effect of a resource's policy within its own account.
type Rule uint8

// The rules. Between accounts both sides must allow, whatever the rule.
const (
	EitherSide   Rule = iota // the identity's or the resource's policies allow
	ResourceSide             // the resource's must allow, like a role's trust policy and a key's
)

// Policies are the policies that apply to a request.
type Policies struct {
	// Identity are those of the user and its groups, or of the role.
	Identity []*Policy
	Boundary *Policy // nil: none
	// Session are the session policies; Capped says that a session is capped, even if none of
	// them exists any more.
	Session  []*Policy
	Capped   bool
	Resource *Policy // nil: none
	Rule     Rule
	// Granted says that the resource allows the request by other means, such as a grant of a
	// key: it has the effect of a statement that names the role.
	Granted bool
}

// Result is a decision, and its reason.
type Result struct {
	Decision Decision
	// Kind is the kind of policy that allowed or denied; for an implicit deny the kind that
	// would have had to allow.
	Kind      Kind
	Statement *Statement // the deciding one; nil: none did
	Policy    int        // the index of its policy, in Identity or Session
	Form      Form       // how it names the caller, if it is a resource's
}

// Allowed reports whether the decision is Allow.
func (r *Result) Allowed() bool { return r.Decision == Allow }

// Because is the end of a refusal's sentence: which kind of policy denies an action, or does
// not allow it.
func (r *Result) Because(action string) string {
	if r.Decision == ExplicitDeny {
		article := "a "
		if r.Kind == Identity {
			article = "an "
		}
		return "with an explicit deny in " + article + r.Kind.String()
	}
	return "because no " + r.Kind.String() + " allows the " + action + " action"
}

// result is the result of the policies of one kind.
func (v outcome) result(k Kind) Result {
	return Result{Decision: v.decision, Kind: k, Statement: v.statement, Policy: v.policy, Form: v.form}
}

// Decide decides a request by all the policies that apply to it.
//
// An explicit deny in any of them wins. A service, and a caller without credentials, has no
// policies of its own: the resource's decides. Within an account the policies of one side
// suffice, unless the rule says that the resource's must allow. If a resource's policy names
// the user or the session itself, nothing caps it; if it names the role or everybody, boundary
// and session policies cap it; if it names the account, the identity's policies decide. Between
// accounts both sides must allow, each by itself. An account's root may do everything on its
// side.
func Decide(r *Request, p *Policies) Result {
	c := r.Caller
	resource := p.Resource.evaluate(r, p.Boundary != nil)
	if resource.decision == ExplicitDeny {
		return resource.result(Resource)
	}
	if c.Kind == caller.Service || c.Kind == caller.Anonymous {
		return resource.result(Resource)
	}
	own := decideIdentity(r, p)
	if own.denied != (Result{}) {
		return own.denied
	}
	if p.Granted && (resource.decision != Allow || resource.form < FormRole) {
		resource = outcome{decision: Allow, form: FormRole}
	}
	if r.Owner != "" && r.Owner != c.Account {
		if resource.decision != Allow {
			return resource.result(Resource)
		}
		if own.side.Decision != Allow {
			return own.side
		}
		return resource.result(Resource)
	}
	switch allowed := resource.decision == Allow; {
	case !allowed && p.Rule == ResourceSide:
		return resource.result(Resource)
	case !allowed || resource.form == FormAccount && c.Kind != caller.Root:
		return own.side
	case resource.form.exact() || own.caps.Decision == Allow:
		return resource.result(Resource)
	default:
		return own.caps
	}
}

// ownSide is the decision of the policies of the caller's account.
type ownSide struct {
	denied Result // an explicit deny; zero: none
	side   Result // identity, boundary and session together
	caps   Result // boundary and session alone
}

func decideIdentity(r *Request, p *Policies) (own ownSide) {
	identity := outcome{decision: Allow}
	kind := NoKind
	if r.Caller.Kind != caller.Root {
		identity, kind = evaluateAll(p.Identity, r), Identity
		if identity.decision == ExplicitDeny {
			own.denied = identity.result(Identity)
			return own
		}
	}
	own.side = identity.result(kind)
	own.caps = Result{Decision: Allow}
	limit := func(v outcome, k Kind) bool {
		switch v.decision {
		case ExplicitDeny:
			own.denied = v.result(k)
			return false
		case ImplicitDeny:
			if own.caps.Decision == Allow {
				own.caps = v.result(k)
			}
			if own.side.Decision == Allow {
				own.side = v.result(k)
			}
		case Allow:
		}
		return true
	}
	if p.Boundary != nil && !limit(p.Boundary.evaluate(r, false), Boundary) {
		return own
	}
	if p.Capped || len(p.Session) > 0 {
		limit(evaluateAll(p.Session, r), Session)
	}
	return own
}
