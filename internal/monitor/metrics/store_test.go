package metrics

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

var owner = Owner{"000000000000", "us-east-1"}

var start = time.Date(2026, 5, 26, 14, 20, 30, 0, time.UTC)

func open(t rapid.TB, st store.Store, c clock.Clock) *Store {
	t.Helper()
	s, err := Open(Options{Store: st, Clock: c, MaxPending: 50})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func advance(t rapid.TB, c *clock.Virtual, d time.Duration) {
	t.Helper()
	if _, err := c.Advance(context.Background(), d); err != nil {
		t.Fatal(err)
	}
}

// Whatever is recorded, late or early, before or behind flushes, restarts and
// ageing, is read as it was put in, at the resolution of its age.
func TestStoreKeepsEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st, c := memory.New(), clock.NewVirtual(start)
		s := open(t, st, c)
		type key struct {
			name   string
			minute int64
		}
		model := map[key]float64{}
		names := []string{"a", "b"}
		metricOf := func(name string) Metric { return Metric{owner, "n", name, Dimensions(Dimension{"D", name})} }
		t.Repeat(map[string]func(*rapid.T){
			"record": func(t *rapid.T) {
				name, value := rapid.SampledFrom(names).Draw(t, "name"), float64(rapid.IntRange(1, 9).Draw(t, "value"))
				m := metricOf(name)
				minute := Minute(c.Now()) - int64(rapid.IntRange(0, 2).Draw(t, "late"))
				for !s.Resource(m.Owner, m.Namespace, m.Dimensions).Record(minute, Datum{name, "Count", value}) {
				}
				model[key{name, minute}] += value
			},
			"put": func(t *rapid.T) {
				name, value := rapid.SampledFrom(names).Draw(t, "name"), float64(rapid.IntRange(1, 9).Draw(t, "value"))
				minute := Minute(c.Now()) + int64(rapid.IntRange(-14*day, 120).Draw(t, "minutes"))
				if err := s.Put(metricOf(name), "Count", minute*60, false, func(set *Set) { set.Add(value, 1) }); err != nil {
					t.Fatal(err)
				}
				model[key{name, minute}] += value
			},
			"flush": func(t *rapid.T) {
				if _, err := s.flush(rapid.SampledFrom([]extent{due, all, squeeze}).Draw(t, "what")); err != nil {
					t.Fatal(err)
				}
			},
			"tick": func(t *rapid.T) {
				advance(t, c, rapid.SampledFrom([]time.Duration{time.Minute, time.Hour, 24 * time.Hour, 20 * 24 * time.Hour}).Draw(t, "time"))
				if _, err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			},
			"restart": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open(t, st, c)
			},
			"": func(t *rapid.T) {
				now := Minute(c.Now())
				from := now - int64(rapid.IntRange(0, 500*day).Draw(t, "from"))
				to := from + int64(rapid.IntRange(1, 500*day).Draw(t, "length"))
				period := rapid.SampledFrom([]int64{hour, day, 7 * day}).Draw(t, "period")
				from -= from % hour // at whole hours all resolutions agree
				to += period - (to-from)%period
				for _, name := range names {
					want := map[int64]float64{}
					for k, v := range model {
						if k.name == name && k.minute >= from && k.minute < to && k.minute >= now-Retention+hour {
							want[from+(k.minute-from)/period*period] += v
						}
					}
					points, err := s.minutes(metricOf(name), "Count", from, to, period)
					if err != nil {
						t.Fatal(err)
					}
					got := map[int64]float64{}
					for i, p := range points {
						if i > 0 && points[i-1].at >= p.at {
							t.Fatalf("not in order: %v", points)
						}
						// At the end of retention a point goes with its hour, not before.
						if _, ok := want[p.at]; ok || p.at+period > now-Retention+hour {
							got[p.at] = p.set.Sum
						}
					}
					edge := from + (now-Retention+hour-from)/period*period
					delete(got, edge)
					delete(want, edge)
					if d := cmp.Diff(want, got); d != "" {
						t.Fatalf("%s of [%d, %d) by %d at %d: %s", name, from, to, period, now, d)
					}
				}
			},
		})
	})
}

func sums(t *testing.T, s *Store, m Metric, period int64) (lines string) {
	t.Helper()
	now := Minute(s.options.Clock.Now())
	points, err := s.minutes(m, "Count", (now-Retention)/hour*hour, now+hour, period)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range points {
		lines += fmt.Sprintf("%s %v\n", time.Unix(p.at*60, 0).UTC().Format("01-02 15:04"), p.set.Sum)
	}
	return lines
}

// The resolution follows the age: minutes, five minutes, hours, nothing. It is the
// same before the store has been looked through as after.
func TestAge(t *testing.T) {
	for _, tick := range []bool{true, false} {
		c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 7, 0, 0, time.UTC))
		s := open(t, memory.New(), c)
		m := Metric{owner, "n", "a", ""}
		for range 7 {
			if err := s.Put(m, "Count", c.Now().Unix(), false, func(set *Set) { set.Add(1, 1) }); err != nil {
				t.Fatal(err)
			}
			advance(t, c, time.Minute)
		}
		pass := func(d time.Duration) {
			advance(t, c, d)
			if tick {
				if _, err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		pass(14 * 24 * time.Hour)
		if got, want := strings.Count(sums(t, s, m, 1), "\n"), 7; got != want {
			t.Errorf("%d minutes, want %d", got, want)
		}
		pass(2 * 24 * time.Hour)
		if got, want := sums(t, s, m, 1), "01-01 00:05 3\n01-01 00:10 4\n"; got != want {
			t.Errorf("after 16 days:\n%s", got)
		}
		pass(56 * 24 * time.Hour)
		if got, want := sums(t, s, m, 1), "01-01 00:00 7\n"; got != want {
			t.Errorf("after 72 days:\n%s", got)
		}
		pass(400 * 24 * time.Hour)
		if got := sums(t, s, m, 1); got != "" {
			t.Errorf("after 472 days:\n%s", got)
		}
		if tick {
			pass(40 * 24 * time.Hour)
			it, err := s.options.Store.Iter([]byte{prefix, kindPoints}, []byte{prefix, kindSeries + 1})
			if err != nil {
				t.Fatal(err)
			}
			if it.Next() {
				t.Errorf("%q is left", it.Key())
			}
			it.Close()
		}
	}
}

// After a crash everything is there that a flush has written.
func TestCrashLosesOneMinute(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	s := open(t, st, c)
	m := Metric{owner, "n", "a", ""}
	record := func() {
		if !s.Resource(owner, "n", "").Record(Minute(c.Now()), Datum{"a", "Count", 1}) {
			t.Fatal("forgotten")
		}
	}
	record()
	advance(t, c, time.Minute)
	if more, err := s.Flush(); err != nil || !more {
		t.Fatal(more, err)
	}
	record()
	s = open(t, st, c)
	if got := sums(t, s, m, 1); got != "05-26 14:20 1\n" {
		t.Errorf("after the crash:\n%s", got)
	}
	record() // the same minute again: what the store has of it stays
	if got := sums(t, s, m, 1); got != "05-26 14:20 1\n05-26 14:21 1\n" {
		t.Errorf("and then:\n%s", got)
	}
}

// What nothing happens to leaves memory, and is found again; a store that is idle
// asks for no more flushes.
func TestIdleSeriesLeaveMemory(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	r := s.Resource(owner, "n", "")
	r.Record(Minute(c.Now()), Datum{"a", "Count", 1})
	for n := 0; ; n++ {
		advance(t, c, time.Minute)
		more, err := s.Flush()
		if err != nil {
			t.Fatal(err)
		}
		if !more {
			break
		}
		if n > 15 {
			t.Fatal("flushes go on")
		}
	}
	if r.Record(Minute(c.Now()), Datum{"a", "Count", 1}) {
		t.Error("the resource is still known")
	}
	if got := s.slots.Load(); got != 0 {
		t.Errorf("%d slots are left", got)
	}
	m := Metric{owner, "n", "a", ""}
	if got := sums(t, s, m, 1); got != "05-26 14:20 1\n" {
		t.Errorf("got:\n%s", got)
	}
}

func TestPutBoundsMemory(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	for n := range 500 {
		m := Metric{owner, "n", "a", Dimensions(Dimension{"N", fmt.Sprint(n)})}
		if err := s.Put(m, "Count", c.Now().Unix()+6000, false, func(set *Set) { set.Add(1, 1) }); err != nil {
			t.Fatal(err)
		}
		if got := s.slots.Load(); got > 50 {
			t.Fatalf("%d slots", got)
		}
	}
}

func TestList(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	put := func(o Owner, namespace, name, unit string, dimensions ...Dimension) {
		if err := s.Put(Metric{o, namespace, name, Dimensions(dimensions...)}, unit, c.Now().Unix(), false, func(set *Set) { set.Add(1, 1) }); err != nil {
			t.Fatal(err)
		}
	}
	put(owner, "n", "a", "Count")
	put(owner, "n", "a", "Bytes")
	put(owner, "n", "a", "Count", Dimension{"X", "1"}, Dimension{"A", "2"})
	put(owner, "n", "a", "Count", Dimension{"A", "3"})
	put(owner, "n", "b", "Count")
	put(owner, "nn", "a", "Count")
	put(Owner{"111111111111", "us-east-1"}, "n", "a", "Count")
	list := func(f Filter, limit int) string {
		f.Owner = owner
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
	units, err := s.Units(Metric{owner, "n", "a", ""})
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

// Recording, flushing and reading at once loses nothing and counts nothing twice.
func TestConcurrency(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	var wg sync.WaitGroup
	const writers, each = 4, 2000
	for range writers {
		wg.Go(func() {
			for range each {
				for !s.Resource(owner, "n", "").Record(Minute(c.Now()), Datum{"a", "Count", 1}) {
				}
			}
		})
	}
	done := make(chan struct{})
	var readers sync.WaitGroup
	for n := range 3 {
		readers.Go(func() {
			last := 0.0
			for {
				select {
				case <-done:
					return
				default:
				}
				if n == 0 {
					s.flush(squeeze)
					continue
				}
				points, err := s.minutes(Metric{owner, "n", "a", ""}, "Count", Minute(start), Minute(start)+1, 1)
				if err != nil {
					t.Error(err)
					return
				}
				if len(points) > 0 {
					if points[0].set.Sum < last || points[0].set.Sum > writers*each {
						t.Errorf("%v follows %v", points[0].set.Sum, last)
						return
					}
					last = points[0].set.Sum
				}
			}
		})
	}
	wg.Wait()
	close(done)
	readers.Wait()
	if got := sums(t, s, Metric{owner, "n", "a", ""}, 1); got != fmt.Sprintf("05-26 14:20 %d\n", writers*each) {
		t.Errorf("got %s", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	s, err := Open(Options{Store: memory.New(), Clock: clock.System})
	if err != nil {
		b.Fatal(err)
	}
	r := s.Resource(owner, "AWS/SQS", Dimensions(Dimension{"QueueName", "q"}))
	minute := Minute(clock.System.Now())
	b.ReportAllocs()
	for b.Loop() {
		r.Record(minute, Datum{"NumberOfMessagesSent", "Count", 1}, Datum{"SentMessageSize", "Bytes", 1024})
	}
}

// The units of a metric are those in memory and those from before the start.
func TestUnits(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	m := Metric{owner, "n", "a", ""}
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
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, st, c)
		} else if err := s.Put(m, step.unit, c.Now().Unix(), false, func(set *Set) { set.Add(1, 1) }); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := s.Units(m); err != nil || !slices.Equal(got, step.want) {
				t.Errorf("after %s: %v, %v, want %v", step.unit, got, err, step.want)
			}
		}
	}
}

// counting counts what is asked of a store.
type counting struct {
	store.Store
	written, synced atomic.Int64
}

func (s *counting) Apply(sync bool, batches ...*mutation.Batch) error {
	if s.written.Add(1); sync {
		s.synced.Add(1)
	}
	return s.Store.Apply(sync, batches...)
}

// A clock that jumps over many minutes does not wait for the disk at each of them;
// what was written becomes durable a moment later, or when it is asked for.
func TestFlushesAreSyncedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, c := &counting{Store: memory.New()}, clock.NewVirtual(start)
		s := open(t, st, c)
		minutes := func(n int) {
			for range n {
				if err := s.Put(Metric{owner, "n", "a", ""}, "Count", c.Now().Unix(), false, func(set *Set) { set.Add(1, 1) }); err != nil {
					t.Fatal(err)
				}
				advance(t, c, time.Minute)
				if _, err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		pass := func(d time.Duration) {
			passed := make(chan struct{})
			clock.System.AfterFunc(d, func() { close(passed) })
			<-passed
			synctest.Wait()
		}
		expect := func(what string, synced int64) {
			t.Helper()
			if n := st.synced.Load(); n != synced {
				t.Errorf("%s: %d syncs, want %d", what, n, synced)
			}
		}
		minutes(30)
		expect("at first", 0)
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		expect("when asked", 1)
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		expect("without anything new", 1)
		minutes(3)
		expect("again at first", 1)
		pass(syncDelay)
		expect("a moment later", 2)
		minutes(1)
		if err := s.Close(); err != nil || st.written.Load() < 34 {
			t.Fatal(err, st.written.Load())
		}
		expect("closed", 3)
		pass(time.Second)
		expect("long closed", 3)
	})
}

// Of a resource that goes on, what does not leaves memory; and what is only asked
// for never enters it.
func TestIdleMetricsLeaveMemory(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	of := func(name string) Metric { return Metric{owner, "n", name, ""} }
	put := func(name, unit string) {
		t.Helper()
		if err := s.Put(of(name), unit, c.Now().Unix(), true, func(set *Set) { set.Add(1, 1) }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 20 {
		put("steady", "Count")
		for j := range 10 {
			put(fmt.Sprint("once ", i, " ", j), "Bytes")
		}
		for _, name := range []string{"steady", fmt.Sprint("once ", i, " 1"), fmt.Sprint("none ", i)} {
			if _, err := s.Units(of(name)); err != nil {
				t.Fatal(err)
			}
		}
		advance(t, c, time.Minute)
		if _, err := s.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	r := s.Resource(owner, "n", "")
	if n := len(r.metrics); n > 2*(1+10*(forget+2)) { // each by the minute and the second
		t.Errorf("%d metrics are in memory", n)
	}
	if n := len(r.units); n > 1+forget+2 {
		t.Errorf("units of %d metrics are in memory", n)
	}
	put("once 0 1", "Bytes")
	put("once 0 1", "Count")
	if points, err := s.Read(of("once 0 1"), "Bytes", start.Unix()/60*60, c.Now().Unix(), 3600); err != nil || len(points) != 1 || points[0].Set.Count != 2 {
		t.Errorf("what came before is lost: %+v, %v", points, err)
	}
	units, err := s.Units(of("once 0 1"))
	if err != nil || !slices.Equal(units, []string{"Bytes", "Count"}) {
		t.Errorf("%v, %v", units, err)
	}
}

// A name that is kept is no piece of a request, all of which it would keep.
func TestNamesAreOwned(t *testing.T) {
	s := open(t, memory.New(), clock.NewVirtual(start))
	request := "000000000000 us-east-1 namespace name Count d\x01v\x01" + strings.Repeat("x", 1000)
	piece := func(of string) string {
		at := strings.Index(request, of)
		return request[at : at+len(of)]
	}
	m := Metric{Owner{piece("000000000000"), piece("us-east-1")}, piece("namespace"), piece("name"), piece("d\x01v\x01")}
	if err := s.Put(m, piece("Count"), start.Unix(), false, func(set *Set) { set.Add(1, 1) }); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Units(m); err != nil {
		t.Fatal(err)
	}
	s.shardOf(about{m.Owner, m.Namespace, m.Dimensions}).resources.Range(func(key, value any) bool {
		a, r := key.(about), value.(*Resource)
		kept := []string{a.Account, a.Region, a.Namespace, a.Dimensions, r.about.Account, r.about.Region, r.about.Namespace, r.about.Dimensions, r.metrics[0].name, r.metrics[0].unit}
		for name := range r.units {
			kept = append(kept, name)
		}
		for _, text := range kept {
			for at := range len(request) {
				if unsafe.StringData(text) == unsafe.StringData(request[at:]) {
					t.Errorf("%q is a piece of the request", text)
				}
			}
		}
		return true
	})
}
