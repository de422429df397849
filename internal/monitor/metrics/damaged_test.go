package metrics

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// A point that is damaged is as good as none, and holds up no other: neither is the
// rest unreadable for it, nor can nothing be written any more.
func TestDamagedPoints(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	s, now := open(t, st, c), start.Truncate(time.Minute).Unix()
	m := Metric{scope, "n", "a", ""}
	put := func(second int64) {
		t.Helper()
		if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: second, Fine: true, Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
	}
	put(now)
	put(now + 60)
	if _, err := s.flush(squeeze); err != nil {
		t.Fatal(err)
	}
	var b mutation.Batch
	for _, tag := range []byte{tagPoints, tagSecond} {
		for key := range storetest.Range(t, st, []byte{prefix, tag}, []byte{prefix, tag + 1}) {
			b.Set(key, []byte("garbage"))
			break // the oldest
		}
	}
	if err := st.Apply(store.Sync, &b); err != nil {
		t.Fatal(err)
	}
	expect := func(want ...int64) {
		t.Helper()
		for _, period := range []int64{60, 1} {
			points, err := s.Read(m, "Count", now, now+120, period)
			if err != nil {
				t.Fatal(err)
			}
			var got []int64
			for _, p := range points {
				got = append(got, p.Start-now)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("periods of %d s: %s", period, d)
			}
		}
	}
	expect(60)
	put(now)
	expect(0, 60)
	if _, err := s.flush(squeeze); err != nil {
		t.Fatal(err)
	}
	expect(0, 60)
}

// A slow log holds up nobody who counts: what a read leaves out is logged without the
// lock of the resource.
func TestDamageIsLoggedWithoutLocks(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	m := Metric{scope, "n", "a", ""}
	s := open(t, st, c)
	s.Resource(scope, "n", "").Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 1})
	if err := save(s); err != nil {
		t.Fatal(err)
	}
	var b mutation.Batch
	for key := range storetest.Range(t, st, []byte{prefix, tagPoints}, []byte{prefix, tagPoints + 1}) {
		b.Set(key, []byte("garbage"))
	}
	if b.Len() != 1 {
		t.Fatalf("%d points are in the store", b.Len())
	}
	if err := st.Apply(store.Sync, &b); err != nil {
		t.Fatal(err)
	}

	j := journal.Open(journal.Options{Store: st})
	defer j.Close()
	lines := 0
	var r *Resource
	k := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(logFunc(func() {
		lines++
		if !r.mu.TryLock() {
			t.Error("the resource is locked")
			return
		}
		r.mu.Unlock()
	}))})
	again := New(k, Options{MaxPending: 50})
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	r = again.Resource(scope, "n", "")
	r.Record(Minute(c.Now()), Datum{Name: "a", Unit: "Count", Value: 2})
	now := start.Truncate(time.Minute).Unix()
	points, err := again.Read(m, "Count", now, now+60, 60)
	if err != nil || len(points) != 1 || points[0].Set.Sum != 2 {
		t.Errorf("read %+v, %v", points, err)
	}
	if lines != 1 {
		t.Errorf("%d lines are logged", lines)
	}
}

// logFunc is a log that calls a function for each line.
type logFunc func()

func (logFunc) Enabled(context.Context, slog.Level) bool    { return true }
func (l logFunc) WithAttrs([]slog.Attr) slog.Handler        { return l }
func (l logFunc) WithGroup(string) slog.Handler             { return l }
func (l logFunc) Handle(context.Context, slog.Record) error { l(); return nil }
