package policy

import (
	"encoding/json"
	"strings"
)

// Users, roles and their sessions are kept in the policies of resources by their unique
// ids, and shown by their ARNs: so a policy means whom it named, and not who has come to
// have that name since.

// MapPrincipals puts f of each name in the position of the names by AWS in the Principal and
// NotPrincipal of a document's statements. All else stays as it is written, and so does
// what is no JSON.
func MapPrincipals(doc string, f func(name string) string) string {
	if !json.Valid([]byte(doc)) {
		return doc
	}
	m := mapper{doc: doc, dec: json.NewDecoder(strings.NewReader(doc)), f: f}
	if err := m.value(inDocument); err != nil || m.done == 0 {
		return doc
	}
	return m.out.String() + doc[m.done:]
}

// position says where in a document a value stands.
type position uint8

const (
	elsewhere position = iota
	inDocument
	inStatements // the list, or its only one
	inPrincipal
	inNames // by AWS
)

// within is the position of an object's member.
func (p position) within(member string) position {
	switch {
	case p == inDocument && member == "Statement":
		return inStatements
	case p == inStatements && (member == "Principal" || member == "NotPrincipal"):
		return inPrincipal
	case p == inPrincipal && member == "AWS":
		return inNames
	default:
		return elsewhere
	}
}

// mapper copies a document.
type mapper struct {
	doc  string
	dec  *json.Decoder
	f    func(name string) string
	out  strings.Builder
	done int // bytes of doc that are in out
}

// value passes over the next value, which stands at a position.
func (m *mapper) value(at position) error {
	before := int(m.dec.InputOffset())
	token, err := m.dec.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		return m.members(token == '{', at)
	case string:
		if at != inNames {
			return nil
		}
		if name := m.f(token); name != token {
			text, err := json.Marshal(name)
			if err != nil {
				return err
			}
			start := before + strings.IndexByte(m.doc[before:], '"') // behind a colon or a comma
			m.out.WriteString(m.doc[m.done:start])
			m.out.Write(text)
			m.done = int(m.dec.InputOffset())
		}
	}
	return nil
}

// members passes over an object or a list, to its end.
func (m *mapper) members(object bool, at position) error {
	for m.dec.More() {
		in := at
		if object {
			name, err := m.dec.Token()
			if err != nil {
				return err
			}
			text, _ := name.(string)
			in = at.within(text)
		}
		if err := m.value(in); err != nil {
			return err
		}
	}
	_, err := m.dec.Token()
	return err
}
