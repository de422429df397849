package metrics

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// A list of which little passes the filter is made in bounded steps.
func TestListLooksSoFar(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	s.options.MaxPending = 3 * MaxLooked
	for n := range MaxLooked + 10 {
		if err := s.Put(Datapoint{Metric: Metric{scope, "n", fmt.Sprintf("%06d", n), ""}, Unit: "Count", Second: c.Now().Unix(), Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	filter := Filter{Scope: scope, Name: fmt.Sprintf("%06d", MaxLooked+5)}
	next, err := s.List(filter, nil, func(Metric) bool { seen++; return true })
	if err != nil || next == nil || seen != 0 {
		t.Errorf("at first %d, next %q, %v", seen, next, err)
	}
	if next, err = s.List(filter, next, func(Metric) bool { seen++; return true }); err != nil || next != nil || seen != 1 {
		t.Errorf("and then %d, next %q, %v", seen, next, err)
	}
}

// When a metric was last seen does not go back when older data are put.
func TestListAfterBackfill(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	put := func(ago time.Duration) {
		t.Helper()
		if err := s.Put(Datapoint{Metric: Metric{scope, "n", "a", ""}, Unit: "Count", Second: c.Now().Add(-ago).Unix(), Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
		for range 12 { // until it has left memory
			advance(t, c, time.Minute)
			if _, err := s.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(0)
	put(13 * 24 * time.Hour)
	seen := 0
	if _, err := s.List(Filter{Scope: scope, Since: Minute(start)}, nil, func(Metric) bool { seen++; return true }); err != nil || seen != 1 {
		t.Errorf("listed %d times, %v", seen, err)
	}
}

// A metric that continues stays on the list.
func TestListOfLivingMetrics(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	for range 40 {
		if err := s.Put(Datapoint{Metric: Metric{scope, "n", "a", ""}, Unit: "Count", Second: c.Now().Unix(), Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
		advance(t, c, time.Minute)
		if _, err := s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	seen := 0
	if _, err := s.List(Filter{Scope: scope, Since: Minute(c.Now()) - 16}, nil, func(Metric) bool { seen++; return true }); err != nil || seen != 1 {
		t.Errorf("listed %d times, %v", seen, err)
	}
}

// Pages of a list write nothing once all that is new is listed.
func TestListWritesOnce(t *testing.T) {
	st, c := &counting{Store: memory.New()}, clock.NewVirtual(start)
	s := open(t, st, c)
	list := func() int64 {
		t.Helper()
		before, seen := st.written.Load(), 0
		if _, err := s.List(Filter{Scope: scope}, nil, func(Metric) bool { seen++; return true }); err != nil || seen != 1 {
			t.Errorf("listed %d times, %v", seen, err)
		}
		s.Sync()
		return st.written.Load() - before
	}
	for n := range 3 {
		s.Resource(scope, "n", "").Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1})
		if wrote := list(); wrote > 0 != (n == 0) {
			t.Errorf("%d writes for list %d", wrote, n+1)
		}
	}
}

func TestList(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	put := func(o Scope, namespace, name, unit string, dimensions ...Dimension) {
		if err := s.Put(Datapoint{Metric: Metric{o, namespace, name, Dimensions(dimensions...)}, Unit: unit, Second: c.Now().Unix(), Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
	}
	put(scope, "n", "a", "Count")
	put(scope, "n", "a", "Bytes")
	put(scope, "n", "a", "Count", Dimension{"X", "1"}, Dimension{"A", "2"})
	put(scope, "n", "a", "Count", Dimension{"A", "3"})
	put(scope, "n", "b", "Count")
	put(scope, "nn", "a", "Count")
	put(Scope{"111111111111", "us-east-1"}, "n", "a", "Count")
	list := func(f Filter, limit int) string {
		f.Scope = scope
		var all []string
		var after []byte
		for pages := 1; ; pages++ {
			n := 0
			next, err := s.List(f, after, func(m Metric) bool {
				if n == limit {
					return false
				}
				n++
				all = append(all, m.Namespace+"/"+m.Name+fmt.Sprint(SplitDimensions(m.Dimensions)))
				return true
			})
			if err != nil {
				t.Fatal(err)
			}
			if next == nil {
				return strings.Join(all, " ")
			}
			after = slices.Clone(next)
		}
	}
	for _, limit := range []int{1, 2, 100} {
		for _, tc := range []struct {
			filter Filter
			want   string
		}{
			{Filter{}, "n/a[] n/a[{A 2} {X 1}] n/a[{A 3}] n/b[] nn/a[]"},
			{Filter{Namespace: "n"}, "n/a[] n/a[{A 2} {X 1}] n/a[{A 3}] n/b[]"},
			{Filter{Namespace: "n", Name: "b"}, "n/b[]"},
			{Filter{Name: "a", Dimensions: []Dimension{{"A", ""}}}, "n/a[{A 2} {X 1}] n/a[{A 3}]"},
			{Filter{Dimensions: []Dimension{{"A", "2"}, {"X", "1"}}}, "n/a[{A 2} {X 1}]"},
			{Filter{Dimensions: []Dimension{{"A", "9"}}}, ""},
			{Filter{Since: Minute(start) + 1}, ""},
		} {
			if got := list(tc.filter, limit); got != tc.want {
				t.Errorf("%+v by %d: %s, want %s", tc.filter, limit, got, tc.want)
			}
		}
	}
	units, err := s.Units(Metric{scope, "n", "a", ""})
	if err != nil || fmt.Sprint(units) != "[Bytes Count]" {
		t.Errorf("%v, %v", units, err)
	}
	advance(t, c, 500*24*time.Hour)
	s.Flush()
	advance(t, c, 25*time.Hour)
	s.Flush()
	if got := list(Filter{}, 9); got != "" {
		t.Errorf("after the end of retention there are %s", got)
	}
}

// The units of a metric are those in memory and those from before the start.
func TestUnits(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	m := Metric{scope, "n", "a", ""}
	s := open(t, st, c)
	for _, step := range []struct {
		unit string
		want []string
	}{
		{"Count", []string{"Count"}},
		{"Bytes", []string{"Bytes", "Count"}},
		{"", []string{"Bytes", "Count"}}, // a restart
		{"Seconds", []string{"Bytes", "Count", "Seconds"}},
		{"Count", []string{"Bytes", "Count", "Seconds"}},
	} {
		if step.unit == "" {
			if err := save(s); err != nil {
				t.Fatal(err)
			}
			s = open(t, st, c)
		} else if err := s.Put(Datapoint{Metric: m, Unit: step.unit, Second: c.Now().Unix(), Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := s.Units(m); err != nil || !slices.Equal(got, step.want) {
				t.Errorf("after %s: %v, %v, want %v", step.unit, got, err, step.want)
			}
		}
	}
}

// slowReader has something happen while the store is read.
type slowReader struct {
	journal.Reader
	meanwhile func()
}

func (r slowReader) Iter(lower, upper []byte) (store.Iterator, error) {
	it, err := r.Reader.Iter(lower, upper)
	r.meanwhile()
	return it, err
}

// Nobody who adds a value waits while a metric's units are read, and none of them is lost: whether
// it is written meanwhile or not, and even if the resource is.
func TestUnitsMeanwhile(t *testing.T) {
	for name, flushes := range map[string]int{"in memory": 0, "written": 1, "released": forget + 2} {
		t.Run(name, func(t *testing.T) {
			c := clock.NewVirtual(start)
			s := open(t, memory.New(), c)
			m := Metric{scope, "n", "a", ""}
			r := s.Resource(scope, "n", "")
			r.Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1})
			all, once := s.reader, false
			s.reader = slowReader{all, func() {
				if s.reader = all; once || !r.mu.TryLock() {
					t.Fatal("the lock of the resource is held")
				}
				once = true
				r.mu.Unlock()
				r.Record(Minute(c.Now()), Datum{Name: "a", Unit: "Bytes", Value: 1})
				for range flushes {
					advance(t, c, time.Minute)
					if _, err := s.Flush(); err != nil {
						t.Fatal(err)
					}
				}
			}}
			for range 2 {
				if got, err := s.Units(m); err != nil || !slices.Equal(got, []string{"Bytes", "Count"}) {
					t.Errorf("%v, %v", got, err)
				}
			}
			if !once {
				t.Error("the store was not read")
			}
		})
	}
}

// Asking for metrics that are not there leaves nothing in memory.
func TestUnitsOfNothing(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	r := s.Resource(scope, "n", "")
	r.Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1})
	for n := range 100 {
		if units, err := s.Units(Metric{scope, "n", fmt.Sprint("x", n), ""}); err != nil || len(units) > 0 {
			t.Fatal(units, err)
		}
	}
	if len(r.units) > 0 {
		t.Errorf("%d names are remembered", len(r.units))
	}
}
