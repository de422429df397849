package clock_test

import (
	"sync"
	"testing"

	"godwit.dev/godwit/internal/clock"
)

func TestJitterRepeatsBySeed(t *testing.T) {
	a, b, other := clock.NewJitter(7), clock.NewJitter(7), clock.NewJitter(8)
	differs := false
	for range 1000 {
		x := a.Float64()
		if x < 0 || x >= 1 {
			t.Fatalf("%v is outside [0, 1)", x)
		}
		if y := b.Float64(); x != y {
			t.Fatalf("the same seed gave %v and %v", x, y)
		}
		differs = differs || x != other.Float64()
	}
	if !differs {
		t.Error("two seeds gave the same sequence")
	}
}

func TestJitterIsSafeForConcurrentUse(t *testing.T) {
	const callers, each = 8, 1000
	draw := func(concurrent bool) float64 {
		j := clock.NewJitter(1)
		var wg sync.WaitGroup
		sums := make([]float64, callers)
		for i := range callers {
			f := func() {
				for range each {
					sums[i] += j.Float64()
				}
			}
			if concurrent {
				wg.Go(f)
			} else {
				f()
			}
		}
		wg.Wait()
		total := 0.0
		for _, s := range sums {
			total += s
		}
		return total
	}
	// The same numbers are drawn, each once, in whatever order.
	if d := draw(true) - draw(false); d > 1e-6 || d < -1e-6 {
		t.Errorf("concurrent callers drew other numbers: the sums differ by %g", d)
	}
}
