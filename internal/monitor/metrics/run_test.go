package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/memory"
)

// What is counted by runs is what is counted without, at every look.
func TestRuns(t *testing.T) {
	c := clock.NewVirtual(start)
	s := open(t, memory.New(), c)
	m := Metric{owner, "n", "a", ""}
	show := func(name string) (all []any) {
		t.Helper()
		m.Name = name
		from := start.Truncate(time.Minute).Unix()
		points, err := s.Read(m, "Count", from, from+300, 60)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range points {
			all = append(all, p.Start, p.Set.Count, p.Set.Sum, p.Set.Min, p.Set.Max, p.Set.exact)
		}
		return all
	}
	check := func() {
		t.Helper()
		if diff := cmp.Diff(show("plain"), show("run"), cmp.AllowUnexported(bin{})); diff != "" {
			t.Error(diff)
		}
	}
	for _, v := range []struct {
		late   int64
		values []float64
		again  int
		do     func()
	}{
		{values: []float64{0, 0, 0}},
		{values: []float64{0, 5, 5, 5, 5, 2, 2}, again: 2, do: check},
		{values: []float64{2, 2}, do: func() {
			if !s.Resource(owner, "n", "").Fill(Minute(c.Now()), Datum{Name: "plain", Unit: "Count"}, Datum{Name: "run", Unit: "Count"}) {
				t.Fatal("forgotten")
			}
		}},
		{values: []float64{2, 2}, do: func() {
			if _, err := s.flush(all); err != nil {
				t.Fatal(err)
			}
		}},
		{values: []float64{2, 2}, do: func() { advance(t, c, time.Minute) }},
		{values: []float64{2, 2}, late: 1},
		{values: []float64{2, 2}, do: func() {
			if _, err := s.flush(squeeze); err != nil {
				t.Fatal(err)
			}
		}},
		{values: []float64{2, 2, 1}},
	} {
		for _, value := range v.values {
			d := Datum{Unit: "Count", Value: value, Again: v.again}
			plain, run := d, d
			plain.Name, run.Name, run.Run = "plain", "run", 1
			for !s.Resource(owner, "n", "").Record(Minute(c.Now())-v.late, plain, run) {
			}
		}
		if v.do != nil {
			v.do()
		}
	}
	check()
	if _, err := s.flush(squeeze); err != nil {
		t.Fatal(err)
	}
	check()
	if got := show("run"); len(got) != 12 {
		t.Errorf("%v", got)
	}
}
