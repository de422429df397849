package filter

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"unicode"
)

// rule is one alternative for the value of a key.
type rule struct {
	op     op
	number int64    // exactNumber; numeric: the lower end
	text   string   // the operand of op; for a wildcard see split
	more   *operand // the operand of the rarer operators
}

type operand struct {
	high int64 // numeric: the upper end; both are included
	*set       // of all others
}

type set struct {
	network netip.Prefix // cidr
	strings []string     // anything-but, sorted
	numbers []int64      // anything-but, sorted
}

// op is an operator.
type op uint8

const (
	exactString  op = iota
	exactNumber     // a number in range, by value
	exactLiteral    // a number out of range, by its text
	isTrue
	isFalse
	isNull
	prefix
	suffix
	ignoreCase
	wildcard
	numeric
	cidr
	present
	absent
	notOneOf
	notPrefix
	notWildcard
)

// matches reports whether a value satisfies r. An anything-but is satisfied by every value, of
// any type, that it does not list.
func (r *rule) matches(v value) bool {
	switch r.op {
	case exactString:
		return v.kind == stringValue && v.text == r.text
	case exactNumber:
		return v.inRange && v.number == r.number
	case exactLiteral:
		return v.kind == numberValue && v.text == r.text
	case isTrue:
		return v.kind == trueValue
	case isFalse:
		return v.kind == falseValue
	case isNull:
		return v.kind == nullValue
	case prefix:
		return v.kind == stringValue && strings.HasPrefix(v.text, r.text)
	case suffix:
		return v.kind == stringValue && strings.HasSuffix(v.text, r.text)
	case ignoreCase:
		return v.kind == stringValue && strings.EqualFold(v.text, r.text)
	case wildcard:
		return v.kind == stringValue && glob(r.text, v.text)
	case numeric:
		return v.inRange && r.number <= v.number && v.number <= r.more.high
	case cidr:
		return v.kind == stringValue && within(r.more.network, v.text)
	case present:
		return true
	case absent:
		return false // a value is there
	case notOneOf:
		return !r.more.names(v)
	case notPrefix:
		return v.kind != stringValue || !strings.HasPrefix(v.text, r.text)
	case notWildcard:
		return v.kind != stringValue || !glob(r.text, v.text)
	default:
		return false
	}
}

// names reports whether an anything-but lists v.
func (o *set) names(v value) bool {
	var found bool
	switch {
	case v.kind == stringValue:
		_, found = slices.BinarySearch(o.strings, v.text)
	case v.inRange:
		_, found = slices.BinarySearch(o.numbers, v.number)
	}
	return found
}

// glob reports whether s consists of the parts of a compiled wildcard pattern, in order, with
// anything between them. There are at least two parts. It reads s once.
func glob(parts, s string) bool {
	first, rest, _ := strings.Cut(parts, string([]byte{anything}))
	i := strings.LastIndexByte(rest, anything)
	last := rest[i+1:]
	if len(s) < len(first)+len(last) || !strings.HasPrefix(s, first) || !strings.HasSuffix(s, last) {
		return false
	}
	s = s[len(first) : len(s)-len(last)]
	for rest = rest[:i+1]; rest != ""; {
		end := strings.IndexByte(rest, anything)
		if end > len(s) {
			return false
		}
		at := strings.Index(s, rest[:end])
		if at < 0 {
			return false
		}
		s, rest = s[at+end:], rest[end+1:]
	}
	return true
}

func within(network netip.Prefix, text string) bool {
	ip, ok := address(text)
	return ok && network.Contains(ip)
}

// address parses an IP address without a zone. Obvious non-addresses are recognised without the
// cost of ParseAddr's error.
func address(text string) (ip netip.Addr, ok bool) {
	if len(text) > len("ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255") || !strings.ContainsAny(text, ".:") {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(text)
	return ip, err == nil && ip.Zone() == ""
}

// fold is the common form of strings that are equal under strings.EqualFold.
func fold(s string) string {
	return strings.Map(func(r rune) rune {
		first := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			first = min(first, next)
		}
		return first
	}, s)
}

// value is a scalar of a message: an attribute's, or that of an element of a body.
type value struct {
	kind    valueKind
	inRange bool   // a number that number holds
	number  int64  // see parseNumber
	text    string // of a string; the source text of a number
}

type valueKind uint8

const (
	stringValue valueKind = iota
	numberValue
	trueValue
	falseValue
	nullValue
)

func numberOf(text string) value {
	n, ok := parseNumber(text)
	return value{kind: numberValue, inRange: ok, number: n, text: text}
}

// scalar is a scalar of a decoded document, whose numbers are json.Number.
func scalar(v any) value {
	switch v := v.(type) {
	case string:
		return value{text: v}
	case json.Number:
		return numberOf(string(v))
	case bool:
		if v {
			return value{kind: trueValue}
		}
		return value{kind: falseValue}
	default:
		return value{kind: nullValue}
	}
}
