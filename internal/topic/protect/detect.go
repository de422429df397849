package protect

import (
	"cmp"
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

// keywordDistance is the maximum distance of a keyword from the data, in bytes. Source: "Using
// managed data identifiers" in the SNS developer guide (30 characters).
const keywordDistance = 30

// detector finds one kind of data.
type detector struct {
	name     string
	managed  bool
	pattern  *regexp.Regexp
	check    func(string) bool // of a match; nil if the pattern is enough
	keywords *regexp.Regexp    // one must be near; nil if none is needed
	or       *detector         // finds other forms of the same data; nil: there are none
	// own is the pattern of a custom identifier; it replaces the fields above.
	own *pattern
}

// find returns the spans of the data, in order and disjoint. Only custom identifiers use steps;
// ok is false if these do not suffice.
func (d *detector) find(body string, steps *int) (spans []Span, ok bool) {
	if d.own != nil {
		return d.own.find(body, steps)
	}
	for from := 0; from < len(body); {
		at := d.pattern.FindStringSubmatchIndex(body[from:])
		if at == nil {
			break
		}
		// A group is the data, if the pattern also matches the context.
		start, end := from+at[0], from+at[1]
		if len(at) > 2 && at[2] >= 0 {
			start, end = from+at[2], from+at[3]
		}
		if d.check == nil || d.check(body[start:end]) {
			spans = append(spans, Span{start, end})
		} else if len(at) == 2 {
			end = behindWord(body, start) // a rejected match may overlap it
		}
		from = end
	}
	if len(spans) > 0 && d.keywords != nil {
		spans = near(spans, d.words(body))
	}
	if d.or != nil {
		others, _ := d.or.find(body, steps)
		spans = apart(append(spans, others...))
	}
	return spans, true
}

// behindWord is the end of the word that begins at a position; without a word there, the end of
// the character. A search from there finds nothing that begins within the word.
func behindWord(body string, at int) int {
	end := at
	for end < len(body) && syntax.IsWordChar(rune(body[end])) {
		end++
	}
	return max(end, at+1)
}

// words returns the positions of keywords.
func (d *detector) words(body string) (places []Span) {
	for from := 0; from < len(body); {
		at := d.keywords.FindStringSubmatchIndex(body[from:])
		if at == nil {
			break
		}
		places = append(places, Span{from + at[2], from + at[3]})
		from += at[3] // the character after a word may be the one before the next
	}
	return places
}

// near keeps the data that have a keyword near enough. Both are in order.
func near(spans, words []Span) (left []Span) {
	next := 0 // the first word that ends after the beginning of the data
	for _, s := range spans {
		for next < len(words) && words[next].End <= s.Start {
			next++
		}
		before := next > 0 && s.Start-words[next-1].End <= keywordDistance
		for i := next; !before && i < len(words) && words[i].Start <= s.End+keywordDistance; i++ {
			before = words[i].Start >= s.End
		}
		if before {
			left = append(left, s)
		}
	}
	return left
}

// apart sorts spans, and merges those that overlap.
func apart(spans []Span) (left []Span) {
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	for _, s := range spans {
		if n := len(left); n > 0 && s.Start < left[n-1].End {
			left[n-1].End = max(left[n-1].End, s.End)
			continue
		}
		left = append(left, s)
	}
	return left
}

// compile makes the detector of a managed identifier.
func (id identifier) compile(name string) *detector {
	d := &detector{name: name, managed: true, pattern: regexp.MustCompile(id.pattern), check: id.check}
	if id.or != nil {
		d.or = id.or.compile(name)
	}
	if id.keywords == "" {
		return d
	}
	var all []string
	for keyword := range strings.SplitSeq(id.keywords, ",") {
		// "account number" is also accountnumber, account_number and account-number.
		all = append(all, strings.ReplaceAll(regexp.QuoteMeta(keyword), " ", "[ _-]?"))
	}
	d.keywords = regexp.MustCompile(`(?i)(?:^|[^\pL\pN])(` + strings.Join(all, "|") + `)(?:$|[^\pL\pN])`)
	return d
}

var errRegex = errors.New("protect: no pattern that is allowed")

// customDetector compiles a pattern of a policy.
func customDetector(name, text string) (*detector, error) {
	if utf8.RuneCountInString(text) > maxRegex {
		return nil, errRegex
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if shortest(tree) == 0 {
		return nil, errRegex
	}
	own, err := compilePattern(tree)
	if err != nil {
		return nil, err
	}
	return &detector{name: name, own: own}, nil
}

// shortest is the minimum length in characters of the matches of a pattern.
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
	default: // assertions and optional parts
		return 0
	}
}
