package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/arn"
)

// Errors of edits.
var (
	ErrTaken       = errors.New("the policy has a statement with that label")
	ErrNoStatement = errors.New("the policy has no statement with that label")
)

// Grant is a statement that allows accounts to call actions on a resource.
type Grant struct {
	Sid      string
	Accounts []string // 12 digits each
	Actions  []string // with the service's prefix
	Resource string
}

// Add adds a grant to a document; id is the policy's id if there is none yet. Everything else
// in the document stays as its owner wrote it. Errors: ErrTaken, and those of JSON for an
// invalid policy.
func Add(doc, id string, g Grant) (string, error) {
	e, err := readEditable(doc)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(e.statements, func(s json.RawMessage) bool { return sid(s) == g.Sid }) {
		return "", ErrTaken
	}
	s := grantStatement{Sid: g.Sid, Effect: "Allow", Action: g.Actions, Resource: g.Resource}
	for _, account := range g.Accounts {
		s.Principal.AWS = append(s.Principal.AWS, arn.Root(account).String())
	}
	text, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	if e.members == nil {
		named, err := json.Marshal(id)
		if err != nil {
			return "", err
		}
		e.members = map[string]json.RawMessage{"Version": json.RawMessage(`"` + Version2008 + `"`), "Id": named}
	}
	e.statements = append(e.statements, text)
	return e.encode()
}

// Remove removes the statements with a label. Without other statements the result is the empty
// string. Errors: ErrNoStatement, and those of JSON.
func Remove(doc, label string) (string, error) {
	e, err := readEditable(doc)
	if err != nil {
		return "", err
	}
	n := len(e.statements)
	e.statements = slices.DeleteFunc(e.statements, func(s json.RawMessage) bool { return sid(s) == label })
	if len(e.statements) == n {
		return "", ErrNoStatement
	}
	if len(e.statements) == 0 {
		return "", nil
	}
	return e.encode()
}

// editable is a document parsed as far as adding and removing statements needs.
type editable struct {
	members    map[string]json.RawMessage
	statements []json.RawMessage
}

// memberOrder is the order in which a document's members are written.
var memberOrder = []string{"Version", "Id", "Statement"}

func readEditable(doc string) (e editable, err error) {
	if doc == "" {
		return e, nil
	}
	if err := json.Unmarshal([]byte(doc), &e.members); err != nil {
		return e, err
	}
	all, ok := e.members["Statement"]
	if !ok {
		return e, nil
	}
	if err := json.Unmarshal(all, &e.statements); err != nil { // a single one need not be in a list
		e.statements = []json.RawMessage{all}
	}
	return e, nil
}

func (e *editable) encode() (string, error) {
	// Joined by hand: json.Marshal would rewrite what the owner wrote.
	e.members["Statement"] = slices.Concat([]byte{'['}, bytes.Join(rawBytes(e.statements), []byte{','}), []byte{']'})
	names := slices.Sorted(maps.Keys(e.members))
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	out := []byte{'{'}
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		key, err := json.Marshal(name)
		if err != nil {
			return "", err
		}
		out = append(append(append(out, key...), ':'), e.members[name]...)
	}
	return string(append(out, '}')), nil
}

func rawBytes(all []json.RawMessage) [][]byte {
	out := make([][]byte, len(all))
	for i := range all {
		out[i] = all[i]
	}
	return out
}

func rank(name string) int {
	if i := slices.Index(memberOrder, name); i >= 0 {
		return i
	}
	return len(memberOrder)
}

// sid is the label of a statement; empty for one without, or no statement.
func sid(statement json.RawMessage) string {
	var s struct{ Sid string }
	_ = json.Unmarshal(statement, &s)
	return s.Sid
}

// oneOrManyTexts is a list in the form of IAM: a single string is not in a list.
type oneOrManyTexts []string

// MarshalJSON writes the list.
func (l oneOrManyTexts) MarshalJSON() ([]byte, error) {
	if len(l) == 1 {
		return json.Marshal(l[0])
	}
	return json.Marshal([]string(l))
}

// grantStatement is a Grant in the form of IAM.
type grantStatement struct {
	Sid       string
	Effect    string
	Principal struct{ AWS oneOrManyTexts }
	Action    oneOrManyTexts
	Resource  string
}
