package template

import (
	"regexp"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/stack/document"
)

// Names of functions, and of the parameters that every template has.
const (
	fnRef       = "Ref"
	fnCondition = "Condition"
	fnGetAtt    = "Fn::GetAtt"
	fnSub       = "Fn::Sub"
	fnJoin      = "Fn::Join"
	fnSplit     = "Fn::Split"
	fnSelect    = "Fn::Select"
	fnIf        = "Fn::If"
	fnEquals    = "Fn::Equals"
	fnAnd       = "Fn::And"
	fnOr        = "Fn::Or"
	fnNot       = "Fn::Not"
	fnFindInMap = "Fn::FindInMap"
	fnImport    = "Fn::ImportValue"
	fnBase64    = "Fn::Base64"
	fnCidr      = "Fn::Cidr"
	fnGetAZs    = "Fn::GetAZs"
	fnToJSON    = "Fn::ToJsonString"
	fnLength    = "Fn::Length"
	fnTransform = "Fn::Transform"

	// Only of rules.
	fnContains         = "Fn::Contains"
	fnEachMemberEquals = "Fn::EachMemberEquals"
	fnEachMemberIn     = "Fn::EachMemberIn"

	forEach = "Fn::ForEach::"

	noValueName = "AWS::NoValue"
)

var pseudo = []string{
	"AWS::AccountId", "AWS::NotificationARNs", noValueName, "AWS::Partition", "AWS::Region", "AWS::StackId", "AWS::StackName", "AWS::URLSuffix",
}

// function is the name and the argument of a function; the name is empty for a plain value.
// Condition is one only within conditions: policies have members of that name.
func function(n *Node, inCondition bool) (string, *Node) {
	name, arg := n.Only()
	switch {
	case name == fnRef, strings.HasPrefix(name, "Fn::"):
		return name, arg
	case name == fnCondition && inCondition:
		return name, arg
	}
	return "", nil
}

// boolean reports whether a node is a function with a truth value.
func boolean(n *Node) bool {
	name, _ := function(n, true)
	switch name {
	case fnCondition, fnEquals, fnAnd, fnOr, fnNot, fnContains, fnEachMemberEquals, fnEachMemberIn:
		return true
	}
	return false
}

// shape checks the arguments of a function, as far as they are literal.
func (t *Template) shape(name string, n, arg *Node) error {
	items := -1 // for anything but a list
	if arg.Kind == document.List {
		items = len(arg.Items)
	}
	var broken error
	switch name {
	case fnRef:
		if arg.Kind != document.String && (!t.extended || arg.Kind != document.Map) {
			broken = ErrRef
		}
	case fnCondition:
		if arg.Kind != document.String {
			broken = ErrCondition
		}
	case fnGetAtt:
		if items != 2 || arg.Items[0].Kind != document.String || arg.Items[0].Text == "" || arg.Items[1].Text == "" && arg.Items[1].Kind != document.Map {
			broken = ErrGetAtt
		}
	case fnSub:
		switch {
		case arg.Kind == document.String:
		case items != 2 || arg.Items[0].Kind != document.String || arg.Items[1].Kind != document.Map:
			broken = ErrSub
		case slices.ContainsFunc(arg.Items[1].Members, func(m document.Member) bool { return !word.MatchString(m.Name) }):
			broken = ErrSubKey
		}
	case fnJoin:
		if items != 2 || !arg.Items[0].Scalar() && arg.Items[0].Kind != document.Map {
			broken = ErrJoin
		}
	case fnSplit:
		if items != 2 || !arg.Items[0].Scalar() && arg.Items[0].Kind != document.Map {
			broken = ErrSplit
		}
	case fnSelect:
		if items < 1 {
			broken = ErrIndex
		} else if items != 2 {
			broken = ErrSelect
		}
	case fnIf:
		if items < 1 || arg.Items[0].Kind != document.String {
			broken = ErrIfCondition
		} else if items != 3 {
			broken = ErrIf
		}
	case fnEquals:
		if items != 2 {
			broken = ErrEquals
		}
	case fnAnd, fnOr:
		if items < 2 || items > 10 || slices.ContainsFunc(arg.Items, func(item *Node) bool { return !boolean(item) }) {
			broken = ErrOperands.With(name)
		}
	case fnNot:
		if items != 1 {
			broken = ErrNot
		} else if !boolean(arg.Items[0]) {
			broken = ErrNotValue
		}
	case fnFindInMap:
		if items != 3 && (items != 4 || !t.extended || arg.Items[3].Get("DefaultValue") == nil) {
			broken = ErrFindInMap
		}
	case fnCidr:
		if items != 2 && items != 3 {
			broken = ErrCIDR
		}
	case fnBase64, fnGetAZs, fnImport:
	case fnToJSON, fnLength:
		if !t.extended {
			broken = ErrFunction.With(name)
		}
	case fnContains, fnEachMemberEquals, fnEachMemberIn:
		if items != 2 {
			broken = ErrTwoElements.With(name)
		}
	case fnTransform:
		if transform := arg.Get("Name"); transform != nil {
			broken = ErrNoTransform.With(transform.Text)
			break
		}
		broken = ErrFunction.With(name)
	default:
		broken = ErrFunction.With(name)
	}
	if broken != nil {
		return n.Refuse(broken)
	}
	return nil
}

var word = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

// part is a part of the text of an Fn::Sub: literal, or the name of a variable.
type part struct {
	text     string
	variable bool
}

var variableName = regexp.MustCompile(`^[A-Za-z0-9_.:]+$`)

// substitutions parses the text of an Fn::Sub. ok is false for a variable without a name.
func substitutions(s string) (parts []part, ok bool) {
	for s != "" {
		at := strings.Index(s, "${")
		if at < 0 {
			return append(parts, part{text: s}), true
		}
		end := strings.IndexByte(s[at:], '}')
		if end < 0 {
			return append(parts, part{text: s}), true
		}
		name := s[at+2 : at+end]
		if at > 0 {
			parts = append(parts, part{text: s[:at]})
		}
		s = s[at+end+1:]
		if literal, found := strings.CutPrefix(name, "!"); found {
			parts = append(parts, part{text: "${" + literal + "}"})
			continue
		}
		name = strings.TrimSpace(name)
		if !variableName.MatchString(name) {
			return nil, false
		}
		parts = append(parts, part{text: name, variable: true})
	}
	return parts, true
}

// subText is the text of an Fn::Sub and its map of variables, or nil.
func subText(arg *Node) (template, variables *Node) {
	if arg.Kind == document.List {
		return arg.Items[0], arg.Items[1]
	}
	return arg, nil
}
