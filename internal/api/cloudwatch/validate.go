package cloudwatch

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/check"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// The limits of names and values. Source: CloudWatch's API model and reference.
const (
	maxName       = metrics.MaxName // of alarms, too
	maxDimensions = 30
)

// noUnit is the unit of values without one.
const noUnit = "None"

func scope(call *api.Call) metrics.Scope {
	return metrics.Scope{Account: call.Account, Region: call.Region}
}

func missing(parameter string) error {
	return fault.Newf(fault.MissingParameter, "The parameter %s is required.", parameter)
}

func invalid(format string, args ...any) error {
	return fault.Newf(fault.InvalidParameter, format, args...)
}

func tooMany(parameter string, limit int) error {
	return invalid("The collection %s must not have a size greater than %d.", parameter, limit)
}

func exclusive(a, b string) error {
	return fault.Newf(fault.InvalidParameterCombination, "The parameters %s and %s are mutually exclusive and you have specified both.", a, b)
}

func notInSet(parameter string, set []string) error {
	return invalid("The parameter %s must be a value in the set [ %s ].", parameter, strings.Join(set, ", "))
}

// breaks is the error for a violated constraint of the model.
func breaks(value, member, constraint string) error {
	return fault.Newf(fault.ValidationFailed,
		"1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: %s", shorten(value), member, constraint)
}

// checkLength checks the length of a text in characters, if it is not nil.
func checkLength(member string, value *string, minimum, maximum int) error {
	if value == nil {
		return nil
	}
	switch n := utf8.RuneCountInString(*value); {
	case n < minimum:
		return breaks(*value, member, fmt.Sprintf("Member must have length greater than or equal to %d", minimum))
	case n > maximum:
		return breaks(*value, member, fmt.Sprintf("Member must have length less than or equal to %d", maximum))
	}
	return nil
}

// checkPositive checks that a number is 1 to limit, if it is not nil.
func checkPositive(member string, value *int, limit int) error {
	switch {
	case value == nil:
	case *value < 1:
		return breaks(strconv.Itoa(*value), member, "Member must have value greater than or equal to 1")
	case *value > limit:
		return breaks(strconv.Itoa(*value), member, fmt.Sprintf("Member must have value less than or equal to %d", limit))
	}
	return nil
}

func notInEnum(value, member string, set []string) error {
	return breaks(value, member, check.Enum(set...))
}

// shorten truncates text of a client for an error message.
func shorten(s string) string {
	const most = 128
	return fault.Excerpt(s, most, "")
}

// isASCII reports whether a text has only ASCII characters, including control characters.
func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// checkText checks a text of 1 to limit ASCII characters without control characters.
func checkText(parameter string, value *string, limit int) error {
	switch {
	case value == nil:
		return missing(parameter)
	case *value == "":
		return invalid("The value  for parameter %s is invalid. It must not be empty.", parameter)
	case !isASCII(*value):
		return invalid("The value for parameter %s contains non-ASCII characters.", parameter)
	case len(*value) > limit:
		return invalid("The parameter %s must be shorter than %d characters.", parameter, limit+1)
	case strings.ContainsFunc(*value, func(r rune) bool { return r < ' ' || r == 0x7f }):
		return invalid("The parameter %s must not contain control characters.", parameter)
	}
	return nil
}

func checkNamespace(parameter string, value *string) error {
	if err := checkText(parameter, value, maxName); err != nil {
		return err
	}
	if strings.HasPrefix(*value, ":") {
		return invalid("The value %s for parameter %s is invalid. It must not begin with a colon.", shorten(*value), parameter)
	}
	return nil
}

// readDimensions validates dimensions, and converts them to their persisted form.
func readDimensions(parameter string, all []Dimension) (string, error) {
	if len(all) == 0 {
		return "", nil
	}
	if len(all) > maxDimensions {
		return "", tooMany(parameter, maxDimensions)
	}
	read := make([]metrics.Dimension, len(all))
	for i, d := range all {
		at := fmt.Sprintf("%s.member.%d.", parameter, i+1)
		if err := checkText(at+"Name", d.Name, metrics.MaxDimensionName); err != nil {
			return "", err
		}
		if err := checkText(at+"Value", d.Value, metrics.MaxDimensionValue); err != nil {
			return "", err
		}
		switch {
		case strings.HasPrefix(*d.Name, ":"):
			return "", invalid("The value %s for parameter %sName is invalid. It must not begin with a colon.", shorten(*d.Name), at)
		case strings.TrimSpace(*d.Name) == "":
			return "", invalid("The value %s for parameter %sName is invalid. It must have a character that is no whitespace.", shorten(*d.Name), at)
		case strings.TrimSpace(*d.Value) == "":
			return "", invalid("The value %s for parameter %sValue is invalid. It must have a character that is no whitespace.", shorten(*d.Value), at)
		}
		if slices.ContainsFunc(read[:i], func(o metrics.Dimension) bool { return o.Name == *d.Name }) {
			return "", invalid("The dimension %s is given more than once in %s.", shorten(*d.Name), parameter)
		}
		read[i] = metrics.Dimension{Name: *d.Name, Value: *d.Value}
	}
	return metrics.Dimensions(read...), nil
}

// showDimensions is the reverse of readDimensions.
func showDimensions(text string) []Dimension {
	split := metrics.SplitDimensions(text)
	all := make([]Dimension, len(split))
	for i := range split {
		all[i] = Dimension{&split[i].Name, &split[i].Value}
	}
	return all
}

func checkUnit(parameter string, unit *string) error {
	if unit != nil && !slices.Contains(metrics.AllUnits, *unit) {
		return notInSet(parameter, metrics.AllUnits)
	}
	return nil
}

func checkValue(parameter string, value float64) error {
	if !metrics.ValidValue(value) {
		return invalid("The value %s for parameter %s is invalid.", shown(value), parameter)
	}
	return nil
}

// shown is a number in AWS's error messages: in groups of three digits, with at most three
// decimals, so that what is too small is a 0.
func shown(value float64) string {
	switch {
	case math.IsNaN(value):
		return "NaN"
	case math.IsInf(value, 1):
		return "∞"
	case math.IsInf(value, -1):
		return "-∞"
	}
	text := strconv.FormatFloat(value, 'f', -1, 64)
	whole, fraction, _ := strings.Cut(text, ".")
	if len(fraction) > 3 {
		whole, fraction, _ = strings.Cut(strconv.FormatFloat(value, 'f', 3, 64), ".")
		fraction = strings.TrimRight(fraction, "0")
	}
	digits := strings.TrimPrefix(whole, "-")
	out := []byte(whole[:len(whole)-len(digits)])
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			out = append(out, ',')
		}
		out = append(out, digits[i])
	}
	if fraction != "" {
		out = append(append(out, '.'), fraction...)
	}
	return string(out)
}

// readPeriod checks a period in seconds.
func readPeriod(parameter string, period int) (seconds int64, err error) {
	switch {
	case short(period) || period == 1 || period == 5:
	case period < 60 || period%60 != 0 || period > 86400*365:
		return 0, invalid("The parameter %s must be 1, 5, 10, 20, 30, or a multiple of 60.", parameter)
	}
	return int64(period), nil
}

// short reports whether a period is one of those below a minute that alarms may have.
func short(period int) bool { return period == 10 || period == 20 || period == 30 }
