// Package storetest defines the contract of storage engines: Run is the suite that every engine
// passes, Crash the one for an engine that survives a crash. Equal and Dump compare stores in
// other packages' tests, Counting measures their reads.
package storetest

import (
	"bytes"
	"iter"

	"godwit.dev/godwit/internal/store"
)

// TB has the methods of a test that the helpers use; *testing.T, *testing.B and *rapid.T have
// it.
type TB interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Dump iterates over all keys of r in order. The slices are valid until the next step. An error
// ends the test.
func Dump(t TB, r store.Reader) iter.Seq2[[]byte, []byte] { return Range(t, r, nil, nil) }

// Range is Dump of the keys in [lower, upper); a nil upper is the end.
func Range(t TB, r store.Reader, lower, upper []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		t.Helper()
		it, err := r.Iter(lower, upper)
		if err != nil {
			t.Fatalf("Iter(%q, %q): %v", lower, upper, err)
		}
		ended := false
		defer func() {
			// Close must run even if the loop's body ends the test.
			if err := it.Close(); err != nil && ended {
				t.Fatalf("Iterator.Close: %v", err)
			}
		}()
		for it.Next() {
			if !yield(it.Key(), it.Value()) {
				return
			}
		}
		ended = true
	}
}

// maxDifferences bounds what Equal reports.
const maxDifferences = 10

// Equal reports an error for each of the first differences between a and b, and returns whether
// there is none.
func Equal(t TB, a, b store.Reader) bool {
	t.Helper()
	nextA, stopA := iter.Pull2(Dump(t, a))
	defer stopA()
	nextB, stopB := iter.Pull2(Dump(t, b))
	defer stopB()
	ka, va, okA := nextA()
	kb, vb, okB := nextB()
	differences := 0
	for (okA || okB) && differences < maxDifferences {
		c := bytes.Compare(ka, kb)
		switch {
		case !okB || okA && c < 0:
			t.Errorf("only in the first: %q = %q", ka, va)
			differences++
		case !okA || c > 0:
			t.Errorf("only in the second: %q = %q", kb, vb)
			differences++
		case !bytes.Equal(va, vb):
			t.Errorf("%q = %q in the first, %q in the second", ka, va, vb)
			differences++
		}
		inA, inB := okA && (!okB || c <= 0), okB && (!okA || c >= 0)
		if inA {
			ka, va, okA = nextA()
		}
		if inB {
			kb, vb, okB = nextB()
		}
	}
	if differences == maxDifferences {
		t.Errorf("and perhaps more differences")
	}
	return differences == 0
}
