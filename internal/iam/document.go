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

// Form is what a policy document is for, which says what it must have.
type Form uint8

// The forms.
const (
	Identity Form = iota // of a user, group or role, and of a session: without Principal
	Trust                // of a role: without Resource
)

// AWS's words for what is wrong with a document.
const (
	whySyntax    = "Syntax errors in policy."
	whyPrincipal = "Policy document should not specify a principal."
	whyNobody    = "Missing required field Principal"
	whyActions   = "Policy statement must contain actions."
	whyVendor    = "Actions/Conditions must be prefaced by a vendor, e.g., iam, sdb, ec2, etc."
	whyColon     = "Actions/Condition can contain only one colon."
	whyResources = "Policy statement must contain resources."
	whyResource  = "Has prohibited field Resource"
	whySid       = "Statement IDs (SID) in a single policy must be unique."
	whySidForm   = "Statement IDs (SID) should be alpha numeric."
	whyAssume    = "AssumeRole policy may only specify STS AssumeRole actions."
)

func malformed(why string) error { return ErrDocument.With(why) }

// CheckDocument refuses a document with ErrDocument that is not of the form. It looks at
// elements; operators and operands of conditions are the evaluator's.
func CheckDocument(form Form, document string) error {
	if !utf8.ValidString(document) {
		return malformed(whySyntax)
	}
	top, err := object([]byte(document), "Version", "Id", "Statement")
	if err != nil {
		return err
	}
	if v, ok := top["Version"]; ok && string(v) != `"2012-10-17"` && string(v) != `"2008-10-17"` {
		return malformed(whySyntax)
	}
	statements := list(top["Statement"])
	if len(statements) == 0 {
		return malformed(whySyntax)
	}
	var sids []string
	for _, raw := range statements {
		sid, err := checkStatement(form, raw)
		if err != nil {
			return err
		}
		if sid != "" && slices.Contains(sids, sid) {
			return malformed(whySid)
		}
		sids = append(sids, sid)
	}
	return nil
}

var elements = []string{"Sid", "Effect", "Principal", "NotPrincipal", "Action", "NotAction", "Resource", "NotResource", "Condition"}

func checkStatement(form Form, raw json.RawMessage) (sid string, err error) {
	s, err := object(raw, elements...)
	if err != nil {
		return "", err
	}
	if text, ok := s["Sid"]; ok {
		if json.Unmarshal(text, &sid) != nil {
			return "", malformed(whySyntax)
		}
		if form == Identity && strings.ContainsFunc(sid, func(c rune) bool {
			return (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
		}) {
			return "", malformed(whySidForm)
		}
	}
	if e := string(s["Effect"]); e != `"Allow"` && e != `"Deny"` {
		return "", malformed(whySyntax)
	}
	if condition, ok := s["Condition"]; ok {
		if _, err := object(condition); err != nil {
			return "", err
		}
	}
	if either(s, "Principal") == both || either(s, "Action") == both || either(s, "Resource") == both {
		return "", malformed(whySyntax)
	}
	if err := checkActions(form, s); err != nil {
		return "", err
	}
	return sid, checkForm(form, s)
}

func checkForm(form Form, s map[string]json.RawMessage) error {
	if form == Trust {
		switch {
		case either(s, "Resource") != neither:
			return malformed(whyResource)
		case either(s, "Principal") == neither:
			return malformed(whyNobody)
		}
		return nil
	}
	if either(s, "Principal") != neither {
		return malformed(whyPrincipal)
	}
	resources, ok := strs(cmpRaw(s["Resource"], s["NotResource"]))
	if !ok || len(resources) == 0 {
		return malformed(whyResources)
	}
	for _, r := range resources {
		if r != "*" && (!strings.HasPrefix(r, "arn:") || strings.Count(r, ":") < 5) && !strings.Contains(r, "${") && !strings.ContainsAny(r, "*?") {
			return malformed("Resource " + r + ` must be in ARN format or "*".`)
		}
	}
	return nil
}

func checkActions(form Form, s map[string]json.RawMessage) error {
	actions, ok := strs(cmpRaw(s["Action"], s["NotAction"]))
	if !ok || len(actions) == 0 {
		return malformed(whyActions)
	}
	for _, action := range actions {
		if action == "*" {
			if form == Trust {
				return malformed(whyAssume)
			}
			continue
		}
		switch strings.Count(action, ":") {
		case 0:
			return malformed(whyVendor)
		case 1:
		default:
			return malformed(whyColon)
		}
		if form == Trust && !strings.HasPrefix(strings.ToLower(action), "sts:") {
			return malformed(whyAssume)
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

// either tells which of an element and its opposite a statement has.
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

// object reads a JSON object of which no member comes twice; allowed are those that it may
// have, all if none is given.
func object(raw []byte, allowed ...string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if start, err := dec.Token(); err != nil || start != json.Delim('{') {
		return nil, malformed(whySyntax)
	}
	members := map[string]json.RawMessage{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return nil, malformed(whySyntax)
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return nil, malformed(whySyntax)
		}
		if _, twice := members[name]; twice || len(allowed) > 0 && !slices.Contains(allowed, name) {
			return nil, malformed(whySyntax)
		}
		members[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, malformed(whySyntax)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed(whySyntax)
	}
	return members, nil
}

// list are the elements of a JSON array; anything else stands for a list of itself.
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

// strs reads a text or a list of them.
func strs(raw json.RawMessage) (all []string, ok bool) {
	for _, item := range list(raw) {
		var s string
		if json.Unmarshal(item, &s) != nil || s == "" {
			return nil, false
		}
		all = append(all, s)
	}
	return all, true
}

// TrustsOthers reports whether a trust policy, which was checked, lets anybody but services
// assume its role.
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
			return true // "*" is no object
		}
	}
	return false
}
