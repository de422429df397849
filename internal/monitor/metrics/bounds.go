package metrics

import (
	"math"
	"strings"
	"unicode/utf8"
)

// The bounds of what clients put. Source: CloudWatch's API model and reference.
const (
	MaxDimensionName  = 255  // characters
	MaxDimensionValue = 1024 // characters
)

// Smallest and Largest bound values other than zero, of either sign: 2^-360 to 2^360. Sums of values
// within them stay finite.
var Smallest, Largest = math.Ldexp(1, -360), math.Ldexp(1, 360)

// ValidValue reports whether clients may put a value.
func ValidValue(value float64) bool {
	size := math.Abs(value)
	return value == 0 || size >= Smallest && size <= Largest
}

// Valid reports whether clients may put a dimension: its name and value are ASCII without control
// characters, not blank, and not too long, and the name does not begin with a colon.
func (d Dimension) Valid() bool {
	return validText(d.Name, MaxDimensionName) && !strings.HasPrefix(d.Name, ":") && validText(d.Value, MaxDimensionValue)
}

func validText(text string, most int) bool {
	return len(text) <= most && strings.TrimSpace(text) != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f || r == utf8.RuneError })
}
