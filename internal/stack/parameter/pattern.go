package parameter

import (
	"errors"
	"regexp"
	"regexp/syntax"
)

// Repetitions in patterns make programs of many states of a few letters, and a match takes as long as
// they are many, for each letter of a value. These bound them: that of a pattern, and of all
// those of a template.
const (
	maxStates   = 4_000
	MaxPatterns = 10_000
)

// ErrPattern refuses a pattern for how much it repeats.
var ErrPattern = errors.New("the pattern repeats too much")

// Pattern compiles a pattern of a template, and says how many states it has at least.
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

// statesOf counts the states of a pattern, at most one more than there may be.
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
