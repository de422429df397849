// Package label has the dynamic labels of CloudWatch: texts with values of a time series, such as
// ${MAX}, and properties of its metric. It is pure. Source: "Use dynamic labels".
package label

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/metricmath"
)

// maxValues is how many values a label may have; others stay as they stand. A value may have 1,024 characters.
// AWS's limit is five, of those that are no properties.
const maxValues = 50

// none is the value of what a series without points does not have.
const none = "-"

// Template is a label with dynamic values.
type Template struct{ parts []part }

// part is a text, or a value.
type part struct {
	text     string // of a value as it stands
	of       func(s *Series) string
	property string
}

// Series is a time series with what else its label may say.
type Series struct {
	Label  string // the one that it has without a dynamic one
	Points []metricmath.Point
	Now    time.Time // in the time zone of the label
	// Property returns a property of the series' metric, such as Namespace or Dim.QueueName; ok is false if it has none.
	Property func(name string) (value string, ok bool)
}

// Parse parses a label; nil: it has no dynamic values. What is none stays as it stands.
func Parse(text string) *Template {
	t := &Template{}
	values := 0
	for text != "" {
		begin := strings.Index(text, "${")
		if begin < 0 {
			break
		}
		n := strings.IndexByte(text[begin:], '}')
		if n < 0 {
			break
		}
		end := begin + n + 1
		p := part{text: text[begin:end]}
		inner := text[begin+2 : end-1]
		if p.of = dynamic[inner]; p.of == nil {
			p.property = propertyIn(inner)
		}
		if p.of == nil && p.property == "" || values == maxValues { // another one may begin within it
			t.parts = append(t.parts, part{text: text[:begin+2]})
			text = text[begin+2:]
			continue
		}
		values++
		t.parts = append(t.parts, part{text: text[:begin]}, p)
		text = text[end:]
	}
	if values == 0 {
		return nil
	}
	t.parts = append(t.parts, part{text: text})
	return t
}

// propertyIn is the name in PROP('name'); empty: it is none.
func propertyIn(text string) string {
	text, ok := strings.CutPrefix(text, "PROP(")
	if !ok {
		return ""
	}
	text, ok = strings.CutSuffix(text, ")")
	if !ok || len(text) < 3 || text[0] != '\'' && text[0] != '"' || text[len(text)-1] != text[0] {
		return ""
	}
	return text[1 : len(text)-1]
}

// Text is the label of a series.
func (t *Template) Text(s *Series) string {
	var b strings.Builder
	for i := range t.parts {
		switch p := &t.parts[i]; {
		case p.of != nil:
			b.WriteString(p.of(s))
		case p.property != "":
			value, ok := s.Property(p.property)
			if !ok {
				value = p.text
			}
			b.WriteString(value)
		default:
			b.WriteString(p.text)
		}
	}
	return b.String()
}

// dynamic are the dynamic values but for properties.
var dynamic = map[string]func(s *Series) string{
	"LABEL":           func(s *Series) string { return s.Label },
	"DATAPOINT_COUNT": func(s *Series) string { return strconv.Itoa(len(s.Points)) },
	"SUM":             some(func(all []metricmath.Point) string { return number(sum(all)) }),
	"AVG":             some(func(all []metricmath.Point) string { return number(sum(all) / float64(len(all))) }),

	"FIRST":               value(first),
	"FIRST_TIME":          at(first),
	"FIRST_TIME_RELATIVE": ago(first),
	"LAST":                value(last),
	"LAST_TIME":           at(last),
	"LAST_TIME_RELATIVE":  ago(last),
	"MAX":                 value(greatest),
	"MAX_TIME":            at(greatest),
	"MAX_TIME_RELATIVE":   ago(greatest),
	"MIN":                 value(least),
	"MIN_TIME":            at(least),
	"MIN_TIME_RELATIVE":   ago(least),

	"FIRST_LAST_RANGE":      some(func(all []metricmath.Point) string { return number(last(all).Value - first(all).Value) }),
	"FIRST_LAST_TIME_RANGE": some(func(all []metricmath.Point) string { return duration(last(all).At - first(all).At) }),
	"MIN_MAX_RANGE":         some(func(all []metricmath.Point) string { return number(greatest(all).Value - least(all).Value) }),
	"MIN_MAX_TIME_RANGE":    some(func(all []metricmath.Point) string { return duration(greatest(all).At - least(all).At) }),
}

// some makes a value of a series that has points.
func some(f func(all []metricmath.Point) string) func(s *Series) string {
	return func(s *Series) string {
		if len(s.Points) == 0 {
			return none
		}
		return f(s.Points)
	}
}

func value(of func(all []metricmath.Point) metricmath.Point) func(s *Series) string {
	return some(func(all []metricmath.Point) string { return number(of(all).Value) })
}

func at(of func(all []metricmath.Point) metricmath.Point) func(s *Series) string {
	return func(s *Series) string {
		return some(func(all []metricmath.Point) string {
			return time.Unix(of(all).At, 0).In(s.Now.Location()).Format("2006-01-02T15:04:05-07:00")
		})(s)
	}
}

func ago(of func(all []metricmath.Point) metricmath.Point) func(s *Series) string {
	return func(s *Series) string {
		return some(func(all []metricmath.Point) string { return duration(s.Now.Unix() - of(all).At) })(s)
	}
}

func first(all []metricmath.Point) metricmath.Point { return all[0] }
func last(all []metricmath.Point) metricmath.Point  { return all[len(all)-1] }

// least and greatest are the first ones of several.
func least(all []metricmath.Point) metricmath.Point { return slices.MinFunc(all, byValue) }

func greatest(all []metricmath.Point) metricmath.Point { return slices.MaxFunc(all, byValue) }

func byValue(a, b metricmath.Point) int { return cmp.Compare(a.Value, b.Value) }

func sum(all []metricmath.Point) (total float64) {
	for _, p := range all {
		total += p.Value
	}
	return total
}

func number(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return none
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// duration is the absolute of a number of seconds in days, hours, minutes and seconds, as in "1d 2h".
func duration(seconds int64) string {
	seconds = max(seconds, -seconds)
	var parts []string
	for _, unit := range []struct {
		name   string
		length int64
	}{{"d", 86400}, {"h", 3600}, {"m", 60}, {"s", 1}} {
		if n := seconds / unit.length; n > 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, unit.name))
			seconds %= unit.length
		}
	}
	if len(parts) == 0 {
		return "0s"
	}
	return strings.Join(parts, " ")
}

// Zone parses a time zone: + or - and four digits, two for the hours ahead of or behind UTC and two for the
// minutes.
func Zone(text string) (zone *time.Location, ok bool) {
	if len(text) != 5 || text[0] != '+' && text[0] != '-' {
		return nil, false
	}
	for _, c := range text[1:] {
		if c < '0' || c > '9' {
			return nil, false
		}
	}
	hours, _ := strconv.Atoi(text[1:3])
	minutes, _ := strconv.Atoi(text[3:])
	if hours > 23 || minutes > 59 {
		return nil, false
	}
	offset := hours*3600 + minutes*60
	if text[0] == '-' {
		offset = -offset
	}
	return time.FixedZone("", offset), true
}
