package dedup

import (
	"fmt"
	"testing"
)

// TestWindow: what was added is always found while it lives; what was not is
// hardly ever, except in buckets from before the window began.
func TestWindow(t *testing.T) {
	const start = int64(1_000_000_000_000)
	var w Window
	if got := len(w.Candidates(start, NewID("", "a"))); got != 6 {
		t.Errorf("an empty window excludes buckets: %d candidates", got)
	}
	const n = 20_000
	for i := range n {
		w.Add(start+int64(i)*10, NewID("", fmt.Sprint(i))) // 200 s
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
			if c.Minute > w.began && c.Added {
				mistakes++
			}
		}
	}
	if mistakes > n/50 {
		t.Errorf("%d of %d new ids seem known", mistakes, n)
	}
	// Six minutes on, the filters of the first minutes are gone.
	later := now + 6*minute
	w.Add(later, NewID("", "x"))
	if len(w.filters) != 1 {
		t.Errorf("%d buckets are kept", len(w.filters))
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
