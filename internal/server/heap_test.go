package server

import (
	"runtime"
	"sync/atomic"
	"testing"
)

func TestCollectorIsPacedByWhatIsAlive(t *testing.T) {
	var set []int
	p := &pacer{percent: leastPercent, set: func(percent int) int { set = append(set, percent); return 0 }}
	for _, test := range []struct {
		live    uint64
		percent int
	}{
		{0, 800},
		{1 << 20, 800},
		{12 << 20, 300},
		{12<<20 + 100, 300},
		{16 << 20, 200},
		{24 << 20, 100},
		{1 << 40, 100},
		{12 << 20, 300},
	} {
		p.pace(test.live)
		if p.percent != test.percent {
			t.Errorf("%d bytes alive: %d %%, want %d", test.live, p.percent, test.percent)
		}
	}
	if len(set) != 5 {
		t.Errorf("set %d times, to %v, want as often as it changed", len(set), set)
	}
}

func TestEachCollectionPacesTheNext(t *testing.T) {
	var paced atomic.Int64
	p := &pacer{}
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
