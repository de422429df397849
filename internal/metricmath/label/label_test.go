package label

import (
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/metricmath"
)

var now = time.Date(2026, 11, 30, 12, 10, 0, 0, time.UTC)

// series has the values 3 7 1 7, one each minute from five minutes before now.
func series(zone *time.Location) *Series {
	s := &Series{Label: "web", Now: now.In(zone), Property: func(name string) (string, bool) {
		value, ok := map[string]string{"MetricName": "Errors", "Dim.Host": "web-1"}[name]
		return value, ok
	}}
	for i, value := range []float64{3, 7, 1, 7} {
		s.Points = append(s.Points, metricmath.Point{At: now.Unix() + int64(i-5)*60, Value: value})
	}
	return s
}

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"[max: ${MAX} Errors of ${LABEL}]":                   "[max: 7 Errors of web]",
		"${MIN} ${AVG} ${SUM} ${DATAPOINT_COUNT}":            "1 4.5 18 4",
		"${FIRST}-${LAST}":                                   "3-7",
		"${FIRST_TIME}":                                      "2026-11-30T12:05:00+00:00",
		"${LAST_TIME_RELATIVE} ${FIRST_TIME_RELATIVE}":       "2m 5m",
		"${MAX_TIME} ${MAX_TIME_RELATIVE}":                   "2026-11-30T12:06:00+00:00 4m",
		"${MIN_TIME} ${MIN_TIME_RELATIVE}":                   "2026-11-30T12:07:00+00:00 3m",
		"${LAST_TIME}":                                       "2026-11-30T12:08:00+00:00",
		"${FIRST_LAST_RANGE} ${FIRST_LAST_TIME_RANGE}":       "4 3m",
		"${MIN_MAX_RANGE} ${MIN_MAX_TIME_RANGE}":             "6 1m",
		"${PROP('MetricName')} on ${PROP('Dim.Host')}":       "Errors on web-1",
		"${PROP(\"MetricName\")} ${PROP('Dim.Zone')}":        "Errors ${PROP('Dim.Zone')}",
		"${MAX} ${max} ${MAXIMUM} ${} ${PROP()} ${ ${MIN} $": "7 ${max} ${MAXIMUM} ${} ${PROP()} ${ 1 $",
		strings.Repeat("${MAX}", 51):                         strings.Repeat("7", 50) + "${MAX}",
	} {
		if got := Parse(text).Text(series(time.UTC)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "plain", "${", "${x}", "MAX}", "${PROP('')}", "${PROP(MetricName)}", "${PROP('a\")}"} {
		if Parse(text) != nil {
			t.Errorf("%q is dynamic", text)
		}
	}
	empty := &Series{Label: "web", Now: now}
	if got := Parse("${LABEL} ${MAX} ${LAST_TIME} ${LAST_TIME_RELATIVE} ${SUM} ${DATAPOINT_COUNT}").Text(empty); got != "web - - - - 0" {
		t.Errorf("without points: %s", got)
	}
}

func TestZone(t *testing.T) {
	for text, want := range map[string]string{"+0130": "2026-11-30T13:38:00+01:30", "-0800": "2026-11-30T04:08:00-08:00", "+0000": "2026-11-30T12:08:00+00:00"} {
		zone, ok := Zone(text)
		if got := Parse("${LAST_TIME}").Text(series(zone)); !ok || got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "0130", "+130", "+01:30", "+2400", "+0060", "+01e0", "UTC", "+01300"} {
		if _, ok := Zone(text); ok {
			t.Errorf("%q is a time zone", text)
		}
	}
}

func TestDuration(t *testing.T) {
	for seconds, want := range map[int64]string{0: "0s", 59: "59s", -60: "1m", 3661: "1h 1m 1s", 2*86400 + 3600: "2d 1h"} {
		if got := duration(seconds); got != want {
			t.Errorf("%d: %s, want %s", seconds, got, want)
		}
	}
}

// Without values a label stays as it stands.
func FuzzParse(f *testing.F) {
	f.Add("[max: ${MAX} Errors of ${LABEL}] ${PROP('Dim.Host')} ${x ${MIN}")
	f.Fuzz(func(t *testing.T, text string) {
		template := Parse(text)
		if template == nil {
			return
		}
		template.Text(series(time.UTC))
		whole := ""
		for _, p := range template.parts {
			whole += p.text
		}
		if whole != text {
			t.Errorf("%q was parsed as %q", text, whole)
		}
	})
}
