// Package search has the language of CloudWatch's search expressions, the first argument of SEARCH in
// metric math: a text that selects metrics by the parts of their names. It is pure. Source:
// "CloudWatch search expression syntax".
package search

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// MaxText is the length of the longest text, in characters. Source: "Search expression limits".
const MaxText = 1024

// Dimension is a dimension of a metric.
type Dimension struct{ Name, Value string }

// Metric is what a search may find.
type Metric struct {
	Account, Namespace, Name string
	Dimensions               []Dimension // with different names
}

// Search is a parsed text.
type Search struct {
	schema     bool
	namespace  string   // of the schema
	dimensions []string // of the schema, sorted; none: a metric may have any
	term       *node    // nil: the schema is all
}

// Namespace is the only namespace in which the search finds metrics; empty: all.
func (s *Search) Namespace() string { return s.namespace }

// Match reports whether the search finds a metric. looks is how many of the metric's texts were compared, of which
// long ones count as several.
func (s *Search) Match(m *Metric) (ok bool, looks int) {
	if s.schema && (m.Namespace != s.namespace || !s.sameDimensions(m.Dimensions)) {
		return false, 1
	}
	if s.term == nil {
		return true, 1
	}
	x := subject{Metric: m, tokens: make([][]token, 2+2*len(m.Dimensions))}
	ok = s.term.match(&x)
	return ok, x.looks + 1
}

// sameDimensions reports whether dimensions have the names of the schema, and no other.
func (s *Search) sameDimensions(all []Dimension) bool {
	if len(s.dimensions) == 0 {
		return true
	}
	if len(s.dimensions) != len(all) {
		return false
	}
	for i := range all {
		if _, found := slices.BinarySearch(s.dimensions, all[i].Name); !found {
			return false
		}
	}
	return true
}

// operation is what a node does.
type operation int

const (
	aTerm operation = iota
	aNegation
	aConjunction
	aDisjunction
)

// node is a part of a search term.
type node struct {
	operation operation
	parts     []*node

	property string // that the term is for; empty: any
	exact    bool   // the whole text, as it stands
	raw      string
	whole    string // its letters and digits, in lower case
	tokens   []token
}

// subject is a metric with its texts taken apart, as far as that was needed: the namespace, the name,
// and the name and the value of each dimension.
type subject struct {
	*Metric
	tokens [][]token
	looks  int
}

// The places of texts. Those of dimensions follow, the name before the value.
const (
	theNamespace = iota
	theName
	theDimensions
)

func (x *subject) raw(i int) string {
	switch {
	case i == theNamespace:
		return x.Namespace
	case i == theName:
		return x.Name
	case i%2 == 0:
		return x.Dimensions[i/2-1].Name
	}
	return x.Dimensions[i/2-1].Value
}

func (n *node) match(x *subject) bool {
	switch n.operation {
	case aNegation:
		return !n.parts[0].match(x)
	case aConjunction:
		return !slices.ContainsFunc(n.parts, func(part *node) bool { return !part.match(x) })
	case aDisjunction:
		return slices.ContainsFunc(n.parts, func(part *node) bool { return part.match(x) })
	case aTerm:
	}
	switch n.property {
	case "":
		for i := range x.tokens {
			if n.fits(x, i) {
				return true
			}
		}
		return false
	case "MetricName":
		return n.fits(x, theName)
	case "Namespace":
		return n.fits(x, theNamespace)
	case ":aws.AccountId":
		x.looks++
		return n.raw == x.Account || n.raw == "LOCAL"
	}
	for i := range x.Dimensions {
		if x.Dimensions[i].Name == n.property {
			return n.fits(x, theDimensions+2*i+1)
		}
	}
	x.looks++
	return false
}

// fits reports whether the term matches one of the metric's texts.
func (n *node) fits(x *subject, i int) bool {
	x.looks++
	if n.exact {
		return n.raw == x.raw(i)
	}
	raw := x.raw(i)
	x.looks += len(raw) * len(n.tokens[0].text) / compared
	if sameWhole(raw, n.whole) {
		return true
	}
	if x.tokens[i] == nil {
		if !contains(raw, n.tokens[0].text) { // most texts need not be taken apart
			return false
		}
		x.tokens[i] = split(raw)
		x.looks += len(x.tokens[i]) - 1
	}
	ok, compared := within(n.tokens, x.tokens[i])
	x.looks += compared / comparedTokens
	return ok
}

// compared is how many characters, and comparedTokens how many tokens, are compared about as fast as one text is
// looked at.
const (
	compared       = 64
	comparedTokens = 4
)

// sameWhole reports whether a text has just the letters and digits of whole, which is in lower case.
func sameWhole(raw, whole string) bool {
	for i := range len(raw) {
		c := raw[i]
		if kindOf(c) == delimiter {
			continue
		}
		if whole == "" || lowered(c) != whole[0] {
			return false
		}
		whole = whole[1:]
	}
	return whole == ""
}

func lowered(c byte) byte {
	if kindOf(c) == upper {
		return c + 'a' - 'A'
	}
	return c
}

// contains reports whether a text has a part, in any case.
func contains(raw, part string) bool {
	for from := 0; from+len(part) <= len(raw); from++ {
		i := 0
		for i < len(part) && lowered(raw[from+i]) == lowered(part[i]) {
			i++
		}
		if i == len(part) {
			return true
		}
	}
	return false
}

// within reports whether tokens of a term follow each other in those of a text, and how many it has compared.
func within(term, of []token) (ok bool, compared int) {
	for from := 0; from+len(term) <= len(of); from++ {
		same := true
		for i := range term {
			compared++
			a, b := &term[i], of[from+i].text
			if same = a.text == b || a.alone && strings.EqualFold(a.text, b); !same {
				break
			}
		}
		if same {
			return true, compared
		}
	}
	return false, compared
}

// token is a part of a text between delimiters and changes of the kind of its characters.
type token struct {
	text string
	// alone says that it is all that is between two delimiters. Only then case does not matter.
	alone bool
}

// kind is the kind of a character.
type kind int

const (
	delimiter kind = iota
	numeral
	upper
	lower
)

func kindOf(c byte) kind {
	switch {
	case c >= '0' && c <= '9':
		return numeral
	case c >= 'A' && c <= 'Z':
		return upper
	case c >= 'a' && c <= 'z' || c >= utf8.RuneSelf: // names are ASCII
		return lower
	}
	return delimiter
}

// split takes a text apart: at what is neither a letter nor a digit, where digits begin or end, before a
// capital that follows a small letter, and before the last of several capitals that a small letter follows.
func split(raw string) []token {
	tokens := []token{}
	for at := 0; at < len(raw); {
		if kindOf(raw[at]) == delimiter {
			at++
			continue
		}
		first := len(tokens)
		for at < len(raw) && kindOf(raw[at]) != delimiter {
			end := at + 1
			for end < len(raw) && !parted(raw, end) {
				end++
			}
			tokens = append(tokens, token{text: raw[at:end]})
			at = end
		}
		tokens[first].alone = len(tokens) == first+1
	}
	return tokens
}

// parted reports whether a token ends before a place, which is not the first one.
func parted(raw string, at int) bool {
	before, here := kindOf(raw[at-1]), kindOf(raw[at])
	switch {
	case here == before:
		return here == upper && at+1 < len(raw) && kindOf(raw[at+1]) == lower
	case before == upper && here == lower:
		return false
	}
	return true
}
