package parameter

import (
	"errors"
	"regexp"
	"regexp/syntax"
)

// Repetitions in short patterns make programs of many states, and a match takes time
// proportional to the states, for each letter of a value. These bound the states of a pattern,
// and of all patterns of a template.
const (
	maxStates   = 4_000
	MaxPatterns = 10_000
)

// ErrPattern refuses a pattern with too many repetitions.
var ErrPattern = errors.New("the pattern repeats too much")

// Pattern compiles a pattern of a template, and returns its minimum number of states.
func Pattern(text string) (p *regexp.Regexp, states int, err error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, 0, err
	}
	if states = statesOf(parsed); states > maxStates {
		return nil, 0, ErrPattern
	}
	p, err = regexp.Compile(text)
	return p, states, err
}

// statesOf counts the states of a pattern, up to one more than the bound.
func statesOf(r *syntax.Regexp) int {
	n := 1
	if r.Op == syntax.OpLiteral {
		n = len(r.Rune)
	}
	for _, sub := range r.Sub {
		if n += statesOf(sub); n > maxStates {
			return maxStates + 1
		}
	}
	if r.Op == syntax.OpRepeat {
		n *= max(r.Min, r.Max, 1)
	}
	return min(n, maxStates+1)
}
