package packed_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"godwit.dev/godwit/internal/packed"
)

// TestLikeAMap holds a random history against a map of Go.
func TestLikeAMap(t *testing.T) {
	const steps = 200_000
	for _, keys := range []int{1, 5, 300, 5000} {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		var m packed.Map
		want := map[string]string{}
		for range steps {
			key := fmt.Sprint("key ", r.IntN(keys))
			switch r.IntN(3) {
			case 0:
				if _, there := want[key]; m.Delete([]byte(key)) != there {
					t.Fatalf("seed %d: the deletion of %q did not find what is there", seed, key)
				}
				delete(want, key)
			default:
				size := r.IntN(100)
				if r.IntN(1000) == 0 {
					size = 100_000 // more than a piece
				}
				value := bytes.Repeat([]byte{byte(r.IntN(256))}, size)
				m.Put([]byte(key), value)
				want[key] = string(value)
			}
			value, there := m.Get([]byte(key))
			if expected, ok := want[key]; ok != there || expected != string(value) {
				t.Fatalf("seed %d: %q is %q, want %q", seed, key, value, expected)
			}
		}
		if m.Len() != len(want) {
			t.Fatalf("seed %d: %d entries, want %d", seed, m.Len(), len(want))
		}
		n := 0
		for key, value := range m.All() {
			n++
			if want[string(key)] != string(value) {
				t.Fatalf("seed %d: %q is %q", seed, key, value)
			}
		}
		if n != len(want) {
			t.Fatalf("seed %d: a walk passes %d entries, want %d", seed, n, len(want))
		}
		for key := range want {
			m.Delete([]byte(key))
		}
		if m.Len() != 0 || m.Bytes() > 1<<20 {
			t.Fatalf("seed %d: %d entries and %d bytes are left", seed, m.Len(), m.Bytes())
		}
	}
}

// TestWeight: what an entry takes beside its key and its value.
func TestWeight(t *testing.T) {
	const entries, each = 10_000, 10 + 100
	var m packed.Map
	for i := range entries {
		m.Put(fmt.Appendf(nil, "%010d", i), make([]byte, 100))
	}
	if over := (m.Bytes() - entries*each) / entries; over > 30 {
		t.Errorf("%d bytes beside an entry", over)
	}
}
