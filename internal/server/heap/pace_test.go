package heap

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestCollectorIsPacedByWhatIsAlive(t *testing.T) {
	var set []int
	var limits []int64
	p := &pacer{
		least: DefaultGrowth, percent: DefaultGrowth, set: func(percent int) int { set = append(set, percent); return 0 },
		setLimit: func(limit int64) int64 { limits = append(limits, limit); return 0 },
	}
	for _, test := range []struct {
		live    uint64
		percent int
		limit   int64 // MiB
	}{
		{0, 800, 512},
		{1 << 20, 800, 512},
		{12 << 20, 300, 512},
		{12<<20 + 100, 300, 512},
		{16 << 20, 200, 512},
		{24 << 20, 100, 512},
		{128 << 20, 100, 512},
		{129 << 20, 100, 1024},
		{1 << 40, 100, 4 << 20},
		{12 << 20, 300, 512},
	} {
		p.pace(test.live)
		if p.percent != test.percent || p.limit != test.limit<<20 {
			t.Errorf("%d bytes alive: %d %% up to %d MiB, want %d up to %d", test.live, p.percent, p.limit>>20, test.percent, test.limit)
		}
	}
	if len(set) != 5 || len(limits) != 4 {
		t.Errorf("set %d times, to %v, and %d times, to %v, want as often as they changed", len(set), set, len(limits), limits)
	}
}

func TestEachCollectionPacesTheNext(t *testing.T) {
	var paced atomic.Int64
	p := &pacer{setLimit: func(int64) int64 { return 0 }}
	p.set = func(int) int {
		p.percent = 0 // so that it is set each time
		paced.Add(1)
		return 0
	}
	p.await()
	for paced.Load() < 3 {
		runtime.GC()
	}
	p.stopped.Store(true)
}

// A least growth below Go's own is what a heap above the floor gets.
func TestLeastGrowth(t *testing.T) {
	ignore := func(int64) int64 { return 0 }
	p := &pacer{least: 50, percent: DefaultGrowth, set: func(percent int) int { return percent }, setLimit: ignore}
	for _, test := range []struct {
		live    uint64
		percent int
	}{
		{12 << 20, 300},
		{24 << 20, 100},
		{36 << 20, 50},
		{1 << 30, 50},
	} {
		if p.pace(test.live); p.percent != test.percent {
			t.Errorf("%d bytes alive: %d %%, want %d", test.live, p.percent, test.percent)
		}
	}
}
