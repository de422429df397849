package pattern

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"godwit.dev/godwit/internal/decimal"
)

// operator compares a value of an event with one of a pattern.
type operator uint8

const (
	equal operator = iota
	notEqual
	less
	lessEqual
	greater
	greaterEqual
)

// operators are tried in this order: the longer ones first.
var operators = []struct {
	text string
	op   operator
}{{"!=", notEqual}, {"<=", lessEqual}, {">=", greaterEqual}, {"=", equal}, {"<", less}, {">", greater}}

// comparison is an operator with its right side.
type comparison struct {
	op     operator
	text   string         // may hold wildcards
	number *float64       // the value of text, if it is a number without quotes
	re     *regexp.Regexp // instead of text; may be nil
}

var errNumber = invalid("<, <=, > and >= want a number")

// comparison parses an operator and its right side, which ends before a character of stop; ok
// is false, and nothing is read, if there is no operator.
func (s *scanner) comparison(stop string) (c *comparison, ok bool, err error) {
	c = &comparison{}
	for _, o := range operators {
		if s.take(o.text) {
			c.op, ok = o.op, true
			break
		}
	}
	if !ok {
		return nil, false, nil
	}
	s.space()
	switch s.peek() {
	case '"', '\'':
		c.text, err = s.quoted()
	case '%':
		if s.regexps == maxRegexps {
			return nil, true, invalid("it has more than 2 regular expressions")
		}
		c.re, err = s.regex()
	default:
		c.text = s.while(func(r rune) bool {
			return !unicode.IsSpace(r) && !strings.ContainsRune(stop, r) && !strings.ContainsRune(`"'()[]{}<>=!%\&|`, r)
		})
		if c.text == "" {
			return nil, true, s.unexpected()
		}
		if f, ok := decimal.Parse(c.text); ok {
			c.number = &f
		}
	}
	if err != nil {
		return nil, true, err
	}
	if c.op >= less && c.number == nil {
		return nil, true, errNumber
	}
	return c, true, nil
}

// field compares a field of a space-delimited event.
func (c *comparison) field(text string) bool {
	if c.number != nil {
		if f, ok := decimal.Parse(text); ok {
			return c.compare(f)
		}
	}
	if c.op >= less {
		return false
	}
	return c.same(text) == (c.op == equal)
}

// value compares a value of a JSON event. Only scalars are compared, whatever the operator;
// scalars other than strings are compared by their text.
func (c *comparison) value(v any) bool {
	switch v := v.(type) {
	case string:
		return c.op < less && c.same(v) == (c.op == equal)
	case json.Number:
		if c.number != nil {
			f, err := v.Float64()
			return err == nil && c.compare(f)
		}
		return c.op < less && c.same(v.String()) == (c.op == equal)
	case bool:
		return c.op < less && c.same(strconv.FormatBool(v)) == (c.op == equal)
	default:
		return false
	}
}

func (c *comparison) compare(f float64) bool {
	n := *c.number
	switch c.op {
	case equal:
		return f == n
	case notEqual:
		return f != n
	case less:
		return f < n
	case lessEqual:
		return f <= n
	case greater:
		return f > n
	default:
		return f >= n
	}
}

// same compares texts; * matches anything.
func (c *comparison) same(text string) bool {
	if c.re != nil {
		return c.re.MatchString(text)
	}
	first, rest, wild := strings.Cut(c.text, "*")
	if !wild {
		return text == c.text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	for {
		part, more, wild := strings.Cut(rest, "*")
		if !wild {
			return strings.HasSuffix(text, part)
		}
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text, rest = text[at+len(part):], more
	}
}

// maxDepth bounds nested parentheses.
const maxDepth = 64

var errDepth = invalid("too many parentheses")

// conditions parses tests joined by && and ||, of which && has precedence, and grouped by
// parentheses. one parses a test.
func conditions[T any](s *scanner, depth int, one func() (func(T) bool, error)) (func(T) bool, error) {
	if depth > maxDepth {
		return nil, errDepth
	}
	operand := func() (func(T) bool, error) {
		if !s.take("(") {
			return one()
		}
		inner, err := conditions(s, depth+1, one)
		if err == nil && !s.take(")") {
			err = s.unexpected()
		}
		return inner, err
	}
	product := func() (func(T) bool, error) {
		left, err := operand()
		for err == nil && s.take("&&") {
			var right func(T) bool
			if right, err = operand(); err == nil {
				before := left
				left = func(v T) bool { return before(v) && right(v) }
			}
		}
		return left, err
	}
	left, err := product()
	for err == nil && s.take("||") {
		var right func(T) bool
		if right, err = product(); err == nil {
			before := left
			left = func(v T) bool { return before(v) || right(v) }
		}
	}
	return left, err
}
