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
	Identity Form = iota // inline, of a user, group or role, and of a session: without Principal
	Managed              // the same, of a managed policy: its version is the newer one
	Trust                // of a role: without Resource
)

// AWS's words for what is wrong with a document.
const (
	whySyntax    = "Syntax errors in policy."
	whyJSON      = "This policy contains invalid Json" // of a trust policy
	whyVersion   = "Policy document must be version 2012-10-17 or greater."
	whyLegacy    = "The policy failed legacy parsing"
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

// written is a statement as it is written.
type written struct {
	sid, effect        string
	actions, resources []string
	hasPrincipal       bool
	hasResource        bool
	dates              []string // operands of comparisons of dates
}

// CheckDocument refuses a document with ErrDocument that is not of the form, in the order
// in which AWS does: what the grammar lacks first, then what an older parser of AWS's
// cannot read, then what each statement must have. It looks at elements; operators and
// operands of conditions are the evaluator's.
func CheckDocument(form Form, document string) error {
	if form == Trust && !json.Valid([]byte(document)) {
		return malformed(whyJSON)
	}
	version, statements, err := read(document)
	switch {
	case err != nil:
		return err
	case form == Managed && version != "2012-10-17":
		return malformed(whyVersion)
	}
	for i := range statements {
		if !statements[i].legacy() {
			return malformed(whyLegacy)
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

// read takes a document apart; it fails for what the grammar does not have.
func read(document string) (version string, statements []written, err error) {
	if !utf8.ValidString(document) {
		return "", nil, malformed(whySyntax)
	}
	top, err := object([]byte(document), "Version", "Id", "Statement")
	if err != nil {
		return "", nil, err
	}
	for name, into := range map[string]*string{"Version": &version, "Id": new(string)} {
		if text, ok := top[name]; ok && json.Unmarshal(text, into) != nil {
			return "", nil, malformed(whySyntax)
		}
	}
	if _, ok := top["Version"]; ok && version != "2012-10-17" && version != "2008-10-17" {
		return "", nil, malformed(whySyntax)
	}
	all := list(top["Statement"])
	if len(all) == 0 {
		return "", nil, malformed(whySyntax)
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
		return st, malformed(whySyntax)
	}
	if json.Unmarshal(s["Effect"], &st.effect) != nil || !strings.EqualFold(st.effect, "Allow") && !strings.EqualFold(st.effect, "Deny") {
		return st, malformed(whySyntax)
	}
	if either(s, "Principal") == both || either(s, "Action") == both || either(s, "Resource") == both {
		return st, malformed(whySyntax)
	}
	var ofActions, ofResources bool
	st.actions, ofActions = strs(cmpRaw(s["Action"], s["NotAction"]))
	st.resources, ofResources = strs(cmpRaw(s["Resource"], s["NotResource"]))
	if !ofActions || !ofResources {
		return st, malformed(whySyntax)
	}
	st.hasPrincipal, st.hasResource = either(s, "Principal") != neither, either(s, "Resource") != neither
	if condition, ok := s["Condition"]; ok {
		st.dates, err = readCondition(condition)
	}
	return st, err
}

// readCondition looks at a condition's form and gives the operands of comparisons of dates.
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
			for _, operand := range list(operands) {
				var value any
				if json.Unmarshal(operand, &value) != nil {
					return nil, malformed(whySyntax)
				}
				switch text := value.(type) {
				case string:
					if strings.Contains(operator, "Date") {
						dates = append(dates, text)
					}
				case float64, bool:
				default:
					return nil, malformed(whySyntax)
				}
			}
		}
	}
	return dates, nil
}

// legacy reports whether a parser of AWS's that is older than the grammar reads the
// statement as well.
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
			return malformed(whySidForm)
		case slices.Contains(sids, sid):
			return malformed(whySid)
		}
		sids = append(sids, sid)
	}
	return nil
}

// complete refuses a statement that lacks what the form needs, or has what it forbids.
func (st *written) complete(form Form) error {
	switch {
	case form != Trust && st.hasPrincipal:
		return malformed(whyPrincipal)
	case len(st.actions) == 0:
		return malformed(whyActions)
	case form != Trust && len(st.resources) == 0:
		return malformed(whyResources)
	case form == Trust && st.hasResource:
		return malformed(whyResource)
	case form == Trust && !st.hasPrincipal:
		return malformed(whyNobody)
	}
	return nil
}

func checkActions(form Form, actions []string) error {
	for _, action := range actions {
		if action == "*" {
			if form == Trust {
				return malformed(whyAssume)
			}
			continue
		}
		vendor, rest, ok := strings.Cut(action, ":")
		switch {
		case !ok:
			return malformed(whyVendor)
		case strings.Contains(rest, ":"):
			return malformed(whyColon)
		case strings.ContainsAny(vendor, " \t\n"):
			return malformed("Vendor " + vendor + " is not valid")
		case form == Trust && !strings.EqualFold(vendor, "sts"):
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
		if len(item) == 0 || item[0] != '"' || json.Unmarshal(item, &s) != nil {
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
