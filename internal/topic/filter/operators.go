package filter

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// operators compile the operand of a match expression, by its name.
var operators = map[string]func(name string, operand json.RawMessage) (rule, error){
	"prefix":             withText(prefix),
	"suffix":             withText(suffix),
	"equals-ignore-case": withText(ignoreCase),
	"wildcard":           compileWildcard,
	"anything-but":       compileAnythingBut,
	"numeric":            compileNumeric,
	"exists":             compileExists,
	"cidr":               compileCIDR,
}

// reserved says whether a key makes an object in a list a match expression,
// and the list no $or.
func reserved(key string) bool {
	_, operator := operators[key]
	return operator || key == "exactly"
}

func compileRules(list []json.RawMessage) ([]rule, error) {
	if len(list) == 0 {
		return nil, refuse("Empty arrays are not allowed")
	}
	rules := make([]rule, len(list))
	for i, e := range list {
		var err error
		if rules[i], err = compileRule(e); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

func compileRule(element json.RawMessage) (rule, error) {
	switch kindOf(element) {
	case '"':
		return rule{op: exactString, text: text(element)}, nil
	case '{':
		return compileExpression(element)
	case '[':
		return rule{}, refuse("Match value must be String, number, true, false, or null")
	case 't':
		return rule{op: isTrue}, nil
	case 'f':
		return rule{op: isFalse}, nil
	case 'n':
		return rule{op: isNull}, nil
	default:
		return compileNumber(text(element)), nil
	}
}

// compileNumber takes any number: one out of range, an account's id for
// instance, matches what is written the same.
func compileNumber(written string) rule {
	if n, ok := parseNumber(written); ok {
		return rule{op: exactNumber, number: n}
	}
	return rule{op: exactLiteral, text: written}
}

// compileExpression reads {"operator": operand}. The first key is looked at
// before the number of keys, as AWS does.
func compileExpression(element json.RawMessage) (rule, error) {
	pattern, _ := members(element)
	if len(pattern) == 0 {
		return rule{}, refuse("Match expression name not found")
	}
	name := pattern[0].name
	compile, ok := operators[name]
	if !ok {
		return rule{}, refuse("Unrecognized match type %s", name)
	}
	r, err := compile(name, pattern[0].value)
	switch {
	case err != nil:
		return rule{}, err
	case len(pattern) == 1:
		return r, nil
	case name == "numeric" || name == "anything-but":
		return rule{}, refuse("Too many elements in numeric expression")
	default:
		return rule{}, refuse("Only one key allowed in match expression")
	}
}

func withText(op op) func(string, json.RawMessage) (rule, error) {
	return func(name string, operand json.RawMessage) (rule, error) {
		if kindOf(operand) != '"' {
			return rule{}, refuse("%s match pattern must be a string", name)
		}
		return rule{op: op, text: text(operand)}, nil
	}
}

func compileWildcard(_ string, value json.RawMessage) (rule, error) {
	if kindOf(value) != '"' {
		return rule{}, refuse("wildcard match pattern must be a string")
	}
	parts, err := split(text(value))
	if err != nil {
		return rule{}, err
	}
	if len(parts) == 1 {
		return rule{op: exactString, text: parts[0]}, nil
	}
	return rule{op: wildcard, more: &operand{parts: parts}}, nil
}

// split takes a wildcard pattern apart at its asterisks. A backslash before an
// asterisk or a backslash makes it an ordinary character. Positions in the
// refusals are in bytes and count the quotation mark, as AWS's do.
func split(pattern string) (parts []string, err error) {
	var part strings.Builder
	for i := 0; i < len(pattern); i++ {
		next := byte(0)
		if i+1 < len(pattern) {
			next = pattern[i+1]
		}
		switch c := pattern[i]; {
		case c == '\\' && (next == '*' || next == '\\'):
			part.WriteByte(next)
			i++
		case c == '\\':
			return nil, refuse("Invalid escape character at pos %d", i+1)
		case c == '*' && next == '*':
			return nil, refuse("Consecutive wildcard characters at pos %d", i+1)
		case c == '*':
			parts = append(parts, part.String())
			part.Reset()
		default:
			part.WriteByte(c)
		}
	}
	return append(parts, part.String()), nil
}

func compileAnythingBut(_ string, value json.RawMessage) (rule, error) {
	switch kindOf(value) {
	case '{':
		return compileAnythingButPattern(value)
	case '[':
		return compileAnythingButList(elements(value))
	case '"', '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return compileAnythingButList([]json.RawMessage{value})
	default:
		return rule{}, refuse("Value of anything-but must be an array or single string/number value.")
	}
}

func compileAnythingButPattern(value json.RawMessage) (rule, error) {
	pattern, _ := members(value)
	if len(pattern) == 0 {
		return rule{}, refuse("Anything-But expression name not found")
	}
	var r rule
	var err error
	switch name, operand := pattern[0].name, pattern[0].value; {
	case name == "prefix" && kindOf(operand) != '"':
		err = refuse("prefix/suffix match pattern must be a string")
	case name == "prefix" && text(operand) == "":
		err = refuse("Null prefix/suffix not allowed")
	case name == "prefix":
		r = rule{op: notPrefix, text: text(operand)}
	case name == "wildcard":
		if r, err = compileWildcard(name, operand); err == nil {
			r = not(r)
		}
	default:
		err = refuse("Unsupported anything-but pattern: %s", name)
	}
	if err == nil && len(pattern) > 1 {
		err = refuse("Only one key allowed in match expression")
	}
	return r, err
}

// not turns a compiled wildcard around.
func not(r rule) rule {
	if r.op == exactString {
		return rule{op: notOneOf, more: &operand{strings: []string{r.text}}}
	}
	r.op = notWildcard
	return r
}

func compileAnythingButList(list []json.RawMessage) (rule, error) {
	o := &operand{}
	for _, e := range list {
		switch kindOf(e) {
		case '"':
			o.strings = append(o.strings, text(e))
		case '{', '[', 't', 'f', 'n':
			return rule{}, refuse("Inside anything but list, start|null|boolean is not supported.")
		default:
			n, err := number(e)
			if err != nil {
				return rule{}, err
			}
			o.numbers = append(o.numbers, n)
		}
	}
	if (len(o.strings) == 0) == (len(o.numbers) == 0) {
		return rule{}, refuse("Inside anything but list, either all values are number or string, mixed type is not supported")
	}
	slices.Sort(o.strings)
	slices.Sort(o.numbers)
	return rule{op: notOneOf, more: o}, nil
}

func compileExists(_ string, value json.RawMessage) (rule, error) {
	switch kindOf(value) {
	case 't':
		return rule{op: present}, nil
	case 'f':
		return rule{op: absent}, nil
	default:
		return rule{}, refuse("exists match pattern must be either true or false.")
	}
}

// compileNumeric reads ["=", n], [">", n] and its like, or a range such as
// [">=", n, "<", m]. The refusals come in the order in which AWS, reading the
// list once, comes upon the faults.
func compileNumeric(_ string, value json.RawMessage) (rule, error) {
	if kindOf(value) != '[' {
		return rule{}, refuse("Value of numeric must be an array.")
	}
	list := elements(value)
	if len(list) == 0 || kindOf(list[0]) != '"' {
		return rule{}, refuse("Invalid member in numeric match: %s", token(list, 0))
	}
	operator := text(list[0])
	if !slices.Contains([]string{"=", "<", "<=", ">", ">="}, operator) {
		return rule{}, refuse("Unrecognized numeric range operator: %s", operator)
	}
	bound, err := boundOf(operator, list, 1)
	if err != nil {
		return rule{}, err
	}
	low, high := int64(-maxNumber), int64(maxNumber)
	switch operator {
	case "=":
		low, high = bound, bound
	case "<":
		high = bound - 1
	case "<=":
		high = bound
	case ">":
		low = bound + 1
	case ">=":
		low = bound
	}
	if len(list) > 2 {
		if operator[0] != '>' {
			return rule{}, refuse("Too many elements in numeric expression")
		}
		if high, err = completeRange(bound, list); err != nil {
			return rule{}, err
		}
	}
	return rule{op: numeric, number: low, more: &operand{high: high}}, nil
}

// completeRange reads the upper end of a range that begins at bottom.
func completeRange(bottom int64, list []json.RawMessage) (high int64, err error) {
	if kindOf(list[2]) != '"' {
		return 0, refuse("Bad value in numeric range: %s", token(list, 2))
	}
	operator := text(list[2])
	if operator != "<" && operator != "<=" {
		return 0, refuse("Bad numeric range operator: %s", operator)
	}
	top, err := boundOf(operator, list, 3)
	switch {
	case err != nil:
		return 0, err
	case len(list) > 4:
		return 0, refuse("Too many terms in numeric range expression")
	case bottom >= top:
		return 0, refuse("Bottom must be less than top")
	case operator == "<":
		return top - 1, nil
	default:
		return top, nil
	}
}

// boundOf reads the number at i, which follows an operator.
func boundOf(operator string, list []json.RawMessage, i int) (int64, error) {
	if i >= len(list) || !isNumber(list[i]) {
		if operator == "=" {
			operator = "equals"
		}
		return 0, refuse("Value of %s must be numeric", operator)
	}
	return number(list[i])
}

func isNumber(v json.RawMessage) bool { return strings.IndexByte("-0123456789", kindOf(v)) >= 0 }

func number(v json.RawMessage) (int64, error) {
	n, ok := parseNumber(text(v))
	if !ok {
		return 0, refuse("Value must be between -1.0E9 and 1.0E9, inclusive")
	}
	return n, nil
}

// token is what AWS's parser calls an element in a refusal; behind the last one
// comes the bracket.
func token(list []json.RawMessage, i int) string {
	if i == len(list) {
		return "]"
	}
	if k := kindOf(list[i]); k == '{' || k == '[' {
		return string(k)
	}
	return text(list[i])
}

func compileCIDR(_ string, value json.RawMessage) (rule, error) {
	if kindOf(value) != '"' {
		return rule{}, refuse("prefix match pattern must be a string") // so AWS says, for cidr too
	}
	host, mask, ok := strings.Cut(text(value), "/")
	if !ok || mask == "" || strings.Contains(mask, "/") {
		return rule{}, refuse("Malformed CIDR, one '/' required")
	}
	bits, err := strconv.Atoi(mask)
	switch {
	case err != nil:
		return rule{}, refuse("Malformed CIDR, mask bits must be an integer")
	case bits < 0:
		return rule{}, refuse("Malformed CIDR, mask bits must not be negative")
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil || ip.Zone() != "":
		return rule{}, refuse("Nonstandard IP address: %s", host)
	case ip.Is4() && bits >= 32:
		return rule{}, refuse("IPv4 mask bits must be < 32")
	case bits >= 128:
		return rule{}, refuse("IPv6 mask bits must be < 128")
	}
	return rule{op: cidr, more: &operand{network: netip.PrefixFrom(ip, bits).Masked()}}, nil
}

// text is the content of a JSON string, or any other scalar as it is written.
func text(v json.RawMessage) string {
	if kindOf(v) != '"' {
		return string(bytes.TrimSpace(v))
	}
	var s string
	_ = json.Unmarshal(v, &s) // a string of valid JSON
	return s
}
