package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxBytes bounds a document on a resource, maxIdentityBytes one of IAM, including white space.
// Every service has a lower limit of its own.
const (
	MaxBytes         = 32 << 10
	maxIdentityBytes = 128 << 10
)

// ErrMalformed is wrapped by every error of Parse.
var ErrMalformed = errors.New("malformed policy")

// The versions of the language. Only the newer one has variables.
const (
	Version2008 = "2008-10-17" // the default
	Version2012 = "2012-10-17"
)

// Policy is a parsed document. A nil one allows and denies nothing.
type Policy struct {
	statements []*Statement
}

// Statement is one rule of a policy.
type Statement struct {
	Sid  string
	Deny bool // Effect
	// Actions and Resources are as written; the flags say that the statement applies to all
	// others.
	Actions      []string
	NotAction    bool
	Resources    []string
	NotResource  bool
	NotPrincipal bool
	// Start and End are its position in the document, in bytes.
	Start, End int

	hasPrincipal, hasResource bool // else it applies to any
	principals                principals
	actions                   []pattern
	resources                 []resourcePattern
	conditions                []condition
}

// Statements are the policy's rules, in their order.
func (p *Policy) Statements() []*Statement { return p.statements }

// Parse parses the document of a resource. It refuses violations of IAM's grammar: unknown and
// repeated elements, elements that exclude each other, a statement without one of Effect,
// Principal, Action and Resource, a document without statements, principals with wildcards,
// unknown operators and invalid operands. The error wraps ErrMalformed, and quotes only names
// of the document.
func Parse(doc string) (*Policy, error) {
	return parse(doc, document{principal: true, resource: true}, MaxBytes)
}

// ParseLoose is Parse for a service that accepts any text for a Resource: one that is not an
// ARN matches nothing.
func ParseLoose(doc string) (*Policy, error) {
	return parse(doc, document{principal: true, resource: true, loose: true}, MaxBytes)
}

// ParseIdentity is Parse for the document of an identity, a boundary or a session: it has no
// Principal.
func ParseIdentity(doc string) (*Policy, error) {
	return parse(doc, document{resource: true}, maxIdentityBytes)
}

// ParseTrust is Parse for a role's trust policy: it has no Resource.
func ParseTrust(doc string) (*Policy, error) {
	return parse(doc, document{principal: true}, maxIdentityBytes)
}

func parse(doc string, d document, limit int) (*Policy, error) {
	if len(doc) > limit {
		return nil, malformed("longer than %d bytes", limit)
	}
	if !utf8.ValidString(doc) || !json.Valid([]byte(doc)) {
		return nil, malformed("not JSON")
	}
	d.version = Version2008
	var statements json.RawMessage
	ends, err := members([]byte(doc), func(name string, value json.RawMessage) (err error) {
		switch name {
		case "Version":
			d.version, err = text(value)
			if err == nil && d.version != Version2008 && d.version != Version2012 {
				err = malformed("unknown Version")
			}
		case "Id":
			_, err = text(value)
		case "Statement":
			statements = value
		default:
			err = malformed("unknown element")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.parseStatements(statements, doc, ends["Statement"]-len(statements))
}

// document has the properties of the whole document that its statements depend on.
type document struct {
	version             string
	principal, resource bool // required elements of each statement
	loose               bool // a Resource that is not an ARN matches nothing
}

// parseStatements parses the list, which begins at an offset in doc.
func (d *document) parseStatements(list json.RawMessage, doc string, at int) (*Policy, error) {
	all, err := oneOrMany(list)
	if err != nil {
		return nil, malformed("Statement is missing or empty")
	}
	p := &Policy{}
	for _, raw := range all {
		s, err := d.parseStatement(raw)
		if err != nil {
			return nil, err
		}
		if s.Sid != "" && slices.ContainsFunc(p.statements, func(o *Statement) bool { return o.Sid == s.Sid }) {
			return nil, malformed("two statements with one Sid")
		}
		s.Start = at + strings.Index(doc[at:], string(raw))
		s.End = s.Start + len(raw)
		at = s.End
		p.statements = append(p.statements, s)
	}
	return p, nil
}

// parseStatement parses one statement.
func (d *document) parseStatement(raw json.RawMessage) (*Statement, error) {
	s := &Statement{}
	var effect string
	var hasAction bool
	once := func(has *bool) error {
		if *has {
			return malformed("an element and its opposite in one statement")
		}
		*has = true
		return nil
	}
	_, err := members(raw, func(name string, value json.RawMessage) (err error) {
		switch name {
		case "Sid":
			s.Sid, err = text(value)
		case "Effect":
			effect, err = text(value)
		case "Principal", "NotPrincipal":
			if err = once(&s.hasPrincipal); err == nil {
				s.NotPrincipal = name != "Principal"
				s.principals, err = parsePrincipals(value)
			}
		case "Action", "NotAction":
			if err = once(&hasAction); err == nil {
				s.NotAction = name != "Action"
				err = s.parseActions(value)
			}
		case "Resource", "NotResource":
			if err = once(&s.hasResource); err == nil {
				s.NotResource = name != "Resource"
				err = s.parseResources(value, d)
			}
		case "Condition":
			s.conditions, err = parseConditions(value, d.variables())
		default:
			err = malformed("unknown element of a statement")
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if s.Deny = effect == "Deny"; !s.Deny && effect != "Allow" {
		return nil, malformed("Effect must be Allow or Deny")
	}
	switch {
	case !hasAction || d.principal && !s.hasPrincipal || d.resource && !s.hasResource:
		return nil, malformed("a statement without Principal, Action or Resource")
	case !d.principal && s.hasPrincipal:
		return nil, malformed("a Principal in a policy of an identity")
	case !d.resource && s.hasResource:
		return nil, malformed("a Resource in a trust policy")
	}
	return s, nil
}

func (d *document) variables() bool { return d.version == Version2012 }

// actionName is the prefix of a service and the name of an action, or a pattern of names.
var actionName = regexp.MustCompile(`^[A-Za-z0-9-]+:[A-Za-z0-9*?]+$`)

func (s *Statement) parseActions(value json.RawMessage) (err error) {
	if s.Actions, err = texts(value); err != nil {
		return err
	}
	for _, action := range s.Actions {
		if action != "*" && !actionName.MatchString(action) {
			return malformed("bad Action")
		}
		s.actions = append(s.actions, compile(action, special{wildcards: true}))
	}
	return nil
}

func (s *Statement) parseResources(value json.RawMessage, d *document) (err error) {
	if s.Resources, err = texts(value); err != nil {
		return err
	}
	for _, resource := range s.Resources {
		r, ok := compileResource(resource, d.variables())
		if !ok && !d.loose {
			return malformed("bad Resource")
		}
		s.resources = append(s.resources, r)
	}
	return nil
}

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// members calls f with each member of a JSON object, in order, and returns where the values
// end, in bytes. A repeated name is an error, and so is anything but an object.
func members(raw json.RawMessage, f func(name string, value json.RawMessage) error) (ends map[string]int, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, malformed("an object is missing")
	}
	ends = map[string]int{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, malformed("not JSON")
		}
		if _, seen := ends[name]; seen {
			return nil, malformed("an element twice")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, malformed("not JSON")
		}
		ends[name] = int(dec.InputOffset())
		if err := f(name, value); err != nil {
			return nil, err
		}
	}
	return ends, nil
}

// oneOrMany returns the elements of a list; any other value is a list of itself. An empty list,
// and an empty text, is an error.
func oneOrMany(raw json.RawMessage) ([]json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, malformed("an element is missing")
	}
	if raw[0] != '[' {
		return []json.RawMessage{raw}, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil || len(list) == 0 {
		return nil, malformed("an empty list")
	}
	return list, nil
}

// text parses a JSON string.
func text(raw json.RawMessage) (string, error) {
	var s string
	if raw[0] != '"' || json.Unmarshal(raw, &s) != nil {
		return "", malformed("a string is missing")
	}
	return s, nil
}

// texts parses a string or a list of them, none of them empty.
func texts(raw json.RawMessage) ([]string, error) {
	list, err := oneOrMany(raw)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(list))
	for i, item := range list {
		if all[i], err = text(item); err != nil {
			return nil, err
		}
		if all[i] == "" {
			return nil, malformed("an empty string")
		}
	}
	return all, nil
}

// scalars parses the operands of a condition: a string, number or truth value, or a list of
// them.
func scalars(raw json.RawMessage) ([]string, error) {
	list, err := oneOrMany(raw)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(list))
	for i, item := range list {
		if strings.ContainsRune("{[n", rune(item[0])) { // n: null
			return nil, malformed("bad operand")
		}
		if item[0] != '"' {
			all[i] = string(item)
		} else if all[i], err = text(item); err != nil {
			return nil, err
		}
	}
	return all, nil
}
