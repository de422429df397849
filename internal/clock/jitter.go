package clock

import (
	"math/rand/v2"
	"sync"
)

// Jitter is the source of the random spread of delays. The same seed gives the same sequence,
// so that a run can be repeated. Numbers are drawn outside of the state machines, and are
// inputs of commands.
type Jitter struct {
	mu  sync.Mutex
	rng *rand.Rand
}

// NewJitter makes a source from a seed.
func NewJitter(seed uint64) *Jitter {
	// PCG has 128 bits of seed; the other half is an arbitrary constant.
	return &Jitter{rng: rand.New(rand.NewPCG(seed, 0x676f64776974))}
}

// RandomSeed draws a seed for a run that need not be repeated. It is never 0, which in the
// configuration means that no seed is given.
func RandomSeed() uint64 { return rand.Uint64() | 1 }

// Float64 is the next number in [0, 1). It is safe for concurrent use.
func (j *Jitter) Float64() float64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.rng.Float64()
}
