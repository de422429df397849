package protect

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"
)

// keywordDistance is how far from the data a keyword may be, in bytes. Source: "Using
// managed data identifiers" in the SNS developer guide (30 characters).
const keywordDistance = 30

// detector finds one kind of data.
type detector struct {
	name     string
	managed  bool
	pattern  *regexp.Regexp
	check    func(string) bool // of a match; nil where the pattern is enough
	keywords *regexp.Regexp    // one must be near; nil where none has to be
	longest  int               // of the keywords, in bytes
}

// find answers the places of the data, in order and apart from each other.
func (d *detector) find(body string) (spans []Span) {
	for from := 0; from < len(body); {
		at := d.pattern.FindStringSubmatchIndex(body[from:])
		if at == nil {
			return spans
		}
		// A group is the data, where the pattern looks at what is beside them.
		start, end := from+at[0], from+at[1]
		if len(at) > 2 && at[2] >= 0 {
			start, end = from+at[2], from+at[3]
		}
		if (d.check == nil || d.check(body[start:end])) && d.near(body, start, end) {
			spans = append(spans, Span{start, end})
		}
		// Not behind the first character: within a match no word begins.
		from = end
	}
	return spans
}

// near reports whether a keyword is near enough to the data.
func (d *detector) near(body string, start, end int) bool {
	if d.keywords == nil {
		return true
	}
	reach := keywordDistance + d.longest
	before, after := body[max(0, start-reach):start], body[end:min(len(body), end+reach)]
	for _, at := range d.keywords.FindAllStringSubmatchIndex(before, -1) {
		if len(before)-at[3] <= keywordDistance {
			return true
		}
	}
	at := d.keywords.FindStringSubmatchIndex(after)
	return at != nil && at[2] <= keywordDistance
}

// compile makes the detector of a managed identifier.
func (id identifier) compile(name string) *detector {
	d := &detector{name: name, managed: true, pattern: regexp.MustCompile(id.pattern), check: id.check}
	if id.keywords == "" {
		return d
	}
	var all []string
	for keyword := range strings.SplitSeq(id.keywords, ",") {
		d.longest = max(d.longest, len(keyword))
		// "account number" is also accountnumber, account_number and account-number.
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(keyword), " ", "[ _-]?"))
	}
	d.keywords = regexp.MustCompile(`(?i)(?:^|[^\pL\pN])(` + strings.Join(all, "|") + `)(?:$|[^\pL\pN])`)
	return d
}

// maxRepeat bounds what has no bound in a pattern of a policy: a search that looks ahead
// to the end of the message for every match would take time by the square of its size.
const maxRepeat = 64

var errRegex = errors.New("protect: no pattern that is allowed")

// customDetector compiles a pattern of a policy.
func customDetector(name, pattern string) (*detector, error) {
	if utf8.RuneCountInString(pattern) > maxRegex {
		return nil, errRegex
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if shortest(tree) == 0 {
		return nil, errRegex
	}
	bound(tree)
	// A group of the pattern is no more than a group: all of a match is the data.
	compiled, err := regexp.Compile("(" + tree.String() + ")")
	if err != nil {
		return nil, err
	}
	return &detector{name: name, pattern: compiled}, nil
}

// bound gives every repetition an end.
func bound(re *syntax.Regexp) {
	switch {
	case re.Op == syntax.OpStar:
		re.Op, re.Min, re.Max = syntax.OpRepeat, 0, maxRepeat
	case re.Op == syntax.OpPlus:
		re.Op, re.Min, re.Max = syntax.OpRepeat, 1, maxRepeat
	case re.Op == syntax.OpRepeat && re.Max < 0:
		re.Max = max(re.Min, maxRepeat)
	}
	for _, sub := range re.Sub {
		bound(sub)
	}
}

// shortest is the least length in characters of what a pattern matches.
func shortest(re *syntax.Regexp) int {
	switch re.Op {
	case syntax.OpLiteral:
		return len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return 1
	case syntax.OpCapture, syntax.OpPlus:
		return shortest(re.Sub[0])
	case syntax.OpRepeat:
		return re.Min * shortest(re.Sub[0])
	case syntax.OpConcat:
		sum := 0
		for _, sub := range re.Sub {
			sum += shortest(sub)
		}
		return sum
	case syntax.OpAlternate:
		least := shortest(re.Sub[0])
		for _, sub := range re.Sub[1:] {
			least = min(least, shortest(sub))
		}
		return least
	default: // places and what may be missing
		return 0
	}
}
