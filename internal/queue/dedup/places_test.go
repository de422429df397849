package dedup

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPlaces: every id is found in its batch, hardly any in others, however far the table has
// grown, and also where hashes are the same, or at the end of the table.
func TestPlaces(t *testing.T) {
	const base = uint64(1) << 50
	r := rand.New(rand.NewPCG(1, 2))
	for _, capacity := range []int{0, 1000, 100_000} {
		p := places{capacity: capacity}
		for range p.of(NewID("", "a")) {
			t.Error("an empty table has a batch")
		}
		in := map[ID]uint64{}
		first := base
		for range 10_000 {
			for range 1 + r.IntN(10) {
				id := NewID("", fmt.Sprint(r.Uint64()))
				switch r.IntN(20) {
				case 0:
					id[0], id[1], id[2] = 0xff, 0xff, 0xff
				case 1:
					id[0], id[1], id[2], id[3] = 0, 0, 0, 0
				}
				in[id] = first
				p.add(id, first)
			}
			first += 1 + r.Uint64N(100_000)
		}
		for id, first := range in {
			if !slices.Contains(slices.Collect(p.of(id)), first) {
				t.Fatalf("%x is not in %d of %v", id, first, slices.Collect(p.of(id)))
			}
		}
		wrong := 0
		for i := range 100_000 {
			for range p.of(NewID("new", fmt.Sprint(i))) {
				wrong++
			}
		}
		if wrong > 10 { // of 50,000 hashes of 32 bits
			t.Errorf("capacity %d: %d of 100,000 new ids seem known", capacity, wrong)
		}
		if p.used != len(in) || len(p.slots) > 4*max(len(in), capacity) {
			t.Errorf("%d of %d used, %d slots", p.used, len(in), len(p.slots))
		}
	}
}

// TestBatchesOfASteadyQueue: a minute's table begins with room for what the minute before got.
func TestBatchesOfASteadyQueue(t *testing.T) {
	var w Window
	const n = 5000
	sizes := map[int64]int{}
	for m := range int64(8) {
		for i := range n {
			w.AddBatched(m, uint64(m*n)+uint64(i), NewID("", fmt.Sprint(m, "-", i)))
			if i == 0 {
				sizes[m] = len(w.buckets[m].batched.slots)
			}
		}
		if now := len(w.buckets[m].batched.slots); m > 0 && now != sizes[m] {
			t.Errorf("minute %d: %d slots have become %d", m, sizes[m], now)
		}
	}
	if len(w.buckets) != int(Minute(Life))+1 {
		t.Errorf("%d buckets", len(w.buckets))
	}
}
