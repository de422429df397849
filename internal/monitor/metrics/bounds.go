package metrics

import (
	"math"
	"strings"
	"time"
)

// The bounds of what clients put. Source: CloudWatch's API model and reference.
const (
	MaxName           = 255  // characters, of a metric or a namespace
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

// The bounds of the time of a value that clients put, relative to now. Source: the API reference, "PutMetricData".
const (
	MaxAge   = 14 * 24 * time.Hour
	MaxAhead = 2 * time.Hour
)

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

// ValidName reports whether clients may put a metric of a name: 1 to MaxName characters of ASCII, none of
// them a control character.
func ValidName(name string) bool { return name != "" && len(name) <= MaxName && printable(name) }

// ValidNamespace reports whether clients may put metrics into a namespace: its name is like a metric's,
// and does not begin with a colon, or as AWS's own do.
func ValidNamespace(name string) bool {
	return ValidName(name) && !strings.HasPrefix(name, ":") && !Reserved(name)
}

// Reserved reports whether a namespace is for metrics of AWS's services, which clients may not put.
func Reserved(namespace string) bool { return strings.HasPrefix(namespace, "AWS/") }

// Valid reports whether clients may put a dimension: its name and value are ASCII without control
// characters, not blank, and not too long, and the name does not begin with a colon.
func (d Dimension) Valid() bool {
	return ValidDimensionName(d.Name) && validText(d.Value, MaxDimensionValue)
}

// ValidDimensionName reports whether a dimension that clients put may have a name.
func ValidDimensionName(name string) bool {
	return validText(name, MaxDimensionName) && !strings.HasPrefix(name, ":")
}

func validText(text string, most int) bool {
	return len(text) <= most && strings.TrimSpace(text) != "" && printable(text)
}

// printable reports that a text is ASCII without control characters.
func printable(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r >= 0x7f })
}
