package dedup

import (
	"fmt"
	"slices"
	"testing"
)

// TestWindow: what was added is found in its record while it lives, and what was not is
// not; six minutes on the buckets of the first minutes are gone.
func TestWindow(t *testing.T) {
	const start = int64(1_000_000_000_000)
	var w Window
	if got := w.Candidates(start, NewID("", "a")); len(got) != 0 {
		t.Errorf("an empty window has candidates: %v", got)
	}
	const n = 20_000
	want := make([]Candidate, n)
	for i := range n {
		m := Minute(start + int64(i)*10) // 200 s
		want[i] = Candidate{Minute: m, Record: w.Next(m)}
		if i%3 == 1 && m == want[i-1].Minute { // with the one before
			want[i].Record = want[i-1].Record
		}
		w.Add(m, want[i].Record, NewID("", fmt.Sprint(i)))
	}
	now := start + n*10
	for i := range n {
		if got := w.Candidates(now, NewID("", fmt.Sprint(i))); len(got) != 1 || got[0] != want[i] {
			t.Fatalf("%d is in %v, want %v", i, got, want[i])
		}
		if got := w.Candidates(now, NewID("", fmt.Sprint("other", i))); len(got) != 0 {
			t.Errorf("a new id may be in %v", got)
		}
	}
	w.Add(Minute(now), 77, NewID("", "0")) // which was over for whoever accepted it
	if got := w.Candidates(now, NewID("", "0")); len(got) != 2 || got[0] != (Candidate{Minute: Minute(now), Record: 77}) || got[1] != want[0] {
		t.Errorf("candidates %v; the latest comes first", got)
	}
	if got := w.Next(Minute(now)); got != 78 {
		t.Errorf("the next record is %d", got)
	}
	later := now + 6*minute
	w.Add(Minute(later), 0, NewID("", "x"))
	if len(w.buckets) != 1 {
		t.Errorf("%d buckets are kept", len(w.buckets))
	}
	if got := w.Candidates(later, NewID("", "0")); len(got) != 0 {
		t.Errorf("candidates %v for a new id", got)
	}
}

// TestSingle: in a bucket of an older version each id may have a record.
func TestSingle(t *testing.T) {
	const start = int64(1_000_000_000_000)
	var w Window
	a := NewID("", "a")
	w.Single(Minute(start))
	w.Add(Minute(start), 0, a)
	w.Add(Minute(start)+1, 5, a)
	want := []Candidate{{Minute: Minute(start) + 1, Record: 5}, {Minute: Minute(start)}, {Minute: Minute(start), Single: true}}
	if got := w.Candidates(start+minute, a); !slices.Equal(got, want) {
		t.Errorf("candidates %v, want %v", got, want)
	}
	if got := w.Candidates(start+minute, NewID("", "b")); !slices.Equal(got, want[2:]) {
		t.Errorf("candidates of another %v, want %v", got, want[2:])
	}
	if got := w.Candidates(start+Life+minute, a); !slices.Equal(got, want[:1]) {
		t.Errorf("candidates when the first minute is over: %v, want %v", got, want[:1])
	}
}

func TestScopes(t *testing.T) {
	if NewID("a", "bc") == NewID("ab", "c") || NewID("", "a") == NewID("a", "") {
		t.Error("scopes run into each other")
	}
}
