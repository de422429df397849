package main

import (
	"math/bits"
	"slices"
	"time"
)

// histogram counts durations in buckets that are at most 1.6 % wide: 64 to
// each power of two. The zero value is empty.
type histogram struct {
	counts [bucketCount]uint32
	n      uint64
	max    time.Duration
}

const (
	perOctave   = 64 // buckets to a power of two
	octaveBits  = 6
	bucketCount = 40 * perOctave // up to 2^45 ns, almost ten hours
)

func bucketOf(d time.Duration) int {
	v := uint64(max(d, 0))
	if v < perOctave {
		return int(v)
	}
	shift := bits.Len64(v) - octaveBits - 1
	return min((shift+1)*perOctave+int(v>>shift)-perOctave, bucketCount-1)
}

// bucketMiddle is the duration that stands for bucket i.
func bucketMiddle(i int) time.Duration {
	if i < perOctave {
		return time.Duration(i)
	}
	shift := i/perOctave - 1
	return time.Duration((i%perOctave+perOctave)<<shift + 1<<shift/2)
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucketOf(d)]++
	h.n++
	h.max = max(h.max, d)
}

func (h *histogram) merge(o *histogram) {
	for i, c := range o.counts {
		h.counts[i] += c
	}
	h.n += o.n
	h.max = max(h.max, o.max)
}

// quantile is the duration that a share q, 0 to 1, of all durations do not
// exceed; 0 of an empty histogram.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := min(uint64(q*float64(h.n)), h.n-1)
	var seen uint64
	for i, c := range h.counts {
		seen += uint64(c)
		if seen > rank {
			return min(bucketMiddle(i), h.max)
		}
	}
	return h.max
}

// latency is what is reported of a histogram, in milliseconds.
type latency struct {
	P50  float64 `json:"p50_ms"`
	P99  float64 `json:"p99_ms"`
	P999 float64 `json:"p999_ms"`
	Max  float64 `json:"max_ms"`
}

func (h *histogram) latency() latency {
	return latency{
		P50: milliseconds(h.quantile(0.5)), P99: milliseconds(h.quantile(0.99)),
		P999: milliseconds(h.quantile(0.999)), Max: milliseconds(h.max),
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// median is the middle value, or the mean of the two in the middle; 0 of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// medianOf is the median of one figure of several samples.
func medianOf[T any](samples []T, figure func(T) float64) float64 {
	values := make([]float64, 0, len(samples))
	for _, s := range samples {
		values = append(values, figure(s))
	}
	return median(values)
}

// ratio is a/b, 0 (not known) when either is not known.
func ratio(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return a / b
}
