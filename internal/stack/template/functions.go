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

const (
	badRef    = "Template error: All References must be of type string"
	badGetAtt = "Template error: every Fn::GetAtt object requires two non-empty parameters, the resource name and the resource attribute"
	badSub    = "Template error: One or more Fn::Sub intrinsic functions don't specify expected arguments. Specify a string as first argument, and an optional second argument to specify a mapping of values to replace in the string"
	badSubKey = "Template error: every key of the context object of every Fn::Sub object must contain only alphanumeric characters and underscores"
	badSubVar = "Template error: variable names in Fn::Sub syntax must contain only alphanumeric characters, underscores, periods, and colons"
	badJoin   = "Template error: every Fn::Join object requires two parameters, (1) a string delimiter and (2) a list of strings to be joined or a function that returns a list of strings (such as Fn::GetAZs) to be joined."
	badSplit  = "Template error: every Fn::Split object requires two parameters, (1) a string delimiter and (2) a string to be split or a function that returns a string to be split."
	badIndex  = "Template error: Fn::Select requires a list argument with a valid index value as its first element"
	badSelect = "Template error: Fn::Select requires a list argument with two elements: an integer index and a list"
	badIf     = "Template error: Fn::If requires a list argument with three elements"
	badIfName = "Template error: Fn::If requires a list argument with the first element being a condition"
	badEquals = "Template error: Fn::Equals requires a list argument with two elements"
	badNot    = "Template error: Fn::Not requires a list argument with one element"
	badNotArg = "Template error: Fn::Not requires a list argument with one function token"
	badFind   = "Template error: every Fn::FindInMap object requires three parameters, the map name, map key and the attribute for return value"
	badBase64 = "Template error: every Fn::Base64 object must have a String-typed value."
	badZones  = "Template error: every Fn::GetAZs object must have a String-typed value."
	badCidr   = "Template error: every Fn::Cidr object requires an IP address block, a count from 1 to 256 and the number of bits of each"
	badImport = "Template error: the attribute in Fn::ImportValue must not depend on any resources, imported values, or Fn::GetAZs"
	badLength = "Template error: every Fn::Length object must have a list as its value."

	onlyConditions = "Template format error: Conditions can only be boolean operations on parameters and other conditions"
	supported      = " Supported functions are: [Fn::Base64, Fn::GetAtt, Fn::GetAZs, Fn::ImportValue, Fn::Join, Fn::Split, Fn::FindInMap, Fn::Select, Ref, Fn::Equals, Fn::If, Fn::Not, Condition, Fn::And, Fn::Or, Fn::Contains, Fn::EachMemberEquals, Fn::EachMemberIn, Fn::ValueOf, Fn::ValueOfAll, Fn::RefAll, Fn::Sub, Fn::Cidr]"
)

func badCount(name string) string {
	return "Template error: every " + name + " object requires a list of at least 2 and at most 10 boolean parameters."
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
	broken := ""
	switch name {
	case fnRef:
		if arg.Kind != document.String && (!t.extended || arg.Kind != document.Map) {
			broken = badRef
		}
	case fnCondition:
		if arg.Kind != document.String {
			broken = "Template error: All Conditions must be of type string"
		}
	case fnGetAtt:
		if items != 2 || arg.Items[0].Kind != document.String || arg.Items[0].Text == "" || arg.Items[1].Text == "" && arg.Items[1].Kind != document.Map {
			broken = badGetAtt
		}
	case fnSub:
		switch {
		case arg.Kind == document.String:
		case items != 2 || arg.Items[0].Kind != document.String || arg.Items[1].Kind != document.Map:
			broken = badSub
		case slices.ContainsFunc(arg.Items[1].Members, func(m document.Member) bool { return !word.MatchString(m.Name) }):
			broken = badSubKey
		}
	case fnJoin:
		if items != 2 || !arg.Items[0].Scalar() && arg.Items[0].Kind != document.Map {
			broken = badJoin
		}
	case fnSplit:
		if items != 2 || !arg.Items[0].Scalar() && arg.Items[0].Kind != document.Map {
			broken = badSplit
		}
	case fnSelect:
		if items < 1 {
			broken = badIndex
		} else if items != 2 {
			broken = badSelect
		}
	case fnIf:
		if items < 1 || arg.Items[0].Kind != document.String {
			broken = badIfName
		} else if items != 3 {
			broken = badIf
		}
	case fnEquals:
		if items != 2 {
			broken = badEquals
		}
	case fnAnd, fnOr:
		if items < 2 || items > 10 || slices.ContainsFunc(arg.Items, func(item *Node) bool { return !boolean(item) }) {
			broken = badCount(name)
		}
	case fnNot:
		if items != 1 {
			broken = badNot
		} else if !boolean(arg.Items[0]) {
			broken = badNotArg
		}
	case fnFindInMap:
		if items != 3 && (items != 4 || !t.extended || arg.Items[3].Get("DefaultValue") == nil) {
			broken = badFind
		}
	case fnCidr:
		if items != 2 && items != 3 {
			broken = badCidr
		}
	case fnBase64, fnGetAZs, fnImport:
	case fnToJSON, fnLength:
		if !t.extended {
			broken = unsupported(name)
		}
	case fnContains, fnEachMemberEquals, fnEachMemberIn:
		if items != 2 {
			broken = "Template error: " + name + " requires a list argument with two elements"
		}
	case fnTransform:
		if transform := arg.Get("Name"); transform != nil {
			broken = "No transform named " + transform.Text + " found."
			break
		}
		broken = unsupported(name)
	default:
		broken = unsupported(name)
	}
	if broken != "" {
		return n.RefuseText(broken)
	}
	return nil
}

func unsupported(name string) string {
	return "Template error: Encountered unsupported function: " + name + supported
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
