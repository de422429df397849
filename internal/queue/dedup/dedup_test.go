package dedup

import (
	"fmt"
	"testing"
)

// TestWindow: what was added is always found while it lives; what was not is
// hardly ever.
func TestWindow(t *testing.T) {
	const start = int64(1_000_000_000_000)
	var w Window
	if got := w.Candidates(start, NewID("", "a")); len(got) != 0 {
		t.Errorf("an empty window has candidates: %v", got)
	}
	w.Unknown(Minute(start) - 2)
	if got := w.Candidates(start, NewID("", "a")); len(got) != 1 || got[0] != (Candidate{Minute: Minute(start) - 2}) {
		t.Errorf("candidates %v", got)
	}
	const n = 20_000
	for i := range n {
		w.Add(Minute(start+int64(i)*10), NewID("", fmt.Sprint(i))) // 200 s
	}
	now := start + n*10
	for i := range n {
		at, found := start+int64(i)*10, false
		for _, c := range w.Candidates(now, NewID("", fmt.Sprint(i))) {
			found = found || c.Minute == Minute(at) && c.Added
		}
		if !found {
			t.Fatalf("%d is forgotten", i)
		}
	}
	mistakes := 0
	for i := range n {
		for _, c := range w.Candidates(now, NewID("", fmt.Sprint("other", i))) {
			if c.Added {
				mistakes++
			}
		}
	}
	if mistakes > n/1000 { // each is in one of some 8 parts by a chance of 1 in 16,000
		t.Errorf("%d of %d new ids seem known", mistakes, n)
	}
	// Six minutes on, the filters of the first minutes are gone.
	later := now + 6*minute
	w.Add(Minute(later), NewID("", "x"))
	if len(w.buckets) != 1 {
		t.Errorf("%d buckets are kept", len(w.buckets))
	}
	if got := w.Candidates(later, NewID("", "new")); len(got) != 0 {
		t.Errorf("candidates %v for a new id", got)
	}
}

// TestFilterOfASteadyQueue: where each minute brings as many ids as the one before, each filter
// but the first is a single part of that size.
func TestFilterOfASteadyQueue(t *testing.T) {
	var w Window
	const n = 5000
	for m := range int64(8) {
		for i := range n {
			w.Add(m, NewID("", fmt.Sprint(m, "-", i)))
		}
		if f := w.buckets[m].single; m > 0 && (len(f.parts) != 1 || f.parts[0].capacity != n) {
			t.Errorf("minute %d: %d parts, the first for %d", m, len(f.parts), f.parts[0].capacity)
		}
	}
	w.Add(9, NewID("", "a")) // after a minute without any
	if capacity := w.buckets[9].single.parts[0].capacity; capacity != n {
		t.Errorf("capacity for %d", capacity)
	}
	w.Add(10, NewID("", "b")) // after one with a single id
	if capacity := w.buckets[10].single.parts[0].capacity; capacity != firstCapacity {
		t.Errorf("capacity for %d after an idle minute", capacity)
	}
}

// TestMistakes: a full part takes hardly any new id for one that it has.
func TestMistakes(t *testing.T) {
	const n, tries = 1 << 16, 400_000
	f := filter{capacity: n}
	for i := range n {
		f.add(NewID("", fmt.Sprint(i)))
	}
	if len(f.parts) != 1 {
		t.Fatalf("%d parts", len(f.parts))
	}
	mistakes := 0
	for i := range tries {
		if f.has(NewID("other", fmt.Sprint(i))) {
			mistakes++
		}
	}
	if mistakes > 2*tries/16_000 {
		t.Errorf("%d of %d", mistakes, tries)
	}
}

// BenchmarkCandidates is of a queue that took 300,000 messages in each of the last minutes.
func BenchmarkCandidates(b *testing.B) {
	var w Window
	ids := make([]ID, 300_000)
	for m := range int64(6) {
		for i := range ids {
			w.Add(m, NewID(fmt.Sprint(m), fmt.Sprint(i)))
		}
	}
	for i := range ids {
		ids[i] = NewID("new", fmt.Sprint(i))
	}
	b.ResetTimer()
	for i := range b.N {
		w.Candidates(5*minute, ids[i%len(ids)])
	}
}

func TestScopes(t *testing.T) {
	if NewID("a", "bc") == NewID("ab", "c") || NewID("", "a") == NewID("a", "") {
		t.Error("scopes run into each other")
	}
}
