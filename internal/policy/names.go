package policy

import (
	"encoding/json"
	"strings"
)

// The policies of resources store users, roles and their sessions by their unique ids, and show
// them by their ARNs: so a policy keeps meaning the identity that it named, and not a later one
// of the same name.

// MapPrincipals replaces each name under AWS in the Principal and NotPrincipal of a document's
// statements by f of it. The rest stays as it is written, and so does invalid JSON.
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

// position is the position of a value in a document.
type position uint8

const (
	elsewhere position = iota
	inDocument
	inStatements // the list, or its only element
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
	done int // bytes of doc that are copied to out
}

// value copies the next value, at a position.
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
			start := before + strings.IndexByte(m.doc[before:], '"') // after a colon or a comma
			m.out.WriteString(m.doc[m.done:start])
			m.out.Write(text)
			m.done = int(m.dec.InputOffset())
		}
	}
	return nil
}

// members copies an object or a list, to its end.
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
