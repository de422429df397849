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
	if mistakes > n/1000 { // each is in one of some 20 parts by a chance of 1 in 40,000
		t.Errorf("%d of %d new ids seem known", mistakes, n)
	}
	// Six minutes on, the filters of the first minutes are gone.
	later := now + 6*minute
	w.Add(Minute(later), NewID("", "x"))
	if len(w.filters) != 1 || len(w.unknown) != 0 {
		t.Errorf("%d and %d buckets are kept", len(w.filters), len(w.unknown))
	}
	if got := w.Candidates(later, NewID("", "new")); len(got) != 0 {
		t.Errorf("candidates %v for a new id", got)
	}
}

func TestScopes(t *testing.T) {
	if NewID("a", "bc") == NewID("ab", "c") || NewID("", "a") == NewID("a", "") {
		t.Error("scopes run into each other")
	}
}
