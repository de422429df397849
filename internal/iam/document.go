package iam

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// Form is the purpose of a policy document, which decides the required elements.
type Form uint8

// The forms.
const (
	Identity Form = iota // inline, of a user, group or role, or of a session: without Principal
	Managed              // the same, of a managed policy: with the current Version
	Trust                // of a role: without Resource
)

// written is a statement of a document.
type written struct {
	sid, effect        string
	actions, resources []string
	hasPrincipal       bool
	hasResource        bool
	dates              []string // operands of comparisons of dates
}

// CheckDocument refuses an invalid document of a form. The checks are in AWS's order: first
// the grammar, then an older parser of AWS's, then each statement's elements. Operators and
// operands of conditions are checked by the evaluator.
func CheckDocument(form Form, document string) error {
	if form == Trust && !json.Valid([]byte(document)) {
		return ErrNoJSON
	}
	version, statements, err := read(document)
	switch {
	case err != nil:
		return err
	case form == Managed && version != "2012-10-17":
		return ErrDocumentVersion
	}
	for i := range statements {
		if !statements[i].legacy() {
			return ErrLegacy
		}
	}
	if err := checkSids(form, statements); err != nil {
		return err
	}
	for i := range statements {
		if err := statements[i].complete(form); err != nil {
			return err
		}
	}
	for i := range statements {
		if err := checkResources(statements[i].resources); err != nil {
			return err
		}
		if err := checkActions(form, statements[i].actions); err != nil {
			return err
		}
	}
	return nil
}

// read parses a document; it fails for violations of the grammar.
func read(document string) (version string, statements []written, err error) {
	if !utf8.ValidString(document) {
		return "", nil, ErrSyntax
	}
	top, err := object([]byte(document), "Version", "Id", "Statement")
	if err != nil {
		return "", nil, err
	}
	for name, into := range map[string]*string{"Version": &version, "Id": new(string)} {
		if text, ok := top[name]; ok && json.Unmarshal(text, into) != nil {
			return "", nil, ErrSyntax
		}
	}
	if _, ok := top["Version"]; ok && version != "2012-10-17" && version != "2008-10-17" {
		return "", nil, ErrSyntax
	}
	all := list(top["Statement"])
	if len(all) == 0 {
		return "", nil, ErrSyntax
	}
	statements = make([]written, len(all))
	for i, raw := range all {
		if statements[i], err = readStatement(raw); err != nil {
			return "", nil, err
		}
	}
	return version, statements, nil
}

var elements = []string{"Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition"}

func readStatement(raw json.RawMessage) (st written, err error) {
	s, err := object(raw, elements...)
	if err != nil {
		return st, err
	}
	if text, ok := s["Sid"]; ok && json.Unmarshal(text, &st.sid) != nil {
		return st, ErrSyntax
	}
	if json.Unmarshal(s["Effect"], &st.effect) != nil || !strings.EqualFold(st.effect, "Allow") && !strings.EqualFold(st.effect, "Deny") {
		return st, ErrSyntax
	}
	if either(s, "Principal") == both || either(s, "Action") == both || either(s, "Resource") == both {
		return st, ErrSyntax
	}
	var ofActions, ofResources bool
	st.actions, ofActions = strs(cmpRaw(s["Action"], s["NotAction"]))
	st.resources, ofResources = strs(cmpRaw(s["Resource"], s["NotResource"]))
	if !ofActions || !ofResources {
		return st, ErrSyntax
	}
	st.hasPrincipal, st.hasResource = either(s, "Principal") != neither, either(s, "Resource") != neither
	if condition, ok := s["Condition"]; ok {
		st.dates, err = readCondition(condition)
	}
	return st, err
}

// readCondition checks a condition's form and returns the operands of date comparisons.
func readCondition(raw json.RawMessage) (dates []string, err error) {
	operators, err := object(raw)
	if err != nil {
		return nil, err
	}
	for operator, of := range operators {
		keys, err := object(of)
		if err != nil {
			return nil, err
		}
		for _, operands := range keys {
			texts, err := readOperands(operands)
			if err != nil {
				return nil, err
			}
			if strings.Contains(operator, "Date") {
				dates = append(dates, texts...)
			}
		}
	}
	return dates, nil
}

// readOperands checks the form of a key's operands, one or a list, and returns those that are texts.
func readOperands(raw json.RawMessage) (texts []string, err error) {
	for _, operand := range list(raw) {
		var value any
		if json.Unmarshal(operand, &value) != nil {
			return nil, ErrSyntax
		}
		switch value := value.(type) {
		case string:
			texts = append(texts, value)
		case float64, bool:
		default:
			return nil, ErrSyntax
		}
	}
	return texts, nil
}

// legacy reports whether AWS's older parser also accepts the statement.
func (st *written) legacy() bool {
	return (st.effect == "Allow" || st.effect == "Deny") && !slices.ContainsFunc(st.dates, noDate) && !slices.ContainsFunc(st.resources, oddARN)
}

func checkSids(form Form, statements []written) error {
	var sids []string
	for i := range statements {
		sid := statements[i].sid
		switch {
		case sid == "":
			continue
		case form != Trust && strings.ContainsFunc(sid, func(c rune) bool {
			return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
		}):
			return ErrSid
		case slices.Contains(sids, sid):
			return ErrSidTwice
		}
		sids = append(sids, sid)
	}
	return nil
}

// complete refuses a statement without an element that the form requires, or with one that it
// forbids.
func (st *written) complete(form Form) error {
	switch {
	case form != Trust && st.hasPrincipal:
		return ErrPrincipalGiven
	case len(st.actions) == 0:
		return ErrNoActions
	case form != Trust && len(st.resources) == 0:
		return ErrNoResources
	case form == Trust && st.hasResource:
		return ErrResourceGiven
	case form == Trust && !st.hasPrincipal:
		return ErrNoPrincipal
	}
	return nil
}

func checkActions(form Form, actions []string) error {
	for _, action := range actions {
		if action == "*" {
			if form == Trust {
				return ErrTrustActions
			}
			continue
		}
		vendor, rest, ok := strings.Cut(action, ":")
		switch {
		case !ok:
			return ErrNoVendor
		case strings.Contains(rest, ":"):
			return ErrColons
		case strings.ContainsAny(vendor, " \t\n"):
			return ErrVendor.With(vendor)
		case form == Trust && !strings.EqualFold(vendor, "sts"):
			return ErrTrustActions
		}
	}
	return nil
}

type count uint8

const (
	neither count = iota
	one
	both
)

// either counts an element and its opposite (Not…) in a statement.
func either(s map[string]json.RawMessage, name string) (n count) {
	if _, ok := s[name]; ok {
		n++
	}
	if _, ok := s["Not"+name]; ok {
		n++
	}
	return n
}

func cmpRaw(a, b json.RawMessage) json.RawMessage {
	if a != nil {
		return a
	}
	return b
}

// object parses a JSON object without duplicate members; allowed are the permitted ones, or
// all if empty.
func object(raw []byte, allowed ...string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, ErrSyntax
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, ErrSyntax
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil, ErrSyntax
		}
		if _, twice := members[name]; twice || len(allowed) > 0 && !slices.Contains(allowed, name) {
			return nil, ErrSyntax
		}
		members[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, ErrSyntax
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrSyntax
	}
	return members, nil
}

// list are the elements of a JSON array; any other value is a list of itself.
func list(raw json.RawMessage) []json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var all []json.RawMessage
	if json.Unmarshal(raw, &all) == nil {
		return all
	}
	return []json.RawMessage{raw}
}

// strs parses a text or a list of texts.
func strs(raw json.RawMessage) (all []string, ok bool) {
	for _, item := range list(raw) {
		var s string
		if len(item) == 0 || item[0] != '"' || json.Unmarshal(item, &s) != nil {
			return nil, false
		}
		all = append(all, s)
	}
	return all, true
}

// TrustsOthers reports whether a valid trust policy allows others than services to assume its
// role.
func TrustsOthers(document string) bool {
	var top struct{ Statement json.RawMessage }
	if json.Unmarshal([]byte(document), &top) != nil {
		return false
	}
	for _, raw := range list(top.Statement) {
		var s struct {
			Effect                  string
			Principal, NotPrincipal json.RawMessage
		}
		if json.Unmarshal(raw, &s) != nil || s.Effect != "Allow" {
			continue
		}
		var named struct{ AWS, Federated json.RawMessage }
		if s.NotPrincipal != nil || json.Unmarshal(s.Principal, &named) != nil || named.AWS != nil || named.Federated != nil {
			return true // "*" is not an object
		}
	}
	return false
}
