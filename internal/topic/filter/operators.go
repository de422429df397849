package filter

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// operators compile the operand of a match expression, by its name.
var operators = map[string]func(c *compiler, name string, operand at) (rule, error){
	"prefix":             withText(prefix),
	"suffix":             withText(suffix),
	"equals-ignore-case": withText(ignoreCase),
	"wildcard":           (*compiler).wildcard,
	"anything-but":       (*compiler).anythingBut,
	"numeric":            (*compiler).numeric,
	"exists":             (*compiler).exists,
	"cidr":               (*compiler).cidr,
}

// reserved reports whether a key makes an object in a list a match expression, so that the list
// is no $or.
func reserved(key string) bool {
	_, operator := operators[key]
	return operator || key == "exactly"
}

func (c *compiler) rules(of at, list []at) ([]rule, error) {
	if len(list) == 0 {
		return nil, c.refuse(c.behind(of), ErrEmptyArray)
	}
	rules := make([]rule, len(list))
	for i, e := range list {
		var err error
		if rules[i], err = c.rule(e); err != nil {
			return nil, err
		}
	}
	return rules, nil
}

func (c *compiler) rule(element at) (rule, error) {
	switch c.kind(element) {
	case '"':
		return rule{op: exactString, text: c.text(element)}, nil
	case '{':
		return c.expression(element)
	case '[':
		return rule{}, c.refuse(c.reached(element), ErrValue)
	case 't':
		return rule{op: isTrue}, nil
	case 'f':
		return rule{op: isFalse}, nil
	case 'n':
		return rule{op: isNull}, nil
	default:
		return compileNumber(c.text(element)), nil
	}
}

// compileNumber accepts any number: one out of range, such as an account's id, matches its own
// text.
func compileNumber(written string) rule {
	if n, ok := parseNumber(written); ok {
		return rule{op: exactNumber, number: n}
	}
	return rule{op: exactLiteral, text: written}
}

// expression compiles {"operator": operand}. It checks the first key before the number of keys,
// as AWS does.
func (c *compiler) expression(element at) (rule, error) {
	pattern := c.members(element)
	if len(pattern) == 0 {
		return rule{}, c.refuse(c.behind(element), ErrNoOperator)
	}
	name := pattern[0].name
	compile, ok := operators[name]
	if !ok {
		return rule{}, c.refuse(c.reached(pattern[0].value), ErrOperator.With(name))
	}
	r, err := compile(c, name, pattern[0].value)
	switch {
	case err != nil:
		return rule{}, err
	case len(pattern) == 1:
		return r, nil
	case name == "numeric" || name == "anything-but":
		return rule{}, c.refuse(c.reached(pattern[1].value), ErrNumericKeys)
	default:
		return rule{}, c.refuse(c.reached(pattern[1].value), ErrKeys)
	}
}

func withText(op op) func(*compiler, string, at) (rule, error) {
	return func(c *compiler, name string, operand at) (rule, error) {
		if c.kind(operand) != '"' {
			return rule{}, c.refuse(c.reached(operand), ErrPattern.With(name))
		}
		return rule{op: op, text: c.text(operand)}, nil
	}
}

func (c *compiler) wildcard(_ string, value at) (rule, error) {
	if c.kind(value) != '"' {
		return rule{}, c.refuse(c.reached(value), ErrWildcard)
	}
	parts, err := split(c.text(value))
	if err != nil {
		return rule{}, c.refuse(c.behind(value), err)
	}
	if strings.IndexByte(parts, anything) < 0 {
		return rule{op: exactString, text: parts}, nil
	}
	return rule{op: wildcard, text: parts}, nil
}

// anything represents an asterisk in a compiled wildcard pattern. No text contains this byte,
// as texts are UTF-8.
const anything = 0xff

// split compiles a wildcard pattern: its parts separated by anything. A backslash before an
// asterisk or a backslash makes it an ordinary character. Positions in the errors are in bytes
// and count the quotation mark, as AWS's do.
func split(pattern string) (parts string, err error) {
	var out strings.Builder
	out.Grow(len(pattern))
	for i := 0; i < len(pattern); i++ {
		next := byte(0)
		if i+1 < len(pattern) {
			next = pattern[i+1]
		}
		switch c := pattern[i]; {
		case c == '\\' && (next == '*' || next == '\\'):
			out.WriteByte(next)
			i++
		case c == '\\':
			return "", ErrEscape.With(i + 1)
		case c == '*' && next == '*':
			return "", ErrWildcards.With(i + 1)
		case c == '*':
			out.WriteByte(anything)
		default:
			out.WriteByte(c)
		}
	}
	return out.String(), nil
}

func (c *compiler) anythingBut(_ string, value at) (rule, error) {
	switch c.kind(value) {
	case '{':
		return c.anythingButPattern(value)
	case '[':
		return c.anythingButList(value, c.elements(value))
	case '"', '0':
		return c.anythingButList(value, []at{value})
	default:
		return rule{}, c.refuse(c.reached(value), ErrButValue)
	}
}

func (c *compiler) anythingButPattern(value at) (rule, error) {
	pattern := c.members(value)
	if len(pattern) == 0 {
		return rule{}, c.refuse(c.behind(value), ErrButNoOperator)
	}
	var r rule
	var err error
	switch name, operand := pattern[0].name, pattern[0].value; {
	case name == "prefix" && c.kind(operand) != '"':
		err = c.refuse(c.reached(operand), ErrButPattern)
	case name == "prefix" && c.text(operand) == "":
		err = c.refuse(c.behind(operand), ErrButEmpty)
	case name == "prefix":
		r = rule{op: notPrefix, text: c.text(operand)}
	case name == "wildcard":
		if r, err = c.wildcard(name, operand); err == nil {
			r = not(r)
		}
	default:
		err = c.refuse(c.reached(operand), ErrButOperator.With(name))
	}
	if err == nil && len(pattern) > 1 {
		err = c.refuse(c.reached(pattern[1].value), ErrKeys)
	}
	return r, err
}

// not negates a compiled wildcard.
func not(r rule) rule {
	if r.op == exactString {
		return rule{op: notOneOf, more: &operand{set: &set{strings: []string{r.text}}}}
	}
	r.op = notWildcard
	return r
}

func (c *compiler) anythingButList(of at, list []at) (rule, error) {
	o := &set{}
	for _, e := range list {
		switch c.kind(e) {
		case '"':
			o.strings = append(o.strings, c.text(e))
		case '{', '[', 't', 'f', 'n':
			return rule{}, c.refuse(c.reached(e), ErrButElement)
		default:
			n, err := c.number(e, c.reached(e))
			if err != nil {
				return rule{}, err
			}
			o.numbers = append(o.numbers, n)
		}
	}
	if (len(o.strings) == 0) == (len(o.numbers) == 0) {
		return rule{}, c.refuse(c.behind(of), ErrButMixed)
	}
	slices.Sort(o.strings)
	slices.Sort(o.numbers)
	return rule{op: notOneOf, more: &operand{set: o}}, nil
}

func (c *compiler) exists(_ string, value at) (rule, error) {
	switch c.kind(value) {
	case 't':
		return rule{op: present}, nil
	case 'f':
		return rule{op: absent}, nil
	default:
		return rule{}, c.refuse(c.reached(value), ErrExists)
	}
}

// numeric compiles ["=", n], [">", n] and the like, or a range such as [">=", n, "<", m]. The
// errors come in the order in which AWS finds them, reading the list once.
func (c *compiler) numeric(_ string, value at) (rule, error) {
	if c.kind(value) != '[' {
		return rule{}, c.refuse(c.reached(value), ErrNumeric)
	}
	list := c.elements(value)
	if len(list) == 0 || c.kind(list[0]) != '"' {
		return rule{}, c.refuse(c.reachedIn(value, list, 0), ErrNumericMember.With(c.token(list, 0)))
	}
	operator := c.text(list[0])
	if !slices.Contains([]string{"=", "<", "<=", ">", ">="}, operator) {
		return rule{}, c.refuse(c.reachedIn(value, list, 1), ErrRangeOperator.With(operator))
	}
	bound, err := c.boundOf(operator, value, list, 1)
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
			return rule{}, c.refuse(c.reached(list[2]), ErrNumericKeys)
		}
		if high, err = c.completeRange(bound, value, list); err != nil {
			return rule{}, err
		}
	}
	return rule{op: numeric, number: low, more: &operand{high: high}}, nil
}

// completeRange compiles the upper end of a range that begins at bottom.
func (c *compiler) completeRange(bottom int64, of at, list []at) (high int64, err error) {
	if c.kind(list[2]) != '"' {
		return 0, c.refuse(c.reached(list[2]), ErrRangeValue.With(c.token(list, 2)))
	}
	operator := c.text(list[2])
	if operator != "<" && operator != "<=" {
		return 0, c.refuse(c.behind(list[2]), ErrRangeEnd.With(operator))
	}
	top, err := c.boundOf(operator, of, list, 3)
	switch {
	case err != nil:
		return 0, err
	case len(list) > 4:
		return 0, c.refuse(c.reached(list[4]), ErrRangeTerms)
	case bottom >= top:
		return 0, c.refuse(c.behind(of), ErrRangeEmpty)
	case operator == "<":
		return top - 1, nil
	default:
		return top, nil
	}
}

// boundOf compiles the number at i, which follows an operator.
func (c *compiler) boundOf(operator string, of at, list []at, i int) (int64, error) {
	if i >= len(list) || c.kind(list[i]) != '0' {
		if operator == "=" {
			operator = "equals"
		}
		return 0, c.refuse(c.reachedIn(of, list, i), ErrNumericValue.With(operator))
	}
	return c.number(list[i], c.behind(of))
}

// number compiles a number; offset is the position of AWS's error if it is out of range.
func (c *compiler) number(v at, offset uint32) (int64, error) {
	n, ok := parseNumber(c.text(v))
	if !ok {
		return 0, c.refuse(offset, ErrNumericRange)
	}
	return n, nil
}

// token is the name of an element in the errors of AWS's parser; after the last one it is the
// bracket.
func (c *compiler) token(list []at, i int) string {
	if i == len(list) {
		return "]"
	}
	if k := c.kind(list[i]); k == '{' || k == '[' {
		return string(k)
	}
	return c.text(list[i])
}

func (c *compiler) cidr(_ string, value at) (rule, error) {
	if c.kind(value) != '"' {
		return rule{}, c.refuse(c.reached(value), ErrCIDR) // AWS's error, also for cidr
	}
	host, mask, ok := strings.Cut(c.text(value), "/")
	if !ok || mask == "" || strings.Contains(mask, "/") {
		return rule{}, ErrCIDRSlash
	}
	bits, err := strconv.Atoi(mask)
	switch {
	case err != nil:
		return rule{}, ErrCIDRMask
	case bits < 0:
		return rule{}, ErrCIDRNegative
	}
	ip, err := netip.ParseAddr(host)
	switch {
	case err != nil || ip.Zone() != "":
		return rule{}, ErrCIDRAddress.With(host)
	case ip.Is4() && bits >= 32:
		return rule{}, ErrCIDRMask4
	case bits >= 128:
		return rule{}, ErrCIDRMask6
	}
	return rule{op: cidr, more: &operand{set: &set{network: netip.PrefixFrom(ip, bits).Masked()}}}, nil
}
