package metrics

import (
	"math"
	"strconv"
	"strings"

	"godwit.dev/godwit/internal/decimal"
)

// Statistic is a statistic of a set. Make one with ParseStatistic.
type Statistic struct {
	Text    string // as requested
	kind    kind
	percent bool // low and high are shares of 1
	low     float64
	high    float64
}

type kind byte

const (
	sampleCount kind = iota + 1
	average
	sum
	minimum
	maximum
	percentile
	trimmedMean
	winsorizedMean
	trimmedCount
	trimmedSum
	percentileRank
)

var basic = map[string]kind{"SampleCount": sampleCount, "Average": average, "Sum": sum, "Minimum": minimum, "Maximum": maximum}

var trimmed = map[string]kind{"tm": trimmedMean, "wm": winsorizedMean, "tc": trimmedCount, "ts": trimmedSum, "pr": percentileRank}

// ParseStatistic parses the name of a statistic: SampleCount, Average, Sum, Minimum, Maximum,
// p0 to p100, IQM, tm, wm, tc and ts with a percentage (tm99 is TM(:99%)) or a range
// (TM(10%:90%), TM(150:1000), either end may be left out), and PR with a range of values.
func ParseStatistic(text string) (Statistic, bool) {
	s := Statistic{Text: text}
	if k, ok := basic[text]; ok {
		s.kind = k
		return s, true
	}
	name := strings.ToLower(text)
	if name == "iqm" {
		s.kind, s.percent, s.low, s.high = trimmedMean, true, 0.25, 0.75
		return s, true
	}
	if rest, ok := strings.CutPrefix(name, "p"); ok && !strings.HasPrefix(rest, "r") {
		s.kind, s.percent = percentile, true
		s.high, ok = share(rest)
		return s, ok
	}
	if len(name) < 3 {
		return s, false
	}
	s.kind = trimmed[name[:2]]
	rest, isRange := strings.CutPrefix(name[2:], "(")
	switch {
	case s.kind == 0:
		return s, false
	case isRange:
		rest, ok := strings.CutSuffix(rest, ")")
		return s, ok && s.parseRange(rest)
	}
	var ok bool
	s.percent = true
	s.high, ok = share(rest)
	return s, ok && s.kind != percentileRank
}

func (s *Statistic) parseRange(text string) bool {
	low, high, ok := strings.Cut(text, ":")
	if !ok || low == "" && high == "" {
		return false
	}
	s.percent = strings.HasSuffix(low+high, "%")
	s.low, s.high = math.Inf(-1), math.Inf(1)
	if s.percent {
		s.low, s.high = 0, 1
	}
	for i, to := range [...]*float64{&s.low, &s.high} {
		end := [...]string{low, high}[i]
		if end == "" {
			continue
		}
		number, percent := strings.CutSuffix(end, "%")
		if percent != s.percent {
			return false
		}
		if percent {
			*to, ok = share(number)
		} else {
			*to, ok = decimal.Parse(number)
		}
		if !ok {
			return false
		}
	}
	return s.low < s.high && (!s.percent || s.kind != percentileRank)
}

// share parses a percentage, without its sign, of 0 to 100.
func share(text string) (float64, bool) {
	if text == "" || len(text) > 16 || strings.Trim(text, "0123456789.") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n / 100, err == nil && n <= 100
}

// Extended reports whether the statistic is none of the basic five.
func (s Statistic) Extended() bool { return s.kind > maximum }

// Percentile is which percentile the statistic is, as a share of 1.
func (s Statistic) Percentile() (p float64, ok bool) { return s.high, s.kind == percentile }

// Of computes the statistic. ok is false if the set is empty, or if its distribution is needed
// but unknown, or has negative values, for which AWS computes no extended statistics.
func (s Statistic) Of(set *Set) (value float64, ok bool) {
	if set.Count == 0 {
		return 0, false
	}
	switch s.kind {
	case sampleCount:
		return set.Count, true
	case average:
		return set.Sum / set.Count, true
	case sum:
		return set.Sum, true
	case minimum:
		return set.Min, true
	case maximum:
		return set.Max, true
	default:
	}
	bins := set.bins()
	if bins == nil || set.Min < 0 {
		return 0, false
	}
	if s.kind == percentile {
		return quantile(bins, set, s.high), true
	}
	t := s.trim(bins, set)
	switch s.kind {
	case trimmedCount:
		return t.count, true
	case trimmedSum:
		return t.sum, true
	case percentileRank:
		return t.count / set.Count * 100, true
	case winsorizedMean:
		low, high := s.low, s.high
		if s.percent {
			low, high = t.first, t.last
		}
		// Values below or above the range count as its edge.
		return (t.sum + edge(low, t.below) + edge(high, t.above)) / set.Count, t.count > 0 || !s.percent
	default:
		return t.sum / t.count, t.count > 0
	}
}

func edge(value, count float64) float64 {
	if count == 0 {
		return 0
	}
	return value * count
}

// quantile is the value at rank p of all, the first for 0. The ends are exact.
func quantile(bins []bin, set *Set, p float64) float64 {
	rank, seen := ceil(p*set.Count), 0.0
	switch {
	case p == 0:
		return set.Min
	case rank >= set.Count:
		return set.Max
	}
	for _, b := range bins {
		if seen += b.count; seen >= rank {
			return b.value
		}
	}
	return bins[len(bins)-1].value
}

// ceil rounds up, except a number that exceeds an integer only by the error of a
// multiplication.
func ceil(x float64) float64 { return math.Ceil(x - x*1e-12) }

// kept is the part of a distribution in a range: the count and sum of its values, the first and
// last of them, and how many are below and above.
type kept struct{ count, sum, first, last, below, above float64 }

// trim restricts a distribution to a range. The low end is exclusive, the high one inclusive;
// percentages are of ranks, and a bin at a cut counts in part.
func (s Statistic) trim(bins []bin, set *Set) (t kept) {
	low, high, seen := set.place(s.low), set.place(s.high), 0.0
	if s.percent {
		low, high = s.low*set.Count, s.high*set.Count
	}
	for _, b := range bins {
		in, below := b.count, 0.0
		switch {
		case s.percent:
			below = min(max(low-seen, 0), b.count)
			in = max(min(seen+b.count, high)-max(seen, low), 0)
			seen += b.count
		case b.value <= low:
			in, below = 0, b.count
		case b.value > high:
			in = 0
		}
		t.below += below
		t.above += b.count - below - in
		if in == 0 {
			continue
		}
		if t.count == 0 {
			t.first = b.value
		}
		t.count += in
		t.sum += b.value * in
		t.last = b.value
	}
	return t
}
