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

// AllUnits are the units of metrics, in the order of CloudWatch's API model.
var AllUnits = []string{
	"Seconds", "Microseconds", "Milliseconds", "Bytes", "Kilobytes", "Megabytes", "Gigabytes", "Terabytes",
	"Bits", "Kilobits", "Megabits", "Gigabits", "Terabits", "Percent", "Count",
	"Bytes/Second", "Kilobytes/Second", "Megabytes/Second", "Gigabytes/Second", "Terabytes/Second",
	"Bits/Second", "Kilobits/Second", "Megabits/Second", "Gigabits/Second", "Terabits/Second", "Count/Second", "None",
}

// The bounds of values other than zero, of either sign. Sums of values within them stay finite.
const (
	Smallest = 0x1p-360
	Largest  = 0x1p360
)

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
