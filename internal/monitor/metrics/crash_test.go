package metrics

import (
	"errors"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// After a crash everything is there that a flush has written.
func TestCrashLosesOneMinute(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	s := open(t, st, c)
	m := Metric{owner, "n", "a", ""}
	record := func() {
		if !s.Resource(owner, "n", "").Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1}) {
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

// crashing refuses all writes but the first ones.
type crashing struct {
	store.Store
	writes int
}

func (s *crashing) Apply(sync bool, batches ...*mutation.Batch) error {
	if s.writes--; s.writes < 0 {
		return errors.New("crashed")
	}
	return s.Store.Apply(sync, batches...)
}

// Whatever a flush has written when it is cut off is there, and joins what comes.
func TestCrashWithinFlush(t *testing.T) {
	for writes := range 3 {
		st, c := memory.New(), clock.NewVirtual(start)
		m, at := Metric{owner, "n", "a", ""}, start.Add(time.Hour).Unix()
		put := func(s *Store) {
			if err := s.Put(m, "Count", at, false, func(set *Set) { set.Add(1, 1) }); err != nil {
				t.Fatal(err)
			}
		}
		s := open(t, &crashing{st, writes}, c)
		put(s)
		_, err := s.flush(all)
		want := 0.0
		if writes > 0 {
			want = 1
		} else if err == nil {
			t.Error("a flush that cannot write says nothing")
		}
		s = open(t, st, c)
		for range 2 {
			sum := 0.0
			if err := s.Each(m, "Count", 0, at+3600, 3600, func(_ int64, set *Set) { sum += set.Sum }); err != nil || sum != want {
				t.Errorf("behind %d writes there are %v, %v, want %v", writes, sum, err, want)
			}
			put(s)
			want++
			if _, err := s.flush(squeeze); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// However far the summing up of old points has come when it is cut off, they count
// once.
func TestCrashWithinAge(t *testing.T) {
	for writes := range 8 {
		st, c := &crashing{memory.New(), 1000}, clock.NewVirtual(time.Date(2026, 1, 1, 0, 7, 0, 0, time.UTC))
		s := open(t, st, c)
		m := Metric{owner, "n", "a", ""}
		for n := range 7 {
			if err := s.Put(m, "Count", c.Now().Unix()+int64(n)*60, false, func(set *Set) { set.Add(1, 1) }); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		advance(t, c, 17*24*time.Hour)
		st.writes = writes
		_, _ = s.Flush() // which may fail
		st.writes = 1000
		s = open(t, st, c)
		for _, when := range []string{"behind a crash", "and when it has been made up for"} {
			if got, want := sums(t, s, m, 5), "01-01 00:05 3\n01-01 00:10 4\n"; got != want {
				t.Errorf("%s at write %d:\n%s", when, writes, got)
			}
			if _, err := s.Flush(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
