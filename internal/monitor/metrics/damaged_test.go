package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// A point that is damaged is as good as none, and holds up no other: neither is the
// rest unreadable for it, nor can nothing be written any more.
func TestDamagedPoints(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	s, now := open(t, st, c), start.Truncate(time.Minute).Unix()
	m := Metric{owner, "n", "a", ""}
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
	for _, kind := range []byte{kindPoints, kindSecond} {
		for key := range storetest.Range(t, st, []byte{prefix, kind}, []byte{prefix, kind + 1}) {
			b.Set(key, []byte("garbage"))
			break // the oldest
		}
	}
	if err := st.Apply(true, &b); err != nil {
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
