package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// Message is the input of policies: the attributes and the body of one published message. It
// parses what policies need, once however many there are, and so is not safe for concurrent
// use.
type Message struct {
	attributes []parsedAttribute // without binary ones
	body       []byte

	decoded  bool // object, isObject and dots are set
	object   map[string]any
	isObject bool
	dots     dots
}

type parsedAttribute struct {
	Attribute
	parsed bool // values and bad are set
	bad    bool // a String.Array is not a JSON array, or a String not the inside of a JSON string
	values []value
}

// NewMessage makes a message to be matched. It keeps body, and the strings of
// attributes.
func NewMessage(attributes []Attribute, body []byte) *Message {
	m := &Message{body: body}
	for _, a := range attributes {
		if !a.binary() {
			m.attributes = append(m.attributes, parsedAttribute{Attribute: a})
		}
	}
	return m
}

// Match reports whether m satisfies p, and if not, why. A nil or empty policy matches
// everything. Every other policy on attributes needs at least one attribute that is not Binary,
// even if it only requires the absence of another.
func (p *Policy) Match(m *Message) Verdict {
	if p == nil {
		return Match
	}
	root := p.root()
	switch {
	case root.empty():
		return Match
	case p.scope == MessageBody:
		return m.matchBody(root)
	case len(m.attributes) == 0:
		return NoMessageAttributes
	default:
		return m.matchAttributes(root)
	}
}

// Refusal is the verdict of a policy of a scope that m does not match. certain is false if it
// depends on the policy.
func (m *Message) Refusal(scope Scope) (v Verdict, certain bool) {
	switch {
	case scope == MessageBody:
		if _, ok := m.content(); !ok {
			return InvalidMessageBody, true
		}
		return BodyMismatch, true
	case len(m.attributes) == 0:
		return NoMessageAttributes, true
	}
	for i := range m.attributes {
		if a := &m.attributes[i]; !a.number() {
			if a.parse(); a.bad {
				return AttributesMismatch, false
			}
		}
	}
	return AttributesMismatch, true
}

// matchAttributes checks the keys of o in order; the first mismatch decides.
func (m *Message) matchAttributes(o *object) Verdict {
	for i := range o.fields {
		if v := m.matchAttribute(&o.fields[i]); v != Match {
			return v
		}
	}
	for _, or := range o.ors {
		if v := m.matchOr(or); v != Match {
			return v
		}
	}
	return Match
}

func (m *Message) matchOr(or []object) Verdict {
	verdict := AttributesMismatch
	for i := range or {
		switch v := m.matchAttributes(&or[i]); v {
		case Match:
			return Match
		case InvalidAttributes:
			verdict = v
		default:
		}
	}
	return verdict
}

func (m *Message) matchAttribute(f *field) Verdict {
	if a := m.attribute(f.key); a != nil {
		if a.bad {
			return InvalidAttributes
		}
		if slices.ContainsFunc(a.values, f.matchesAny) {
			return Match
		}
		if len(a.values) > 0 {
			return AttributesMismatch
		}
	}
	if f.matchesAbsence() {
		return Match
	}
	return AttributesMismatch
}

// attribute finds an attribute that policies can match, parsed; nil if there is none.
func (m *Message) attribute(name string) *parsedAttribute {
	for i := range m.attributes {
		if a := &m.attributes[i]; a.Name == name {
			a.parse()
			return a
		}
	}
	return nil
}

func (a *parsedAttribute) parse() {
	switch {
	case a.parsed:
		return
	case a.array():
		var all []any
		if decode(strings.NewReader(a.Value), &all) != nil || all == nil {
			a.bad = true
		}
		eachScalar(all, func(v any) bool {
			a.values = append(a.values, scalar(v))
			return true
		})
	case a.number():
		a.values = []value{numberOf(a.Value)}
	default:
		if text, ok := unescaped(a.Value); ok {
			a.values = []value{{text: text}}
		} else {
			a.bad = true
		}
	}
	a.parsed = true
}

// unescaped is the text of a String attribute as policies see it. AWS puts the attribute's value
// between quotation marks and parses that as JSON, so that a publisher has to escape quotation
// marks and backslashes, and control characters; ok is false if one is not. Source: the
// constraints of filter policies in the SNS developer guide.
func unescaped(written string) (text string, ok bool) {
	plain := func(c byte) bool { return c >= ' ' && c != '"' && c != '\\' }
	for i := range len(written) {
		if !plain(written[i]) {
			err := json.Unmarshal([]byte(`"`+written+`"`), &text)
			return text, err == nil
		}
	}
	return written, true
}

// content is the message's body as a JSON object; ok is false if it is none.
func (m *Message) content() (object map[string]any, ok bool) {
	if !m.decoded {
		m.decoded = true
		// null would decode into a map too.
		m.isObject = decode(bytes.NewReader(m.body), &m.object) == nil && m.object != nil
		if m.isObject && bytes.ContainsAny(m.body, `.\\`) {
			m.dots.find(m.object)
		}
	}
	return m.object, m.isObject
}

func (m *Message) matchBody(o *object) Verdict {
	content, ok := m.content()
	switch {
	case !ok:
		return InvalidMessageBody
	case len(m.dots) == 0 && o.matchesMembers(content), len(m.dots) > 0 && m.dots.matches(o, view{{members: content}}):
		return Match
	default:
		return BodyMismatch
	}
}

// matches reports whether a value of a body satisfies o. An array does if any of its elements
// does; one element must satisfy all fields.
func (o *object) matches(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return o.matchesMembers(v)
	case []any:
		return slices.ContainsFunc(v, o.matches) || len(v) == 0 && o.matchesAbsence()
	default:
		return o.matchesAbsence()
	}
}

func (o *object) matchesMembers(members map[string]any) bool {
	for i := range o.fields {
		f := &o.fields[i]
		if child, there := members[f.key]; there && !f.matches(child) || !there && !f.matchesAbsence() {
			return false
		}
	}
	for _, or := range o.ors {
		matched := false
		for i := 0; i < len(or) && !matched; i++ {
			matched = or[i].matchesMembers(members)
		}
		if !matched {
			return false
		}
	}
	return true
}

func (f *field) matches(v any) bool {
	if f.nested != nil {
		return f.nested.matches(v)
	}
	found, matched := false, false
	eachScalar(v, func(v any) bool {
		found = true
		matched = f.matchesAny(scalar(v))
		return !matched
	})
	return matched || !found && f.matchesAbsence()
}

// eachScalar calls yield for v, or for each scalar in an array, until yield returns false.
// Objects are skipped.
func eachScalar(v any, yield func(any) bool) bool {
	switch v := v.(type) {
	case map[string]any:
	case []any:
		for _, e := range v {
			if !eachScalar(e, yield) {
				return false
			}
		}
	default:
		return yield(v)
	}
	return true
}

var errTrailing = errors.New("more than one JSON value")

// decode decodes the one JSON value of a document, with numbers as they are written.
func decode(document io.Reader, into any) error {
	dec := json.NewDecoder(document)
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errTrailing
	}
	return nil
}
