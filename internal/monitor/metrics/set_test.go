package metrics

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func setOf(values ...float64) (s Set) {
	for _, v := range values {
		s.Add(v, 1)
	}
	return s
}

func upTo(n int) (values []float64) {
	for i := range n {
		values = append(values, float64(i+1))
	}
	return values
}

func TestStatistics(t *testing.T) {
	ten := upTo(10)
	for _, tc := range []struct {
		values []float64
		stat   string
		want   float64
	}{
		{ten, "SampleCount", 10},
		{ten, "Average", 5.5},
		{ten, "Sum", 55},
		{ten, "Minimum", 1},
		{ten, "Maximum", 10},
		{ten, "p0", 1},
		{ten, "p10", 1},
		{ten, "p50", 5},
		{ten, "p90", 9},
		{ten, "p99.9", 10},
		{ten, "p100", 10},
		{ten, "tm90", 5},
		{ten, "TM(:90%)", 5},
		{ten, "tm100", 5.5},
		{ten, "TM(10%:90%)", 5.5},
		{ten, "TM(80%:)", 9.5},
		{ten, "TM(2:4)", 3.5},
		{ten, "TM(9:)", 10},
		{ten, "IQM", 5.5},
		{upTo(8), "iqm", 4.5},
		{ten, "tc90", 9},
		{ten, "TC(3:)", 7},
		{ten, "TC(20:30)", 0},
		{ten, "ts90", 45},
		{ten, "TS(:3)", 6},
		{ten, "TS(20:)", 0},
		{ten, "PR(:3)", 30},
		{ten, "PR(3:5)", 20},
		{ten, "PR(:0)", 0},
		{ten, "wm90", 5.4},
		{ten, "WM(10%:90%)", 5.5},
		{ten, "WM(3:8)", 5.5},
		{ten, "WM(:5)", 4},
		{[]float64{7, 7, 7}, "p50", 7},
		{[]float64{7, 7, 7}, "tm50", 7},
		{[]float64{0}, "p99", 0},
		{upTo(1000), "p50", 500},
		{upTo(1000), "tm99", 495.5},
		{upTo(1000), "PR(:250)", 25},
	} {
		s, ok := ParseStatistic(tc.stat)
		if !ok {
			t.Errorf("%s is not known", tc.stat)
			continue
		}
		set := setOf(tc.values...)
		got, ok := s.Of(&set)
		// A thousand values are a sketch, which is off by one in a hundred.
		tolerance := 1e-9
		if len(tc.values) > maxExact && s.Extended() {
			tolerance = 0.021 * tc.want
		}
		if !ok || math.Abs(got-tc.want) > tolerance {
			t.Errorf("%s of %d values is %v, %v; want %v", tc.stat, len(tc.values), got, ok, tc.want)
		}
	}
}

// Of a sketch the ends are exact, and so is on which side of a bound a value lies that
// is the bound itself.
func TestEndsOfSketches(t *testing.T) {
	set := setOf(upTo(100)...)
	for stat, want := range map[string]float64{
		"p0": 1, "p100": 100, "p99.9": 100, "PR(10:20)": 10, "TC(10:20)": 10, "TC(:1)": 1, "TC(1:2)": 1, "TC(99:)": 1, "TC(:100)": 100, "TC(0:)": 100,
	} {
		s, _ := ParseStatistic(stat)
		if got, ok := s.Of(&set); !ok || got != want {
			t.Errorf("%s is %v, %v; want %v", stat, got, ok, want)
		}
	}
}

func TestUnknownStatistics(t *testing.T) {
	for _, text := range []string{
		"", "average", "p", "p101", "p-1", "pr90", "PR(1%:2%)", "tm", "tm101", "TM", "TM()", "TM(:)", "TM(1:2", "TM(5:5)", "TM(9:1)",
		"TM(1%:2)", "TM(a:b)", "XX(1:2)", "IQM50", "tm9e1", "TM(NaN:1)", "TM(:Inf)", "TM(1_0:20)", "TM(0x1p1:20)", "p1.5.5", "q50", "TM(:101%)",
	} {
		if s, ok := ParseStatistic(text); ok {
			t.Errorf("%q is taken for %+v", text, s)
		}
	}
}

// Statistics of values that are all alike have a distribution, and the sum that was
// told.
func TestAlikeStatistics(t *testing.T) {
	var s Set
	s.AddStatistics(1, 2.5, 2, 2)
	s.Add(5, 1)
	s.AddStatistics(2, 4, 2, 2)
	p50, _ := ParseStatistic("p50")
	if value, ok := p50.Of(&s); !ok || value != 2 || s.Sum != 11.5 || s.Count != 4 || s.Min != 2 || s.Max != 5 {
		t.Errorf("%v, %v of %+v", value, ok, s)
	}
}

// Of statistics alone, and of negative values, there are no percentiles.
func TestNoDistribution(t *testing.T) {
	var opaque, alike Set
	opaque.AddStatistics(3, 12, 1, 7)
	alike.AddStatistics(3, 21, 7, 7)
	negative := setOf(-1, 2)
	for _, text := range []string{"p50", "tm90", "WM(1:2)", "tc90", "TS(:5)", "PR(:5)", "IQM"} {
		s, _ := ParseStatistic(text)
		for name, set := range map[string]*Set{"opaque": &opaque, "negative": &negative, "empty": {}} {
			if got, ok := s.Of(set); ok {
				t.Errorf("%s of an %s set is %v", text, name, got)
			}
		}
	}
	p50, _ := ParseStatistic("p50")
	if got, ok := p50.Of(&alike); !ok || got != 7 {
		t.Errorf("p50 of equal values is %v, %v", got, ok)
	}
	// What joins them is lost as well.
	opaque.Add(3, 1)
	mixed := setOf(1, 2, 3)
	mixed.Merge(&opaque)
	if got, ok := p50.Of(&mixed); ok {
		t.Errorf("p50 is %v", got)
	}
	if mixed.Count != 7 || mixed.Sum != 21 || mixed.Min != 1 || mixed.Max != 7 {
		t.Errorf("%+v", mixed)
	}
}

// However values are spread over sets, and whether or not sets are stored between,
// their union has the statistics of all values: exactly the five, and the
// percentiles within the accuracy of a sketch.
func TestMergeIsUnion(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var whole []float64
		var union Set
		for range rapid.IntRange(1, 5).Draw(t, "sets") {
			var s Set
			different := rapid.SampledFrom([]int{1, 3, 40, 400}).Draw(t, "different")
			for range rapid.IntRange(1, 300).Draw(t, "values") {
				v := float64(rapid.IntRange(0, different-1).Draw(t, "value"))
				s.Add(v, 1)
				whole = append(whole, v)
			}
			stored, err := decodeSet(s.encode())
			if err != nil {
				t.Fatal(err)
			}
			union.Merge(&stored)
		}
		slices.SortFunc(whole, cmp.Compare[float64])
		total := 0.0
		for _, v := range whole {
			total += v
		}
		if union.Count != float64(len(whole)) || union.Sum != total || union.Min != whole[0] || union.Max != whole[len(whole)-1] {
			t.Fatalf("%v %v %v %v of %v", union.Count, union.Sum, union.Min, union.Max, whole)
		}
		count := 0.0
		for _, b := range union.bins() {
			count += b.count
		}
		if math.Abs(count-union.Count) > 1e-6 {
			t.Fatalf("%v values are distributed of %v", count, union.Count)
		}
		for _, p := range []string{"p0", "p25", "p50", "p90", "p99", "p100"} {
			s, _ := ParseStatistic(p)
			got, _ := s.Of(&union)
			want := whole[max(int(math.Ceil(s.high*float64(len(whole))))-1, 0)]
			if math.Abs(got-want) > want*accuracy*1.001+1e-9 {
				t.Fatalf("%s is %v, want %v", p, got, want)
			}
		}
	})
}

// Memory of a set is bounded whatever comes.
func TestSetIsBounded(t *testing.T) {
	var s Set
	for i := range 200_000 {
		s.Add(math.Exp(float64(i%1000)/4-100), 1)
		s.Add(-math.Exp(float64(i%1000)/4-100), 1)
	}
	if n := len(s.bins()); n > 2*maxBuckets+1 {
		t.Errorf("%d bins", n)
	}
	if n := len(s.encode()); n > 40_000 {
		t.Errorf("%d bytes", n)
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	s := setOf(upTo(40)...)
	alike := setOf(1)
	if n := testing.AllocsPerRun(100, func() { s.Add(17, 1); alike.Add(1, 1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzDecodeSet(f *testing.F) {
	for _, values := range [][]float64{{1}, {1, 2.5, 3}, upTo(500)} {
		s := setOf(values...)
		f.Add(s.encode())
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		s, err := decodeSet(p)
		if err != nil {
			return
		}
		for _, text := range []string{"Average", "p50", "tm90", "PR(:3)"} {
			stat, _ := ParseStatistic(text)
			stat.Of(&s)
		}
		again, err := decodeSet(s.encode())
		if err != nil || math.Float64bits(again.Sum) != math.Float64bits(s.Sum) {
			t.Fatalf("%v: %+v became %+v", err, s, again)
		}
	})
}

func FuzzParseStatistic(f *testing.F) {
	for _, text := range []string{"Average", "p99.9", "tm90", "TM(10%:90%)", "PR(:3)", "wm(1:)", "IQM", "TM(-1e9:1e300)"} {
		f.Add(text)
	}
	sets := []Set{setOf(1), setOf(upTo(10)...), setOf(upTo(500)...)}
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := ParseStatistic(text)
		if !ok {
			return
		}
		for i := range sets {
			value, ok := s.Of(&sets[i])
			if ok && (math.IsNaN(value) || math.IsInf(value, 0)) {
				t.Fatalf("%s is %v", text, value)
			}
		}
	})
}
