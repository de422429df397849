package metrics

import (
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// Fill gives way to what the store already has of a minute, and to what comes later.
func TestFill(t *testing.T) {
	record := func(t *testing.T, s *Store, minute int64, values ...float64) {
		t.Helper()
		for _, v := range values {
			if !s.Resource(scope, "n", "").Record(minute, Datum{Name: "a", Unit: "Count", Value: v}) {
				t.Fatal("forgotten")
			}
		}
	}
	fill := func(t *testing.T, s *Store, minute int64) {
		t.Helper()
		for range 2 {
			if !s.Resource(scope, "n", "").Fill(minute, Datum{Name: "a", Unit: "Count"}) {
				t.Fatal("forgotten")
			}
		}
	}
	flush := func(t *testing.T, s *Store, what extent) {
		t.Helper()
		if _, err := s.flush(what); err != nil {
			t.Fatal(err)
		}
		s.Sync()
	}
	for what, f := range map[string]struct {
		do   func(*testing.T, *Store, store.Store, *clock.Virtual, int64) *Store
		want [4]float64 // the count, the sum, the least, the greatest
	}{
		"nothing else": {func(t *testing.T, s *Store, _ store.Store, _ *clock.Virtual, minute int64) *Store {
			fill(t, s, minute)
			return s
		}, [4]float64{1, 0, 0, 0}},
		"behind values": {func(t *testing.T, s *Store, _ store.Store, _ *clock.Virtual, minute int64) *Store {
			record(t, s, minute, 2, 3)
			fill(t, s, minute)
			return s
		}, [4]float64{2, 5, 2, 3}},
		"before values": {func(t *testing.T, s *Store, _ store.Store, _ *clock.Virtual, minute int64) *Store {
			fill(t, s, minute)
			record(t, s, minute, 2, 3)
			return s
		}, [4]float64{2, 5, 2, 3}},
		"written before values": {func(t *testing.T, s *Store, _ store.Store, _ *clock.Virtual, minute int64) *Store {
			fill(t, s, minute)
			flush(t, s, all)
			record(t, s, minute, 2, 3)
			return s
		}, [4]float64{2, 5, 2, 3}},
		"written and let go before values": {func(t *testing.T, s *Store, _ store.Store, c *clock.Virtual, minute int64) *Store {
			fill(t, s, minute)
			advance(t, c, time.Minute)
			flush(t, s, due)
			record(t, s, minute, 2)
			flush(t, s, due)
			record(t, s, minute, 3)
			return s
		}, [4]float64{2, 5, 2, 3}},
		"written again": {func(t *testing.T, s *Store, st store.Store, c *clock.Virtual, minute int64) *Store {
			for range 3 {
				fill(t, s, minute)
				flush(t, s, squeeze)
			}
			return open(t, st, c)
		}, [4]float64{1, 0, 0, 0}},
		"a restart": {func(t *testing.T, s *Store, st store.Store, c *clock.Virtual, minute int64) *Store {
			record(t, s, minute, 2, 3)
			flush(t, s, squeeze)
			s = open(t, st, c)
			fill(t, s, minute)
			return s
		}, [4]float64{2, 5, 2, 3}},
		"a restart before values": {func(t *testing.T, s *Store, st store.Store, c *clock.Virtual, minute int64) *Store {
			record(t, s, minute, 2)
			flush(t, s, squeeze)
			s = open(t, st, c)
			fill(t, s, minute)
			record(t, s, minute, 3)
			return s
		}, [4]float64{2, 5, 2, 3}},
		"a restart and a flush before values": {func(t *testing.T, s *Store, st store.Store, c *clock.Virtual, minute int64) *Store {
			record(t, s, minute, 2)
			flush(t, s, squeeze)
			s = open(t, st, c)
			fill(t, s, minute)
			flush(t, s, all)
			record(t, s, minute, 3)
			return s
		}, [4]float64{2, 5, 2, 3}},
		"a squeeze": {func(t *testing.T, s *Store, _ store.Store, _ *clock.Virtual, minute int64) *Store {
			record(t, s, minute, 2, 3)
			flush(t, s, squeeze)
			fill(t, s, minute)
			return s
		}, [4]float64{2, 5, 2, 3}},
		"a clock that was set back": {func(t *testing.T, s *Store, _ store.Store, c *clock.Virtual, minute int64) *Store {
			record(t, s, minute, 2, 3)
			record(t, s, minute+1, 9)
			advance(t, c, 2*time.Minute)
			flush(t, s, due)
			fill(t, s, minute)
			return s
		}, [4]float64{2, 5, 2, 3}},
	} {
		t.Run(what, func(t *testing.T) {
			st, c := memory.New(), clock.NewVirtual(start)
			minute := Minute(start)
			s := f.do(t, open(t, st, c), st, c, minute)
			for range 2 {
				points, err := s.Read(Metric{scope, "n", "a", ""}, "Count", minute*60, minute*60+60, 60)
				if err != nil || len(points) != 1 {
					t.Fatal(points, err)
				}
				set := points[0].Set
				if got := [4]float64{set.Count, set.Sum, set.Min, set.Max}; got != f.want {
					t.Errorf("%v, want %v", got, f.want)
				}
				flush(t, s, squeeze)
			}
		})
	}
}

// What was filled is a value like any other of a longer period, and of an older one.
func TestFilledMinutesCount(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	s, minute := open(t, st, c), Minute(start)
	r := s.Resource(scope, "n", "")
	r.Fill(minute, Datum{Name: "a", Unit: "Count"})
	r.Record(minute+1, Datum{Name: "a", Unit: "Count", Value: 4})
	r.Fill(minute+2, Datum{Name: "a", Unit: "Count"})
	for _, age := range []time.Duration{0, time.Hour, 16 * 24 * time.Hour} {
		advance(t, c, age)
		if _, err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		points, err := s.Read(Metric{scope, "n", "a", ""}, "Count", minute*60, minute*60+300, 300)
		if err != nil || len(points) != 1 {
			t.Fatal(points, err)
		}
		if set := points[0].Set; set.Count != 3 || set.Sum != 4 || set.Min != 0 || set.Max != 4 {
			t.Errorf("after %v: %+v", age, set)
		}
	}
}
