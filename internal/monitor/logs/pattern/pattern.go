// Package pattern compiles and matches the filter patterns of CloudWatch Logs, which
// FilterLogEvents selects events by. Source: the CloudWatch Logs user guide, "Filter pattern
// syntax".
//
// A pattern is terms, a JSON pattern in braces, or a space-delimited pattern in brackets. The
// package is pure. The cost of matching is linear in the event, times the pattern's; regular
// expressions have no backtracking, and their compiled size is bounded.
package pattern

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLength bounds a pattern, in characters.
const MaxLength = 1024

// The bounds of a JSON or space-delimited pattern.
const (
	maxRegexps   = 2
	maxSteps     = 300 // compiled size of regular expressions; x{255} has 255
	maxWildcards = 3   // of selectors
)

// Pattern is a compiled pattern.
type Pattern struct {
	match func(*Event) bool
	field func(message, name string) (value string, ok bool) // nil: it is not space-delimited
	names []string                                           // of a space-delimited one's fields
	cost  int
	regex bool
}

// Match reports whether an event matches.
func (p *Pattern) Match(e *Event) bool { return p.match(e) }

// Cost is the cost of Match relative to a short pattern, 1 to 41.
func (p *Pattern) Cost() int { return p.cost }

// Regexp reports whether a pattern has a regular expression.
func (p *Pattern) Regexp() bool { return p.regex }

// Parse compiles a pattern. The empty one matches every event. The text of an error is for the
// author of the pattern.
func Parse(text string) (*Pattern, error) {
	if utf8.RuneCountInString(text) > MaxLength {
		return nil, invalid("it has more than 1024 characters")
	}
	s := &scanner{text: text}
	s.space()
	p := &Pattern{}
	var err error
	switch s.peek() {
	case '{':
		p.match, err = parseJSON(s)
	case '[':
		err = p.parseFields(s)
	default:
		p.match, err = parseTerms(s)
	}
	if err != nil {
		return nil, err
	}
	p.regex = s.regexps > 0
	p.cost = 1 + s.steps/10 + len(text)/(MaxLength/10)
	return p, nil
}

// invalid is the error of a pattern, with the reason.
type invalid string

func (i invalid) Error() string { return "Invalid filter pattern: " + string(i) }

// badCharacter is the error of a character in a pattern, in AWS's words.
type badCharacter rune

func (c badCharacter) Error() string { return "Invalid character(s) in term '" + string(c) + "'" }

// scanner reads a pattern.
type scanner struct {
	text               string
	at                 int
	regexps, wildcards int // so far
	steps              int // compiled size of the regular expressions
}

const end = -1 // result of peek after the text

func (s *scanner) peek() rune {
	if s.at >= len(s.text) {
		return end
	}
	r, _ := utf8.DecodeRuneInString(s.text[s.at:])
	return r
}

func (s *scanner) next() rune {
	r, size := rune(end), 0
	if s.at < len(s.text) {
		r, size = utf8.DecodeRuneInString(s.text[s.at:])
	}
	s.at += size
	return r
}

func (s *scanner) space() {
	for unicode.IsSpace(s.peek()) {
		s.next()
	}
}

// take skips token if it comes next, after space.
func (s *scanner) take(token string) bool {
	s.space()
	if !strings.HasPrefix(s.text[s.at:], token) {
		return false
	}
	s.at += len(token)
	return true
}

// word skips a keyword, in any case.
func (s *scanner) word(keyword string) bool {
	s.space()
	rest := s.text[s.at:]
	if len(rest) < len(keyword) || !strings.EqualFold(rest[:len(keyword)], keyword) {
		return false
	}
	if r, _ := utf8.DecodeRuneInString(rest[len(keyword):]); len(rest) > len(keyword) && isWord(r) {
		return false
	}
	s.at += len(keyword)
	return true
}

// while reads the characters that f accepts.
func (s *scanner) while(f func(rune) bool) string {
	from := s.at
	for r := s.peek(); r != end && f(r); r = s.peek() {
		s.next()
	}
	return s.text[from:s.at]
}

func isWord(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// unexpected is the error for the next character.
func (s *scanner) unexpected() error {
	if s.peek() == end {
		return invalid("it ends too early")
	}
	return badCharacter(s.peek())
}

// quoted reads a text in quote characters, in which a backslash escapes a quote or a backslash.
func (s *scanner) quoted() (string, error) {
	quote := s.next()
	var b strings.Builder
	for {
		switch r := s.next(); r {
		case end:
			return "", s.unexpected()
		case quote:
			return b.String(), nil
		case '\\':
			if r := s.peek(); r == quote || r == '\\' {
				b.WriteRune(s.next())
				continue
			}
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
}

// compile compiles a regular expression. The compiled form of a short one with repetitions may
// be a hundred times as long, and each of its steps runs for each character.
func (s *scanner) compile(text string) (*regexp.Regexp, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, invalid("the regular expression is not valid")
	}
	if s.steps += steps(parsed); s.steps > maxSteps {
		return nil, invalid("the regular expression repeats too much")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, invalid("the regular expression is not valid")
	}
	return re, nil
}

// steps is the approximate compiled size of an expression.
func steps(re *syntax.Regexp) (n int) {
	for _, sub := range re.Sub {
		n = min(n+steps(sub), maxSteps+1)
	}
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpRepeat:
		return min(max(re.Min, re.Max, 1)*max(n, 1), maxSteps+1)
	default:
		return n + 1
	}
}

// regex parses %an expression%. Spaces are not among the characters that AWS lists, but occur
// in its examples.
func (s *scanner) regex() (*regexp.Regexp, error) {
	s.next() // %
	var b strings.Builder
	inClass := false
	for {
		r := s.peek()
		switch {
		case r == end:
			return nil, s.unexpected()
		case r == '%':
			s.next()
			s.regexps++
			return s.compile(b.String())
		case r == '\\':
			s.next()
			if escaped := s.peek(); escaped >= utf8.RuneSelf || escaped <= ' ' || isWord(escaped) && !strings.ContainsRune("dDsSwWx", escaped) {
				return nil, s.unexpected()
			}
			b.WriteByte('\\')
		case r >= utf8.RuneSelf || !isWord(r) && !strings.ContainsRune(" :_#=@/;,-^$?[]{}|*+.", r):
			return nil, s.unexpected()
		case r == '{' && !inClass && strings.HasPrefix(s.text[s.at:], "{,"):
			s.next()
			b.WriteString("{0") // the form that Go needs
			continue
		case r == '[':
			inClass = true
		case r == ']':
			inClass = false
		}
		b.WriteRune(s.next())
	}
}

// parseTerms reads a b, ?a ?b, -a, "a phrase" and %a regular expression%.
func parseTerms(s *scanner) (func(*Event) bool, error) {
	type test func(string) bool
	var all, anyOf, none []test
	for s.space(); s.peek() != end; s.space() {
		into := &all
		switch s.peek() {
		case '?':
			s.next()
			into = &anyOf
		case '-':
			s.next()
			into = &none
		}
		switch s.peek() {
		case '"':
			phrase, err := s.quoted()
			if err != nil {
				return nil, err
			}
			// A phrase of spaces is the documented way to match everything.
			if strings.TrimSpace(phrase) == "" {
				*into = append(*into, func(string) bool { return true })
				break
			}
			*into = append(*into, func(m string) bool { return strings.Contains(m, phrase) })
		case '%':
			re, err := s.regex()
			if err != nil {
				return nil, err
			}
			*into = append(*into, re.MatchString)
		default:
			term := s.while(isWord)
			if term == "" {
				return nil, s.unexpected()
			}
			*into = append(*into, func(m string) bool { return strings.Contains(m, term) })
		}
		if r := s.peek(); r != end && !unicode.IsSpace(r) {
			return nil, s.unexpected()
		}
	}
	// In addition to other terms, optional terms are ignored.
	if len(all) > 0 || len(none) > 0 {
		anyOf = nil
	}
	return func(e *Event) bool {
		m := e.message
		for _, t := range all {
			if !t(m) {
				return false
			}
		}
		for _, t := range none {
			if t(m) {
				return false
			}
		}
		for _, t := range anyOf {
			if t(m) {
				return true
			}
		}
		return len(anyOf) == 0
	}, nil
}
