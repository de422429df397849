package metrics

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/memory"
)

// What is put by the second, and what is not, is read in short periods for three
// hours, before and behind flushes, restarts and the dropping of old seconds, and in
// long periods as well.
func TestSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		st, c := memory.New(), clock.NewVirtual(start)
		s := open(t, st, c)
		m := Metric{scope, "n", "m", Dimensions(Dimension{"D", "d"})}
		fine, coarse := map[int64]float64{}, map[int64]float64{} // by the second, by the minute; the second has all
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				at := c.Now().Unix() + int64(rapid.IntRange(-200, 100).Draw(t, "ahead"))
				byTheSecond := rapid.Bool().Draw(t, "by the second")
				if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: at, Fine: byTheSecond, Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
					t.Fatal(err)
				}
				if coarse[at/60]++; byTheSecond {
					fine[at]++
				}
			},
			"flush": func(t *rapid.T) {
				if _, err := s.flush(rapid.SampledFrom([]extent{due, all, squeeze}).Draw(t, "extent")); err != nil {
					t.Fatal(err)
				}
			},
			"time passes": func(t *rapid.T) {
				advance(t, c, rapid.SampledFrom([]time.Duration{time.Second, 11 * time.Second, time.Minute, time.Hour, 3 * time.Hour}).Draw(t, "d"))
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
				now := c.Now().Unix()
				period := rapid.SampledFrom([]int64{1, 5, 10, 20, 30, 60, 300}).Draw(t, "period")
				from := (now - int64(rapid.IntRange(0, 15_000).Draw(t, "from"))) / period * period
				to := now + 600
				want := map[int64]float64{}
				add := func(at int64, n float64) {
					if period%60 == 0 {
						from = from / 60 * 60
					} else if at < now-keepSeconds {
						return
					}
					if at >= from {
						want[from+(at-from)/period*period] += n
					}
				}
				known := map[int64]bool{} // minutes with seconds that count
				for at, n := range fine {
					if period%60 != 0 {
						add(at, n)
						if at >= max(from, now-keepSeconds) {
							known[at/60] = true
						}
					}
				}
				for at, n := range coarse {
					if period%60 == 0 || !known[at] {
						add(at*60, n)
					}
				}
				points, err := s.Read(m, "Count", from, to, period)
				if err != nil {
					t.Fatal(err)
				}
				got := map[int64]float64{}
				for i, p := range points {
					if got[p.Start] = p.Set.Sum; i > 0 && points[i-1].Start >= p.Start {
						t.Fatalf("%d follows %d", p.Start, points[i-1].Start)
					}
				}
				if !maps.Equal(got, want) {
					t.Fatalf("by %d s from %d, now %d: got %v, want %v", period, from, now, got, want)
				}
			},
		})
	})
}

// What is older than three hours goes from the store, and its minutes stay.
func TestSecondsGo(t *testing.T) {
	st, c := memory.New(), clock.NewVirtual(start)
	s := open(t, st, c)
	m := Metric{scope, "n", "m", ""}
	kept := func() (n int) {
		it, err := st.Iter([]byte{prefix, tagSecond}, []byte{prefix, tagSecond + 1})
		if err != nil {
			t.Fatal(err)
		}
		for it.Next() {
			n++
		}
		if err := it.Close(); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: c.Now().Unix() - keepSeconds - 60, Fine: true, Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.flush(squeeze); err != nil || kept() > 0 {
		t.Errorf("%d seconds are kept that nobody can ask for, %v", kept(), err)
	}
	for range 300 {
		if err := s.Put(Datapoint{Metric: m, Unit: "Count", Second: c.Now().Unix(), Fine: true, Add: func(set *Set) { set.Add(1, 1) }}); err != nil {
			t.Fatal(err)
		}
		advance(t, c, time.Second)
	}
	var counts []int
	for range 6 {
		if _, err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		s.Sync()
		counts = append(counts, kept())
		advance(t, c, time.Hour)
	}
	if !slices.Equal(counts[1:], []int{300, 300, 300, 0, 0}) {
		t.Errorf("of 300 seconds there are %v, by the hour", counts[1:])
	}
	if got := sums(t, s, m, 1); got != "05-26 11:19 1\n05-26 14:20 30\n05-26 14:21 60\n05-26 14:22 60\n05-26 14:23 60\n05-26 14:24 60\n05-26 14:25 30\n" {
		t.Errorf("got\n%s", got)
	}
}
