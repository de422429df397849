// Package filter decides which messages a subscription gets: it compiles FilterPolicy
// documents, matches messages against them, and finds the few policies among many that a
// message may match.
//
// A policy is a conjunction of fields and of $or lists. A field is either an object of further
// fields (message bodies only) or a list of rules of which one must match; of each $or list one
// object must match. A rule is an operator and its operand. A value is a scalar: an array, of a
// body or of a String.Array, matches if any of its elements does.
//
// A key whose value is an object or an empty array has no value, as if it were missing: the
// rule engine behind AWS's filters represents a document as a list of paths to scalars.
package filter

import (
	"slices"
	"strings"
)

// Scope is the part of a message that a policy matches.
type Scope uint8

// The scopes. MessageAttributes is the default.
const (
	MessageAttributes Scope = iota
	MessageBody
	scopes // keep last: the number of scopes
)

// Scopes is the number of scopes, for arrays that count each.
const Scopes = int(scopes)

var scopeNames = [scopes]string{"MessageAttributes", "MessageBody"}

// String is the value of the attribute FilterPolicyScope.
func (s Scope) String() string { return scopeNames[s] }

// ParseScope parses the value of the attribute FilterPolicyScope. Errors: ErrScope.
func ParseScope(value string) (Scope, error) {
	for s, name := range scopeNames {
		if name == value {
			return Scope(s), nil
		}
	}
	return 0, ErrScope.With(value)
}

// The limits of a policy.
const (
	MaxSize         = 256 << 10 // bytes
	MaxKeys         = 5         // at the top level
	maxCombinations = 150       // see compiler
)

// Policy is a compiled filter policy. It is immutable and safe for concurrent use.
type Policy struct {
	source string
	scope  Scope
	nested bool // a key has an object
	// written is the policy as it is written. bodies, if it is not nil, is the form that bodies
	// are matched against: a dot in a key means a nested object there.
	written object
	bodies  *object
}

// root is the form of the policy for its scope.
func (p *Policy) root() *object {
	if p.scope == MessageBody && p.bodies != nil {
		return p.bodies
	}
	return &p.written
}

// String is the document that the policy was compiled from.
func (p *Policy) String() string { return p.source }

// Scope is the part of a message that the policy matches.
func (p *Policy) Scope() Scope { return p.scope }

// object is a conjunction: each field must match, and one object of each $or.
type object struct {
	fields []field
	ors    [][]object
}

func (o *object) empty() bool { return len(o.fields) == 0 && len(o.ors) == 0 }

// field constrains one key: either by rules, of which one must match, or, if nested is not nil,
// by the fields of the object under the key.
type field struct {
	key    string
	rules  []rule
	choice *choice // index of the rules, if there are many
	nested *object
}

func (f *field) matchesAny(v value) bool {
	if f.choice != nil {
		return f.choice.matches(v)
	}
	for i := range f.rules {
		if f.rules[i].matches(v) {
			return true
		}
	}
	return false
}

// matchesAbsence reports whether the field matches a key without a value.
func (f *field) matchesAbsence() bool {
	if f.nested != nil {
		return f.nested.matchesAbsence()
	}
	return slices.ContainsFunc(f.rules, func(r rule) bool { return r.op == absent })
}

func (o *object) matchesAbsence() bool {
	for i := range o.fields {
		if !o.fields[i].matchesAbsence() {
			return false
		}
	}
	for _, or := range o.ors {
		if !slices.ContainsFunc(or, func(branch object) bool { return branch.matchesAbsence() }) {
			return false
		}
	}
	return true
}

// Verdict is the result of matching: a match, or the reason for a mismatch, as distinguished by
// the NumberOfNotificationsFilteredOut metrics.
type Verdict uint8

// The verdicts.
const (
	Match               Verdict = iota
	AttributesMismatch          // …-MessageAttributes
	NoMessageAttributes         // …-NoMessageAttributes: the policy needs some
	InvalidAttributes           // …-InvalidAttributes: an attribute of the policy's cannot be parsed as JSON
	BodyMismatch                // …-MessageBody
	InvalidMessageBody          // …-InvalidMessageBody: the body is not a JSON object
	verdicts                    // keep last: the number of verdicts
)

// Verdicts is the number of verdicts, for arrays that count each.
const Verdicts = int(verdicts)

var verdictNames = [...]string{
	"Match", "MessageAttributes", "NoMessageAttributes", "InvalidAttributes", "MessageBody", "InvalidMessageBody",
}

// String is the suffix of the metric that counts the verdict, or "Match".
func (v Verdict) String() string { return verdictNames[v] }

// Attribute is a message attribute. Type is String, String.Array, Number or Binary, or one of
// these with a custom suffix after a dot. Value is the string value; that of a Binary is
// ignored.
type Attribute struct {
	Name, Type, Value string
}

func (a Attribute) binary() bool { return a.Type == "Binary" || strings.HasPrefix(a.Type, "Binary.") }

func (a Attribute) array() bool { return a.Type == "String.Array" }

func (a Attribute) number() bool { return a.Type == "Number" || strings.HasPrefix(a.Type, "Number.") }
