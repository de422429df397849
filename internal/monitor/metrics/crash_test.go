package metrics

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// After a crash everything is there that a flush has written.
func TestCrashLosesOneMinute(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	s := open(t, st, c)
	m := Metric{scope, "n", "a", ""}
	record := func() {
		if !s.Resource(scope, "n", "").Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1}) {
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

// crashing fails from some write on, as the store of a process that is killed.
type crashing struct {
	store.Store
	writes int
}

var errCrashed = errors.New("crashed")

func (s *crashing) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	if s.writes--; s.writes < 0 {
		return errCrashed
	}
	return s.Store.Apply(sync, batches...)
}

// untilCrash calls f with a Store on st, until it returns or st fails.
func untilCrash(t *testing.T, st store.Store, c clock.Clock, f func(s *Store)) {
	t.Helper()
	crashed, over := make(chan struct{}), make(chan struct{})
	crash := sync.OnceFunc(func() { close(crashed) }) // the store fails for everyone who writes
	j := journal.Open(journal.Options{Store: st, Fatal: func(err error) {
		if !errors.Is(err, errCrashed) {
			t.Error(err)
		}
		crash()
		runtime.Goexit() // nobody is answered any more
	}})
	go func() {
		s, err := load(j, c, Options{MaxPending: 50})
		if err != nil {
			t.Error(err)
		}
		f(s)
		s.Sync()
		j.Close()
		close(over)
	}()
	select {
	case <-crashed:
	case <-over:
	}
}

// What a client has put is durable when it is told so: a crash leaves it, and it joins
// what comes.
func TestPutIsDurable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, c := &gated{Store: memory.New()}, clock.NewVirtual(start)
		m, at := Metric{scope, "n", "a", ""}, start.Unix()
		other := Metric{scope, "n", "b", Dimensions(Dimension{"D", "v"})}
		s := open(t, st, c)
		put := func() {
			one := func(set *Set) { set.Add(1, 1) }
			if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: at, Fine: true, Add: one}, Datapoint{Metric: other, Unit: "Count", Second: at, Add: one}); err != nil {
				t.Error(err)
			}
		}
		for n := range 3 {
			gate := make(chan struct{})
			st.gate = gate
			answered := false
			go func() { put(); answered = true }()
			synctest.Wait()
			if answered {
				t.Error("answered before it is durable")
			}
			close(gate)
			synctest.Wait()
			if !answered {
				t.Fatal("never answered")
			}
			s = open(t, memoryOf(t, st), c) // as after a crash
			for _, of := range []Metric{m, other} {
				if points, err := s.Read(of, "Count", at-60, at+60, 60); err != nil || len(points) != 1 || points[0].Set.Sum != float64(n+1) {
					t.Errorf("put %d times there is %v, %v", n+1, points, err)
				}
			}
			if points, err := s.Read(m, "Count", at-60, at+60, 1); err != nil || len(points) != 1 || points[0].Set.Sum != float64(n+1) {
				t.Errorf("by the second there is %v, %v", points, err)
			}
			if found, err := s.Units(m); err != nil || len(found) != 1 {
				t.Errorf("listed are %v, %v", found, err)
			}
			s = open(t, st, c)
		}
	})
}

// gated is a store whose syncs wait for a gate.
type gated struct {
	store.Store
	gate chan struct{}
}

func (s *gated) Sync() error {
	if s.gate != nil {
		<-s.gate
	}
	return s.Store.Sync()
}

// memoryOf copies a store.
func memoryOf(t *testing.T, from store.Reader) store.Store {
	t.Helper()
	to := memory.New()
	var b mutation.Batch
	for key, value := range storetest.Dump(t, from) {
		b.Set(key, value)
	}
	if err := to.Apply(store.Sync, &b); err != nil {
		t.Fatal(err)
	}
	return to
}

// Whatever a flush has written when it is cut off is there, and joins what comes.
func TestCrashWithinFlush(t *testing.T) {
	for writes := range 3 {
		st, c := memory.New(), clock.NewVirtual(start)
		m, minute := Metric{scope, "n", "a", ""}, Minute(start)+60
		record := func(s *Store) {
			if !s.Resource(scope, "n", "").Record(minute, Datum{Name: "a", Unit: "Count", Value: 1}) {
				t.Error("forgotten")
			}
		}
		killed := &crashing{st, 1000}
		untilCrash(t, killed, c, func(s *Store) {
			record(s)
			s.Sync() // the epochs of all shards, which may be one write or several
			killed.writes = writes
			if _, err := s.flush(all); err != nil {
				t.Error(err)
			}
		})
		want := 0.0
		if writes > 0 {
			want = 1
		}
		s := open(t, st, c)
		for range 2 {
			sum := 0.0
			if err := s.Each(m, "Count", 0, minute*60+3600, 3600, func(_ int64, set *Set) { sum += set.Sum }); err != nil || sum != want {
				t.Errorf("behind %d writes there are %v, %v, want %v", writes, sum, err, want)
			}
			record(s)
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
		m := Metric{scope, "n", "a", ""}
		for n := range 7 {
			if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: c.Now().Unix() + int64(n)*60, Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
				t.Fatal(err)
			}
		}
		if err := save(s); err != nil {
			t.Fatal(err)
		}
		advance(t, c, 17*24*time.Hour)
		st.writes = 1 + writes // the first is the new epoch
		untilCrash(t, st, c, func(s *Store) {
			if _, err := s.Flush(); err != nil {
				t.Error(err)
			}
		})
		s = open(t, st.Store, c)
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
