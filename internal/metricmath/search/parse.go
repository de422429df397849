package search

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Parse parses a text; ok is false if it is not one of the language, or too long.
func Parse(text string) (s *Search, ok bool) {
	if utf8.RuneCountInString(text) > MaxText {
		return nil, false
	}
	p := &parser{rest: text, ok: true}
	s = &Search{}
	if p.take('{') {
		p.schema(s)
		p.take(',')
	}
	if p.space(); p.ok && (p.rest != "" || !s.schema) {
		s.term = p.disjunction()
	}
	p.space()
	return s, p.ok && p.rest == ""
}

// parser parses a text by recursive descent. Its length bounds the depth.
type parser struct {
	rest     string
	ok       bool
	property string // that the terms in brackets are for; empty: any
}

// invalid ends the parsing: nothing more is accepted.
func (p *parser) invalid() *node {
	p.ok, p.rest = false, ""
	return &node{}
}

func (p *parser) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

// take takes the next character if it is c.
func (p *parser) take(c byte) bool {
	p.space()
	if p.rest == "" || p.rest[0] != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// schema parses a namespace and names of dimensions, behind the bracket.
func (p *parser) schema(s *Search) {
	s.schema = true
	var names []string
	for {
		name, quoted := p.quoted()
		if !quoted {
			end := strings.IndexAny(p.rest, `,}"{`)
			if end < 0 {
				end = len(p.rest)
			}
			name, p.rest = strings.TrimRight(p.rest[:end], " \t\r\n"), p.rest[end:]
		}
		if name == "" {
			p.invalid()
		}
		names = append(names, name)
		if p.take('}') {
			break
		}
		if !p.take(',') {
			p.invalid()
			return
		}
	}
	s.namespace, s.dimensions = names[0], names[1:]
	slices.Sort(s.dimensions)
	s.dimensions = slices.Compact(s.dimensions)
}

// quoted parses a text in double quotes, in which a backslash makes the next character an ordinary one.
func (p *parser) quoted() (text string, ok bool) {
	if !p.take('"') {
		return "", false
	}
	var b strings.Builder
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			p.rest = p.rest[i+1:]
			return b.String(), true
		case c == '\\' && i+1 < len(p.rest):
			i++
			b.WriteByte(p.rest[i])
		default:
			b.WriteByte(c)
		}
	}
	p.invalid()
	return "", true
}

// bare is the length of the text without quotes that comes next; 0: there is none.
func (p *parser) bare() int {
	p.space()
	if n := strings.IndexAny(p.rest, " \t\r\n()\"=,{}"); n >= 0 {
		return n
	}
	return len(p.rest)
}

// word takes the next text without quotes if it is an operator.
func (p *parser) word(operator string) bool {
	n := p.bare()
	if p.rest[:n] != operator {
		return false
	}
	p.rest = p.rest[n:]
	return true
}

func joined(o operation, parts []*node) *node {
	if len(parts) == 1 {
		return parts[0]
	}
	return &node{operation: o, parts: parts}
}

func (p *parser) disjunction() *node {
	parts := []*node{p.conjunction()}
	for p.word("OR") {
		parts = append(parts, p.conjunction())
	}
	return joined(aDisjunction, parts)
}

// conjunction parses terms with AND, or nothing, between them.
func (p *parser) conjunction() *node {
	parts := []*node{p.negation()}
	for {
		and := p.word("AND")
		if !and && (p.rest == "" || p.rest[0] == ')' || p.rest[:p.bare()] == "OR") {
			return joined(aConjunction, parts)
		}
		parts = append(parts, p.negation())
	}
}

func (p *parser) negation() *node {
	if p.word("NOT") {
		return &node{operation: aNegation, parts: []*node{p.negation()}}
	}
	if p.take('(') {
		return p.group()
	}
	return p.term()
}

// group parses what is in brackets, behind the first one.
func (p *parser) group() *node {
	inner := p.disjunction()
	if !p.take(')') {
		return p.invalid()
	}
	return inner
}

// term parses a text, or the name of a property and its text, or terms for it in brackets.
func (p *parser) term() *node {
	first, exact := p.value()
	if !p.take('=') {
		return p.leaf(p.property, first, exact)
	}
	if first == "" || p.property != "" {
		return p.invalid()
	}
	if p.take('(') {
		p.property = first
		inner := p.group()
		p.property = ""
		return inner
	}
	value, exact := p.value()
	return p.leaf(first, value, exact)
}

// value parses a text, with quotes or without.
func (p *parser) value() (text string, exact bool) {
	if text, exact = p.quoted(); exact {
		return text, true
	}
	n := p.bare()
	text = p.rest[:n]
	if p.rest = p.rest[n:]; text == "AND" || text == "OR" || text == "NOT" {
		p.invalid()
	}
	return text, false
}

func (p *parser) leaf(property, value string, exact bool) *node {
	tokens := split(value)
	if !exact && len(tokens) == 0 {
		return p.invalid()
	}
	var whole strings.Builder
	for _, t := range tokens {
		for i := range len(t.text) {
			whole.WriteByte(lowered(t.text[i]))
		}
	}
	return &node{property: property, exact: exact, raw: value, whole: whole.String(), tokens: tokens}
}
