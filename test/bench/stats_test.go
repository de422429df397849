package main

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestQuantilesAgainstSort(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	var h, first, second histogram
	var all []time.Duration
	for i := range 20_000 {
		d := time.Duration(rng.ExpFloat64() * float64(time.Millisecond))
		all = append(all, d)
		h.add(d)
		if i%3 == 0 {
			first.add(d)
		} else {
			second.add(d)
		}
	}
	slices.Sort(all)
	first.merge(&second)
	for _, q := range []float64{0, 0.01, 0.5, 0.9, 0.99, 0.999, 1} {
		exact := all[min(int(q*float64(len(all))), len(all)-1)]
		got := h.quantile(q)
		if diff := got - exact; diff.Abs() > exact/60+1 {
			t.Errorf("quantile %v is %v, exactly %v", q, got, exact)
		}
		if merged := first.quantile(q); merged != got {
			t.Errorf("quantile %v of the parts merged is %v, of the whole %v", q, merged, got)
		}
	}
	if h.max != all[len(all)-1] || h.n != 20_000 {
		t.Errorf("max %v of %d, want %v", h.max, h.n, all[len(all)-1])
	}
}

func TestBuckets(t *testing.T) {
	last := -1
	for d := time.Duration(0); d < 1<<43; d += d/100 + 1 {
		i := bucketOf(d)
		if i < last || i >= bucketCount {
			t.Fatalf("%d ns in bucket %d after %d", d, i, last)
		}
		last = i
		if diff := bucketMiddle(i) - d; diff.Abs() > d/128+1 {
			t.Fatalf("%d ns stand as %d", d, bucketMiddle(i))
		}
	}
	if bucketOf(-time.Second) != 0 || bucketOf(1<<62) != bucketCount-1 {
		t.Error("durations out of range are not in the first and last bucket")
	}
	var empty histogram
	if empty.quantile(0.5) != 0 {
		t.Error("an empty histogram has a median")
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{3}, 3},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		before := slices.Clone(c.values)
		if got := median(c.values); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.values, got, c.want)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("%v was changed to %v", before, c.values)
		}
	}
	m := middle([]sample{
		{ServerCPU: 10, Throughput: 1, latency: latency{P99: 7}, Messages: 5},
		{ServerCPU: 30, Throughput: 3, latency: latency{P99: 9}, Messages: 1},
		{ServerCPU: 20, Throughput: 9, latency: latency{P99: 8}, Messages: 3},
	})
	if m.ServerCPU != 20 || m.Throughput != 3 || m.P99 != 8 || m.Messages != 3 {
		t.Errorf("middle %+v", m)
	}
	if ratio(3, 0) != 0 || ratio(0, 3) != 0 || ratio(3, 2) != 1.5 {
		t.Error("ratio")
	}
}
