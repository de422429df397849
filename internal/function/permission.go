package function

import (
	"encoding/json"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
)

// MaxPolicyBytes bounds the policy of a function, a version or an alias, in bytes.
const MaxPolicyBytes = 20 << 10

// Permission is a statement of a policy, in the form of IAM.
type Permission struct {
	Sid       string          `json:"Sid"`
	Effect    string          `json:"Effect"`
	Principal json.RawMessage `json:"Principal"`
	Action    string          `json:"Action"`
	Resource  string          `json:"Resource"`
	Condition json.RawMessage `json:"Condition,omitempty"`
}

// Conditions are the conditions of a statement, by key, in AWS's order of the operators.
type Conditions struct {
	StringEquals map[string]string `json:",omitempty"`
	Bool         map[string]string `json:",omitempty"`
	ArnLike      map[string]string `json:",omitempty"`
}

// NewPermission makes a statement that allows an action on a function. who is "*", an
// account, a service's name, or the ARN or unique id of a user or role. Without conditions the
// element is omitted.
func NewPermission(sid, who, action, resource string, c Conditions) Permission {
	p := Permission{Sid: sid, Effect: "Allow", Principal: Principal(who), Action: action, Resource: resource}
	if len(c.StringEquals)+len(c.Bool)+len(c.ArnLike) > 0 {
		p.Condition = marshal(c)
	}
	return p
}

// Principal is the statement's Principal element.
func Principal(who string) json.RawMessage {
	switch {
	case who == "*":
		return marshal(who)
	case arn.IsAccount(who):
		return marshal(map[string]string{"AWS": arn.Root(who).String()})
	case strings.Contains(who, ".") && !strings.HasPrefix(who, "arn:"):
		return marshal(map[string]string{"Service": who})
	default:
		return marshal(map[string]string{"AWS": who})
	}
}

func marshal(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // texts can always be marshalled
	}
	return text
}

// String is the statement in JSON.
func (p *Permission) String() string {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // statements can always be marshalled
	}
	return string(text)
}

// Policy is the policy document of a function, or of a version or alias; empty: there is
// none.
func (f *Function) Policy(qualifier string) string { return Document(f.policies[qualifier]) }

// Document is the policy document of statements; empty: there are none.
func Document(all []Permission) string {
	if len(all) == 0 {
		return ""
	}
	text, err := json.Marshal(struct {
		Version   string
		ID        string `json:"Id"`
		Statement []Permission
	}{"2012-10-17", "default", all})
	if err != nil {
		panic(err) // statements can always be marshalled
	}
	return string(text)
}

// Permit is the command that adds a statement to a policy.
type Permit struct {
	Function   arn.ARN
	Qualifier  string // of a version or an alias; empty: the function
	RevisionID string // must be that of the version or alias; empty: any
	Permission Permission
	Revision   string
}

// Permit adds a statement to a policy, which changes the revision of the version
// or alias. Errors: ResourceNotFound; ResourceConflict for a label that is taken;
// PreconditionFailed; PolicyLengthExceeded; InvalidParameter for $LATEST.
func (s *State) Permit(cmd Permit, b *mutation.Batch) error {
	f, revise, err := s.policyOf(cmd.Function, cmd.Qualifier, cmd.RevisionID)
	if err != nil {
		return err
	}
	have := f.policies[cmd.Qualifier]
	if slices.ContainsFunc(have, func(p Permission) bool { return p.Sid == cmd.Permission.Sid }) {
		return ErrStatementExists.With(cmd.Permission.Sid)
	}
	all := append(slices.Clone(have), cmd.Permission)
	if n := len(Document(all)); n > MaxPolicyBytes {
		return ErrPolicyTooLong.With(n, MaxPolicyBytes)
	}
	f.policies[cmd.Qualifier] = all
	revise(b, cmd.Revision)
	s.put(b, f)
	return nil
}

// Forbid is the command that removes a statement from a policy.
type Forbid struct {
	Function   arn.ARN
	Qualifier  string
	RevisionID string
	Sid        string
	Revision   string
}

// Forbid removes a statement from a policy. Errors: ResourceNotFound,
// PreconditionFailed, InvalidParameter for $LATEST.
func (s *State) Forbid(cmd Forbid, b *mutation.Batch) error {
	f, revise, err := s.policyOf(cmd.Function, cmd.Qualifier, cmd.RevisionID)
	if err != nil {
		return err
	}
	have := f.policies[cmd.Qualifier]
	if len(have) == 0 {
		return ErrNoPolicy
	}
	left := slices.DeleteFunc(slices.Clone(have), func(p Permission) bool { return p.Sid == cmd.Sid })
	if len(left) == len(have) {
		return ErrStatementNotFound.With(cmd.Sid)
	}
	f.policies[cmd.Qualifier] = left
	if len(left) == 0 {
		delete(f.policies, cmd.Qualifier)
	}
	revise(b, cmd.Revision)
	s.put(b, f)
	return nil
}

// policyOf finds the function of a policy, and returns how to change the revision, which is
// that of the version or alias.
func (s *State) policyOf(name arn.ARN, qualifier, revision string) (*Function, func(*mutation.Batch, string), error) {
	if qualifier == Latest {
		return nil, nil, ErrPolicyOfLatest
	}
	f, v, a, err := s.Find(name, qualifier)
	if err != nil {
		if _, there := s.functions[name]; there && !numbered(qualifier) {
			err = ErrAliasNotFound.With(name.Qualify(qualifier))
		}
		return nil, nil, err
	}
	if a != nil {
		return f, func(b *mutation.Batch, to string) {
			a.Revision = to
			s.putAlias(b, f, a)
		}, checkPolicyRevision(revision, a.Revision)
	}
	return f, func(b *mutation.Batch, to string) {
		v.Revision = to
		if v.Number != 0 {
			s.putVersion(b, f, v)
		}
	}, checkPolicyRevision(revision, v.Revision)
}

func checkPolicyRevision(want, have string) error {
	if want != "" && want != have {
		return ErrPolicyOutdated
	}
	return nil
}

// ShowPolicy is a policy with its revision. Errors: ResourceNotFound, also without a policy.
func (s *State) ShowPolicy(name arn.ARN, qualifier string) (doc, revision string, err error) {
	f, v, a, err := s.Find(name, qualifier)
	if err != nil {
		return "", "", err
	}
	if doc = f.Policy(qualifier); doc == "" {
		return "", "", ErrPolicyNotFound
	}
	if a != nil {
		return doc, a.Revision, nil
	}
	return doc, v.Revision, nil
}
