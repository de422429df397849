package retry

import (
	"math"
	"time"
)

// Backoff is the function of the delays in the backoff phase.
type Backoff uint8

// The backoff functions.
const (
	Linear Backoff = iota
	Arithmetic
	Geometric
	Exponential
)

// curves is the table of backoff functions. at is the delay of retry i of n, n ≥ 2, between the
// targets low and high, in any unit. AWS publishes no formulas: these have its end points,
// never decrease, and the linear one reproduces its worked example (20 s to 40 s in 3 retries:
// 20, 30, 40).
var curves = [...]struct {
	name string
	at   func(i, n, low, high float64) float64
}{
	Linear: {"linear", func(i, n, low, high float64) float64 {
		return low + (high-low)*i/(n-1)
	}},
	// The increments grow by a constant.
	Arithmetic: {"arithmetic", func(i, n, low, high float64) float64 {
		return low + (high-low)*(i*(i+1))/((n-1)*n)
	}},
	// Each delay is a constant multiple of the one before.
	Geometric: {"geometric", func(i, n, low, high float64) float64 {
		return low * math.Pow(high/low, i/(n-1))
	}},
	// The increments double: (2^i − 1)/(2^(n−1) − 1) of the range, with both sides divided by
	// 2^(n−1) so that no n overflows.
	Exponential: {"exponential", func(i, n, low, high float64) float64 {
		unit := math.Exp2(1 - n)
		return low + (high-low)*(math.Exp2(i+1-n)-unit)/(1-unit)
	}},
}

// parseBackoff parses a backoffFunction of a policy.
func parseBackoff(name string) (b Backoff, ok bool) {
	for b := range curves {
		if curves[b].name == name {
			return Backoff(b), true
		}
	}
	return 0, false
}

// String is the name in policies.
func (b Backoff) String() string { return curves[b].name }

// delay is the wait before retry i of the n of a backoff phase, within [low, high] and rounded
// to a millisecond: finer differences would only show how a machine rounds.
func (b Backoff) delay(i, n int, low, high time.Duration) time.Duration {
	switch {
	case i <= 0:
		return low
	case i >= n-1:
		return high
	}
	d := time.Duration(curves[b].at(float64(i), float64(n), float64(low), float64(high)))
	return min(max(d.Round(time.Millisecond), low), high)
}
