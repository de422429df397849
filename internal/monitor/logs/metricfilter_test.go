package logs

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/store/memory"
)

// measured opens logs with a group and a stream; their metrics are those of the returned function, as
// "name[dimensions] second: sum/count".
func measured(t *testing.T) (l *Logs, taken func() []string) {
	t.Helper()
	l, _, taken = measuredClock(t)
	return l, taken
}

func measuredClock(t *testing.T) (l *Logs, c *clock.Virtual, taken func() []string) {
	t.Helper()
	var all []string
	l, c = open(t, memory.New(), func(s *settings) {
		s.record = func(data ...metrics.Datapoint) error {
			for _, d := range data {
				var set metrics.Set
				d.Add(&set)
				var by []string
				for _, one := range metrics.SplitDimensions(d.Dimensions) {
					by = append(by, one.Name+"="+one.Value)
				}
				all = append(all, fmt.Sprintf("%s%v %d: %v/%v", d.Name, by, d.Second-began.Unix(), set.Sum, set.Count))
			}
			return nil
		}
	})
	with(t, l, "s")
	return l, c, func() []string {
		taken := all
		all = nil
		return taken
	}
}

// A value or a dimension that PutMetricData would refuse makes no value of a metric: a sum of such values
// could be infinite.
func TestMetricFilterBounds(t *testing.T) {
	l, taken := measured(t)
	check(t, l.PutFilter(group, MetricFilter{Name: "v", Pattern: "{ $.v = * }", Namespace: "App", Metric: "V", Value: "$.v"}))
	check(t, l.PutFilter(group, MetricFilter{Name: "d", Pattern: "{ $.d = * }", Namespace: "App", Metric: "D", Value: "1", By: map[string]string{"d": "$.d"}}))
	for _, refused := range []string{
		`{"v":1e308}`, `{"v":-1e109}`, `{"v":1e309}`, `{"v":1e-320}`, `{"v":"NaN"}`, `{"v":"Inf"}`, `{"v":" 5"}`, `{"v":"0x10"}`, `{"v":"1_0"}`, `{"v":true}`,
		`{"d":""}`, `{"d":" "}`, `{"d":"é"}`, `{"d":"a\nb"}`, `{"d":"` + strings.Repeat("x", 1025) + `"}`,
	} {
		put(t, l, "s", Event{at(0), refused})
		if got := taken(); len(got) > 0 {
			t.Errorf("%.40s makes %.80s", refused, got)
		}
	}
	put(t, l, "s", Event{at(0), `{"v":2e108}`}, Event{at(0), `{"v":"-0"}`}, Event{at(0), `{"d":":x"}`}, Event{at(0), `{"d":1.50}`})
	same(t, "what is within the bounds", []string{"D[d=:x] 0: 1/1", "D[d=1.50] 0: 1/1", "V[] 0: 2e+108/2"}, taken())
	for _, value := range []string{"1e308", "1e-320", "-1e109"} {
		f := MetricFilter{Name: "f", Value: value}
		if f.Check() == nil {
			t.Errorf("the value %s is accepted", value)
		}
	}
}

// A group has at most five filters with regular expressions; one of them may be replaced, and others
// may be added.
func TestRegularExpressionsOfMetricFilters(t *testing.T) {
	l, _ := measured(t)
	filter := func(name, pattern string) error {
		return l.PutFilter(group, MetricFilter{Name: name, Pattern: pattern, Namespace: "App", Metric: "M", Value: "1"})
	}
	for i, pattern := range []string{"%a%", "{ $.a = %b% }", "[a = %b%]", "?%a% ?%b%", `-%a% "100%"`} {
		check(t, filter(fmt.Sprint("f", i), pattern))
	}
	check(t, filter("f0", "%c+%"))
	check(t, filter("plain", `"100%"`))
	if err := filter("sixth", "%a%"); !errors.Is(err, ErrTooManyFilters) {
		t.Errorf("the sixth: %v", err)
	}
	if err := filter("plain", "%a%"); !errors.Is(err, ErrTooManyFilters) {
		t.Errorf("one that had none: %v", err)
	}
	check(t, filter("f0", "c"))
	check(t, filter("sixth", "%a%"))
}

// Within an hour a filter makes metrics of at most 1,000 names and values of dimensions, of those that
// it found first.
func TestDimensionsOfMetricFilters(t *testing.T) {
	l, c, taken := measuredClock(t)
	check(t, l.PutFilter(group, MetricFilter{Name: "d", Pattern: "", Namespace: "App", Metric: "D", Value: "1", By: map[string]string{"d": "$.d"}}))
	check(t, l.PutFilter(group, MetricFilter{Name: "e", Pattern: "", Namespace: "App", Metric: "E", Value: "1", By: map[string]string{"e": "$.d", "f": "$.f"}}))
	for range 2 {
		var all []Event
		for i := range 1500 {
			all = append(all, Event{at(0), fmt.Sprintf(`{"d":%d,"f":"same"}`, i)})
		}
		put(t, l, "s", all...)
		same(t, "metrics", 1000+999, len(taken()))
	}
	put(t, l, "s", Event{at(0), `{"d":"other"}`}, Event{at(0), `{"d":999}`})
	same(t, "those that were found, and others", []string{"D[d=999] 0: 1/1"}, taken())
	if _, err := c.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	put(t, l, "s", Event{at(0), `{"d":"other"}`})
	same(t, "after an hour", []string{"D[d=other] 0: 1/1"}, taken())
}

// What one call makes is recorded together: each time waits for a sync.
func TestMetricFiltersRecordTogether(t *testing.T) {
	l, _ := measured(t)
	var times, all int
	l.options.Record = func(data ...metrics.Datapoint) error {
		times, all = times+1, all+len(data)
		return nil
	}
	zero, events := 0.0, []Event{}
	for i := range 2 {
		check(t, l.PutFilter(group, MetricFilter{Name: fmt.Sprint("f", i), Pattern: "none", Namespace: "App", Metric: "M", Value: "1", Default: &zero}))
	}
	for i := range 1000 {
		events = append(events, Event{at(time.Duration(i-1000) * time.Minute), "x"})
	}
	put(t, l, "s", events...)
	same(t, "times, and datapoints", [2]int{1, 2000}, [2]int{times, all})
}

// An event of the future, or a late one, does not keep the minutes before it from their default value,
// and each gets it once.
func TestDefaultValuesInAnyOrder(t *testing.T) {
	l, taken := measured(t)
	seven := 7.0
	check(t, l.PutFilter(group, MetricFilter{Name: "d", Pattern: "ERROR", Namespace: "App", Metric: "D", Value: "1", Default: &seven}))
	for _, minute := range []int{60, 0, -2, 0, 60, -2, 1} {
		put(t, l, "s", Event{at(time.Duration(minute) * time.Minute), "fine"})
	}
	put(t, l, "s", Event{at(2 * time.Minute), "ERROR"})
	put(t, l, "s", Event{at(2 * time.Minute), "fine"})
	same(t, "values", []string{"D[] 3600: 7/1", "D[] 0: 7/1", "D[] -120: 7/1", "D[] 60: 7/1", "D[] 120: 1/1"}, taken())
	for i := range 1000 { // more than are remembered
		put(t, l, "s", Event{at(time.Duration(i-1200) * time.Minute), "fine"})
	}
	taken()
	put(t, l, "s", Event{at(-1200 * time.Minute), "fine"}, Event{at(-201 * time.Minute), "fine"}, Event{at(0), "fine"})
	same(t, "minutes that had it", []string(nil), taken())
}
