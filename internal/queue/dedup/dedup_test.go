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
	if mistakes > n/50 {
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

func TestAttempts(t *testing.T) {
	var a Attempts[int]
	a.Remember(1000, "a", 1)
	a.Remember(2000, "b", 2)
	if got, ok := a.Recall(1000+Life-1, "a"); !ok || got != 1 {
		t.Errorf("within five minutes: %d, %v", got, ok)
	}
	if _, ok := a.Recall(1000+Life, "a"); ok {
		t.Error("remembered after five minutes")
	}
	if _, ok := a.Recall(2000, "c"); ok {
		t.Error("remembered what never was")
	}
	// Very many are not remembered, but what is too old makes room.
	for i := range 10_000 {
		a.Remember(3000, fmt.Sprint(i), i)
	}
	if _, ok := a.Recall(3000, "9999"); ok {
		t.Error("remembered without a bound")
	}
	a.Remember(3000+Life, "late", 7)
	if got, ok := a.Recall(3000+Life, "late"); !ok || got != 7 {
		t.Errorf("after the others were over: %d, %v", got, ok)
	}
}
