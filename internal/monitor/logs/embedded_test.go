package logs

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/monitor/metrics"
)

// embeddingEvent is an event with a metric n of a value, by the dimension d.
func embeddingEvent(at int64, by string, value any) Event {
	return Event{at, fmt.Sprintf(`{"_aws":{"Timestamp":%d,"CloudWatchMetrics":[{"Namespace":"App","Dimensions":[["d"]],"Metrics":[{"Name":"n"}]}]},"d":%q,"n":%v}`, at, by, value)}
}

// The values embedded in the events of a call are recorded together, by the minute of their own time,
// beside those of metric filters.
func TestEmbeddedMetrics(t *testing.T) {
	l, taken := measured(t)
	late := embeddingEvent(at(-time.Hour), "a", 5)
	late.Time = at(0)
	put(t, l, "s", embeddingEvent(at(0), "a", 1), embeddingEvent(at(0), "b", "[2,3]"), embeddingEvent(at(time.Second), "a", 4), Event{at(time.Minute), "plain"}, embeddingEvent(at(time.Minute), "a", 6))
	same(t, "values", []string{"n[d=a] 0: 5/2", "n[d=b] 0: 5/2", "n[d=a] 60: 6/1"}, taken())
	put(t, l, "s", late)
	same(t, "its own time", []string{"n[d=a] -3600: 5/1"}, taken())
	untimed := embeddingEvent(at(-time.Hour), "a", 7)
	untimed.Message = strings.Replace(untimed.Message, fmt.Sprintf(`"Timestamp":%d,`, at(-time.Hour)), "", 1)
	put(t, l, "s", untimed)
	same(t, "without a time", []string{"n[d=a] 0: 7/1"}, taken())

	check(t, l.PutFilter(group, MetricFilter{Name: "f", Pattern: "{ $.n = * }", Namespace: "App", Metric: "F", Value: "$.n"}))
	put(t, l, "s", embeddingEvent(at(0), "a", 1))
	same(t, "beside a filter's", []string{"n[d=a] 0: 1/1", "F[] 0: 1/1"}, taken())
	_, err := l.Put(group, "none", []Event{embeddingEvent(at(0), "a", 1)})
	if err == nil || taken() != nil {
		t.Error("events that are not kept make values")
	}
}

// Values have the bounds of the time of PutMetricData, whatever the time of their events.
func TestTimesOfEmbeddedMetrics(t *testing.T) {
	l, taken := measured(t)
	for _, c := range []struct {
		off  time.Duration
		want bool
	}{
		{-14 * 24 * time.Hour, true},
		{-14*24*time.Hour - time.Millisecond, false},
		{2 * time.Hour, true},
		{2*time.Hour + time.Millisecond, false},
		{-100 * 365 * 24 * time.Hour, false},
	} {
		e := embeddingEvent(at(c.off), "a", 1)
		e.Time = at(0)
		put(t, l, "s", e)
		if got := taken(); (len(got) == 1) != c.want {
			t.Errorf("%v: %v", c.off, got)
		}
	}
}

// What is of high resolution is recorded by the second.
func TestResolutionOfEmbeddedMetrics(t *testing.T) {
	l, _ := measured(t)
	var got []string
	l.options.Record = func(data ...metrics.Datapoint) error {
		for _, d := range data {
			got = append(got, fmt.Sprintln(d.Second-began.Unix(), d.Fine, d.Unit))
		}
		return nil
	}
	for _, second := range []time.Duration{61, 62, 62} {
		e := embeddingEvent(at(second*time.Second), "a", 1)
		put(t, l, "s", e, Event{e.Time, strings.Replace(e.Message, `"Name":"n"`, `"Name":"n","StorageResolution":1,"Unit":"Count"`, 1)})
	}
	same(t, "seconds", "60 false None\n61 true Count\n60 false None\n62 true Count\n60 false None\n62 true Count\n", strings.Join(got, ""))
}

// Within an hour the events of a group embed at most 10,000 different metrics, those that came first.
func TestManyEmbeddedMetrics(t *testing.T) {
	l, c, taken := measuredClock(t)
	names := 0
	fresh := func(n int) (all []Event) {
		for range n {
			names++
			all = append(all, embeddingEvent(at(0), fmt.Sprint(names), 1))
		}
		return all
	}
	put(t, l, "s", fresh(maxEmbedded-1)...)
	same(t, "metrics", maxEmbedded-1, len(taken()))
	put(t, l, "s", fresh(3)...)
	same(t, "the last one", []string{"n[d=10000] 0: 1/1"}, taken())
	put(t, l, "s", embeddingEvent(at(0), "7", 1), embeddingEvent(at(0), "other", 1))
	same(t, "one that was found, and another", []string{"n[d=7] 0: 1/1"}, taken())
	if _, err := c.Advance(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	put(t, l, "s", embeddingEvent(at(0), "other", 1))
	same(t, "after an hour", []string{"n[d=other] 0: 1/1"}, taken())
}

// The values of a call are bounded, as a short event can have many.
func TestManyEmbeddedValues(t *testing.T) {
	l, taken := measured(t)
	names := strings.TrimSuffix(strings.Repeat(`{"Name":"n"},`, 100), ",")
	sets := strings.TrimSuffix(strings.Repeat("[],", 10), ",")
	e := Event{at(0), `{"_aws":{"CloudWatchMetrics":[{"Namespace":"App","Dimensions":[` + sets + `],"Metrics":[` + names + `]}]},"n":[` + strings.Repeat("1,", 99) + "1]}"}
	var all []Event
	for range 20 {
		all = append(all, e)
	}
	put(t, l, "s", all...)
	same(t, "values", []string{fmt.Sprintf("n[] 0: %v/%[1]v", float64(maxEmbeddedValues))}, taken())
}

// The values of events of many times are recorded in parts, all of them once.
func TestManyTimesOfEmbeddedMetrics(t *testing.T) {
	l, _ := measured(t)
	var counts []int
	seen := map[int64]int{}
	l.options.Record = func(data ...metrics.Datapoint) error {
		counts = append(counts, len(data))
		for _, d := range data {
			var s metrics.Set
			d.Add(&s)
			seen[d.Second] += int(s.Count)
		}
		return nil
	}
	var all []Event
	for i := range maxHeld/2 + 250 { // each has a minute of its own, and a second
		e := embeddingEvent(at(-time.Duration(i)*time.Minute-time.Second), "a", 1)
		e.Message = strings.Replace(e.Message, `"Metrics":[`, `"Metrics":[{"Name":"n","StorageResolution":1},`, 1)
		all = append(all, Event{at(0), e.Message})
	}
	put(t, l, "s", all...)
	same(t, "parts", []int{maxHeld, 500}, counts) // each waits for a sync
	for second, count := range seen {
		if count != 1 {
			t.Fatalf("%d values at %d", count, second)
		}
	}
	same(t, "times", maxHeld+500, len(seen))
}

// What a function writes may have its runtime's fields before it.
func TestEmbeddedMetricsOfOwnEvents(t *testing.T) {
	l, taken := measured(t)
	e := embeddingEvent(at(0), "a", 1)
	l.LogAs(group, "own", began, []byte("2026-11-30T12:00:00.000Z\tid\tINFO\t"+e.Message+"\n"), authorize.AllLogRights)
	l.Save()
	same(t, "a function's", []string{"n[d=a] 0: 1/1"}, taken())
	put(t, l, "s", Event{at(0), "INFO\t" + e.Message})
	same(t, "a client's", []string(nil), taken())
}
