package metrics

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

var scope = Scope{"000000000000", "us-east-1"}

var start = time.Date(2026, 5, 26, 14, 20, 30, 0, time.UTC)

// load makes a Store of a kernel of its own.
func load(j *journal.Journal, c clock.Clock, o Options) (*Store, error) {
	k := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	s := New(k, o)
	return s, k.Load()
}

// save writes everything that memory holds.
func save(s *Store) error {
	_, err := s.flush(squeeze)
	s.Sync()
	return err
}

func open(t rapid.TB, st store.Store, c clock.Clock) *Store {
	t.Helper()
	j := journal.Open(journal.Options{Store: st})
	t.(interface{ Cleanup(func()) }).Cleanup(j.Close)
	s, err := load(j, c, Options{MaxPending: 50})
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

// What is put is added in parts, so that other commands need not wait for all of it.
func TestPutInParts(t *testing.T) {
	s := open(t, memory.New(), clock.NewVirtual(start))
	var data []Datapoint
	for i := range 2*maxPut + 1 {
		data = append(data, Datapoint{Metric: Metric{scope, "n", fmt.Sprint(i), ""}, Unit: "Count", Second: start.Unix(), Add: func(set *Set) { set.Add(1, 1) }})
	}
	before := s.shard.CommandCount
	if err := s.Put(data...); err != nil {
		t.Fatal(err)
	}
	if n := s.shard.CommandCount - before; n < 3 {
		t.Errorf("%d commands", n)
	}
	for i := range data {
		points, err := s.Read(data[i].Metric, "Count", start.Unix()-60, start.Unix()+60, 60)
		if err != nil || len(points) != 1 || points[0].Set.Count != 1 {
			t.Fatalf("metric %d: %v, %v", i, points, err)
		}
	}
}

// While the disk is short of space, clients put nothing.
func TestFullDisk(t *testing.T) {
	st := memory.New()
	s := open(t, st, clock.NewVirtual(start))
	full := true
	s.kernel.Options.Full = func() bool { return full }
	put := func() error {
		return s.Put(Datapoint{Metric: Metric{scope, "n", "name", ""}, Unit: "Count", Second: start.Unix(), Add: func(set *Set) { set.Add(1, 1) }})
	}
	if err := put(); !errors.Is(err, kernel.ErrFull) {
		t.Errorf("a put on a full disk: %v", err)
	}
	full = false
	if err := put(); err != nil {
		t.Error(err)
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
		metricOf := func(name string) Metric { return Metric{scope, "n", name, Dimensions(Dimension{"D", name})} }
		t.Repeat(map[string]func(*rapid.T){
			"record": func(t *rapid.T) {
				name := rapid.SampledFrom(names).Draw(t, "name")
				m := metricOf(name)
				minute := Minute(c.Now()) - int64(rapid.IntRange(0, 2).Draw(t, "late"))
				d := Datum{
					Name: name, Unit: "Count", Value: float64(rapid.IntRange(1, 3).Draw(t, "value")),
					Again: rapid.IntRange(0, 2).Draw(t, "again"),
				}
				for range rapid.IntRange(1, 3).Draw(t, "times") {
					for !s.Resource(m.Scope, m.Namespace, m.Dimensions).Record(minute, d) {
					}
					model[key{name, minute}] += d.Value * float64(1+d.Again)
				}
			},
			"put": func(t *rapid.T) {
				name, value := rapid.SampledFrom(names).Draw(t, "name"), float64(rapid.IntRange(1, 9).Draw(t, "value"))
				minute := Minute(c.Now()) + int64(rapid.IntRange(-14*day, 120).Draw(t, "minutes"))
				if err := s.Put(Datapoint{Metric: metricOf(name), Unit: "Count", Second: minute * 60, Add: func(set *Set) { set.Add(value, 1) }}); err != nil {
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
				if err := save(s); err != nil {
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
					got, last := map[int64]float64{}, int64(-1)
					if err := s.minutes(metricOf(name), "Count", Periods{from, to, period}, Zeros{}, func(at int64, set *Set) {
						if at <= last {
							t.Fatalf("%d follows %d", at, last)
						}
						last = at
						// At the end of retention a point goes with its hour, not before.
						if _, ok := want[at]; ok || at+period > now-Retention+hour {
							got[at] = set.Sum
						}
					}); err != nil {
						t.Fatal(err)
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
	now := Minute(s.kernel.Clock.Now())
	if err := s.minutes(m, "Count", Periods{(now - Retention) / hour * hour, now + hour, period}, Zeros{}, func(at int64, set *Set) {
		lines += fmt.Sprintf("%s %v\n", time.Unix(at*60, 0).UTC().Format("01-02 15:04"), set.Sum)
	}); err != nil {
		t.Fatal(err)
	}
	return lines
}

// The resolution follows the age: minutes, five minutes, hours, nothing. It is the
// same before the store has been looked through as after.
func TestAge(t *testing.T) {
	for _, tick := range []bool{true, false} {
		c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 7, 0, 0, time.UTC))
		s := open(t, memory.New(), c)
		m := Metric{scope, "n", "a", ""}
		for range 7 {
			if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: c.Now().Unix(), Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
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
		expect := func(days int, period int64, want string) {
			t.Helper()
			if got := sums(t, s, m, period); got != want {
				t.Errorf("after %d days, by %d minutes:\n%swant\n%s", days, period, got, want)
			}
		}
		if got, want := strings.Count(sums(t, s, m, 1), "\n"), 7; got != want {
			t.Errorf("%d minutes, want %d", got, want)
		}
		pass(2 * 24 * time.Hour)
		expect(16, 1, "")
		expect(16, 4, "")
		expect(16, 5, "01-01 00:05 3\n01-01 00:10 4\n")
		expect(16, 10, "01-01 00:00 3\n01-01 00:10 4\n")
		odd := Minute(time.Date(2026, 1, 1, 0, 7, 0, 0, time.UTC)) // what begins before a range and reaches into it is its beginning
		if points, err := s.Read(m, "Count", odd*60, (odd+60)*60, 300); err != nil || len(points) != 1 || points[0].Start != odd*60 || points[0].Set.Sum != 7 {
			t.Errorf("from an odd minute: %+v, %v", points, err)
		}
		pass(56 * 24 * time.Hour)
		expect(72, 5, "")
		expect(72, 90, "")
		expect(72, hour, "01-01 00:00 7\n")
		expect(72, day, "01-01 00:00 7\n")
		pass(400 * 24 * time.Hour)
		expect(472, day, "")
		if tick {
			pass(40 * 24 * time.Hour)
			it, err := s.reader.Iter([]byte{prefix, tagPoints}, []byte{prefix, tagSeries + 1})
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

// Minutes are there for 15 days, five minutes for 63, hours for 455, to the day.
func TestRetention(t *testing.T) {
	for _, tick := range []bool{true, false} {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		c := clock.NewVirtual(at)
		s := open(t, memory.New(), c)
		m := Metric{scope, "n", "a", ""}
		if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: at.Unix(), Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
		for _, step := range []struct {
			after time.Duration
			want  string // by the minute, five minutes, the hour
		}{
			{0, "111"},
			{15 * 24 * time.Hour, "111"},
			{15*24*time.Hour + time.Minute, "011"},
			{63 * 24 * time.Hour, "011"},
			{63*24*time.Hour + time.Minute, "001"},
			{455 * 24 * time.Hour, "001"},
			{455*24*time.Hour + time.Hour, "000"},
		} {
			advance(t, c, at.Add(step.after).Sub(c.Now()))
			if tick {
				if _, err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			for _, period := range []int64{60, 300, 3600} {
				points, err := s.Read(m, "Count", at.Unix(), at.Unix()+3600, period)
				if err != nil {
					t.Fatal(err)
				}
				got += fmt.Sprint(len(points))
			}
			if got != step.want {
				t.Errorf("after %v there are %s, want %s", step.after, got, step.want)
			}
		}
	}
}

// What nothing happens to leaves memory, and is found again; a store that is idle
// asks for no more flushes.
func TestIdleSeriesLeaveMemory(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	r := s.Resource(scope, "n", "")
	r.Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1})
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
	if r.Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1}) {
		t.Error("the resource is still known")
	}
	if got := s.slots.Load(); got != 0 {
		t.Errorf("%d slots are left", got)
	}
	m := Metric{scope, "n", "a", ""}
	if got := sums(t, s, m, 1); got != "05-26 14:20 1\n" {
		t.Errorf("got:\n%s", got)
	}
}

func TestPutBoundsMemory(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	for n := range 500 {
		m := Metric{scope, "n", "a", Dimensions(Dimension{"N", fmt.Sprint(n)})}
		if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: c.Now().Unix() + 6000, Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
		if got := s.slots.Load(); got > 50 {
			t.Fatalf("%d slots", got)
		}
		if got := known(s); got > 51 {
			t.Fatalf("%d resources", got)
		}
	}
	// Those whose minutes have been written count, too.
	for n := range 500 {
		m := Metric{scope, "n", "b", Dimensions(Dimension{"N", fmt.Sprint(n)})}
		if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: c.Now().Unix() - 120, Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
		if n%40 == 0 {
			if _, err := s.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if got := known(s); got > 51 {
			t.Fatalf("%d resources", got)
		}
	}
	if _, err := s.flush(squeeze); err != nil || s.series.Load() != 0 || known(s) != 0 {
		t.Errorf("%d series, %d resources, %v", s.series.Load(), known(s), err)
	}
	points, err := s.Read(Metric{scope, "n", "b", Dimensions(Dimension{"N", "7"})}, "Count", c.Now().Unix()-600, c.Now().Unix(), 600)
	if err != nil || len(points) != 1 || points[0].Set.Sum != 1 {
		t.Errorf("one of those that were let go: %v, %v", points, err)
	}
}

// known is how many resources are in memory.
func known(s *Store) (n int) {
	for i := range s.stripes {
		s.stripes[i].resources.Range(func(_, _ any) bool {
			n++
			return true
		})
	}
	return n
}

// A minute of the server's own is written when it is over, however often it is
// flushed before.
func TestMinutesAreWrittenOnce(t *testing.T) {
	st, c := &counting{Store: memory.New()}, clock.NewVirtual(start)
	s := open(t, st, c)
	st.written.Store(0)
	for range 3 {
		s.Resource(scope, "n", "").Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1})
		if _, err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		s.Sync()
	}
	if n := st.written.Load(); n != 1 { // that there is the metric
		t.Errorf("%d writes before the minute is over", n)
	}
	advance(t, c, time.Minute)
	_, err := s.Flush()
	if s.Sync(); err != nil || st.written.Load() != 2 {
		t.Errorf("%d writes, %v", st.written.Load(), err)
	}
}

// A range may end in any future, and begin in any past.
func TestReadFarRanges(t *testing.T) {
	c := clock.NewVirtual(start)
	st := &counting{Store: memory.New()}
	s := open(t, st, c)
	m := Metric{scope, "n", "a", ""}
	for _, ahead := range []time.Duration{0, 2 * time.Hour} {
		if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: c.Now().Add(ahead).Unix(), Fine: true, Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC).Unix()
	for _, when := range []string{"in memory", "in the store", "behind a restart"} {
		for _, period := range []int64{1, 30, 60, 3600} {
			st.sought.Store(0)
			points, err := s.Read(m, "Count", 0, end, period)
			if err != nil || len(points) != 2 {
				t.Errorf("%s, by %d s: %d points, %v", when, period, len(points), err)
			}
			if n := st.sought.Load(); n > 1000 {
				t.Errorf("%s, by %d s: %d seeks", when, period, n)
			}
		}
		if when == "in memory" {
			if _, err := s.flush(squeeze); err != nil {
				t.Fatal(err)
			}
		} else {
			s = open(t, st, c)
		}
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
				for !s.Resource(scope, "n", "").Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1}) {
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
				if err := s.minutes(Metric{scope, "n", "a", ""}, "Count", Periods{Minute(start), Minute(start) + 1, 1}, Zeros{}, func(_ int64, set *Set) {
					if set.Sum < last || set.Sum > writers*each {
						t.Errorf("%v follows %v", set.Sum, last)
					}
					last = set.Sum
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	close(done)
	readers.Wait()
	if got := sums(t, s, Metric{scope, "n", "a", ""}, 1); got != fmt.Sprintf("05-26 14:20 %d\n", writers*each) {
		t.Errorf("got %s", got)
	}
}

func BenchmarkRecord(b *testing.B) {
	j := journal.Open(journal.Options{Store: memory.New()})
	defer j.Close()
	s, err := load(j, clock.System, Options{})
	if err != nil {
		b.Fatal(err)
	}
	r := s.Resource(scope, "AWS/SQS", Dimensions(Dimension{"QueueName", "q"}))
	minute := Minute(clock.System.Now())
	b.ReportAllocs()
	for b.Loop() {
		r.Record(minute, Datum{Name: "NumberOfMessagesSent", Unit: "Count", Value: 1}, Datum{Name: "SentMessageSize", Unit: "Bytes", Value: 1024})
	}
}

// A resource with many metrics finds each of them.
func TestManyMetrics(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	s.options.MaxPending = 1000
	for range 2 {
		for n := range 3 * manyMetrics {
			if err := s.Put(Datapoint{Metric: Metric{scope, "n", fmt.Sprint(n), ""}, Unit: "Count", Second: c.Now().Unix(), Fine: n%2 == 0, Add: func(set *Set) { set.Add(float64(n), 1) }}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got, want := s.slots.Load(), int64(3*manyMetrics*3/2); got != want {
		t.Errorf("%d slots, want %d", got, want)
	}
	for n := range 3 * manyMetrics {
		for _, period := range []int64{1, 60} {
			points, err := s.Read(Metric{scope, "n", fmt.Sprint(n), ""}, "Count", start.Unix()-30, start.Unix()+30, period)
			if err != nil || len(points) != 1 || points[0].Set.Sum != float64(2*n) {
				t.Errorf("metric %d by %d s: %v, %v", n, period, points, err)
			}
		}
	}
}

// A metric of which many minutes are in memory finds each of them, also when some
// have left it.
func TestManyMinutes(t *testing.T) {
	const many = 3 * manySlots
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	s.options.MaxPending = 1000
	m := Metric{scope, "n", "a", ""}
	minute := func(n int) int64 { return Minute(start) + int64(n) - many/2 }
	for round := range 3 {
		for n := range many {
			if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: minute(n) * 60, Add: func(set *Set) { set.Add(float64(n), 1) }}); err != nil {
				t.Fatal(err)
			}
		}
		if round == 0 {
			if got := s.slots.Load(); got != many {
				t.Errorf("%d slots, want %d", got, many)
			}
		} else if _, err := s.Flush(); err != nil { // the minutes that are over
			t.Fatal(err)
		}
	}
	points, err := s.Read(m, "Count", minute(0)*60, minute(many)*60, 60)
	if err != nil || len(points) != many {
		t.Fatal(len(points), err)
	}
	for n, p := range points {
		if p.Set.Sum != float64(3*n) {
			t.Errorf("minute %d has %v, want %d", n, p.Set.Sum, 3*n)
		}
	}
}

// counting counts what is asked of a store.
type counting struct {
	store.Store
	written, synced, sought atomic.Int64
}

func (s *counting) Iter(lower, upper []byte) (store.Iterator, error) {
	s.sought.Add(1)
	return s.Store.Iter(lower, upper)
}

func (s *counting) Snapshot() store.Snapshot { return countingSnapshot{s.Store.Snapshot(), s} }

type countingSnapshot struct {
	store.Snapshot
	of *counting
}

func (s countingSnapshot) Iter(lower, upper []byte) (store.Iterator, error) {
	s.of.sought.Add(1)
	return s.Snapshot.Iter(lower, upper)
}

func (s *counting) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	s.written.Add(1)
	return s.Store.Apply(sync, batches...)
}

func (s *counting) Sync() error {
	s.synced.Add(1)
	return s.Store.Sync()
}

// A clock that jumps over many minutes does not wait for the disk at each of them;
// what was written becomes durable a moment later, or when it is asked for.
func TestFlushesAreSyncedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, c := &counting{Store: memory.New()}, clock.NewVirtual(start)
		s := open(t, st, c)
		st.synced.Store(0)
		minutes := func(n int) {
			for range n {
				s.Resource(scope, "n", "").Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1})
				advance(t, c, time.Minute)
				if _, err := s.Flush(); err != nil {
					t.Fatal(err)
				}
			}
		}
		pass := func(d time.Duration) {
			passed, _ := clock.After(clock.System, d)
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
		s.Sync()
		expect("when asked", 1)
		s.Sync()
		expect("without anything new", 1)
		minutes(3)
		expect("again at first", 1)
		pass(journal.LazyDelay)
		expect("a moment later", 2)
		minutes(1)
		if err := save(s); err != nil {
			t.Fatal(err)
		}
		expect("closed", 3)
		pass(time.Second)
		expect("long closed", 3)
	})
}

// A name that is kept is no piece of a request, all of which it would keep.
func TestNamesAreOwned(t *testing.T) {
	s := open(t, memory.New(), clock.NewVirtual(start))
	request := "000000000000 us-east-1 namespace name Count d\x01v\x01" + strings.Repeat("x", 1000)
	piece := func(of string) string {
		at := strings.Index(request, of)
		return request[at : at+len(of)]
	}
	m := Metric{Scope{piece("000000000000"), piece("us-east-1")}, piece("namespace"), piece("name"), piece("d\x01v\x01")}
	if err := s.Put(Datapoint{Metric: m, Unit: piece("Count"), Second: start.Unix(), Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Units(m); err != nil {
		t.Fatal(err)
	}
	s.stripeOf(about{m.Scope, m.Namespace, m.Dimensions}).resources.Range(func(key, value any) bool {
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
