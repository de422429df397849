package prom

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// maxBounds is the maximum number of bounds of a histogram.
const maxBounds = 16

// buckets are the buckets of a histogram. The bucket of a time is found by its number of binary
// digits, so that only a few bounds are compared.
type buckets struct {
	first   [64]uint8                    // by the number of digits: the first possible bucket
	bounds  [maxBounds + 1]time.Duration // upper bounds, ascending; followed by the maximum
	seconds []float64                    // the same
}

func newBuckets(seconds ...float64) *buckets {
	b := &buckets{seconds: seconds}
	for i := range b.bounds {
		b.bounds[i] = math.MaxInt64
		if i < len(seconds) {
			b.bounds[i] = time.Duration(seconds[i]*float64(time.Second) + .5)
		}
	}
	for digits := 1; digits < len(b.first); digits++ {
		b.first[digits] = uint8(b.from(int(b.first[digits-1]), 1<<(digits-1)))
	}
	return b
}

// from is the bucket of a time, beginning with the i-th.
func (b *buckets) from(i int, took time.Duration) int {
	for b.bounds[i] < took {
		i++
	}
	return i
}

// histogram counts times by bucket; the last has those beyond all bounds. The zero histogram is
// empty.
type histogram struct {
	micros atomic.Int64 // the sum
	counts [maxBounds + 1]atomic.Uint64
}

// observe counts a time; a negative one, as a clock was set back, is zero.
func (h *histogram) observe(b *buckets, took time.Duration) {
	took = max(took, 0)
	h.counts[b.from(int(b.first[bits.Len64(uint64(took))]), took)].Add(1)
	h.micros.Add(int64((took + time.Microsecond/2) / time.Microsecond))
}

// collect makes the Prometheus metric of the sum of some histograms, and returns its count.
func (b *buckets) collect(d *prometheus.Desc, labels []string, all ...*histogram) (m prometheus.Metric, count uint64) {
	sums, micros := make(map[float64]uint64, len(b.seconds)), int64(0)
	for i := range len(b.seconds) + 1 {
		for _, h := range all {
			count += h.counts[i].Load()
		}
		if i < len(b.seconds) {
			sums[b.seconds[i]] = count
		}
	}
	for _, h := range all {
		micros += h.micros.Load()
	}
	return prometheus.MustNewConstHistogram(d, count, float64(micros)/1e6, sums, labels...), count
}

// total is how much was counted.
func (h *histogram) total() (n uint64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}
