package memory_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Engine{
		Open: func(testing.TB) store.Store { return memory.New() },
		OpenCheckpoint: func(t testing.TB, dir string) store.Store {
			s, err := memory.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	})
}

// A checkpoint of several commits is read back whole; one that is cut short
// or changed anywhere is refused.
func TestCheckpointDamage(t *testing.T) {
	s := memory.New()
	for i := range 40 {
		b := new(mutation.Batch)
		b.Set(fmt.Appendf(nil, "%02d", i), make([]byte, 64<<10))
		if err := s.Apply(store.NoSync, b); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(t.TempDir(), "c")
	if err := s.Checkpoint(dir); err != nil {
		t.Fatal(err)
	}
	again, err := memory.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	storetest.Equal(t, s, again)

	file := filepath.Join(dir, "store")
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(what string, damaged []byte) {
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := memory.Open(dir); !errors.Is(err, mutation.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, n := range []int{0, 3, 4, 100, len(whole) / 2, len(whole) - 26, len(whole) - 1} {
		refused(fmt.Sprintf("cut to %d bytes", n), whole[:n])
	}
	for _, at := range []int{0, 5, 20, 30, len(whole) / 2, len(whole) - 1} {
		damaged := append([]byte(nil), whole...)
		damaged[at] ^= 0x40
		refused(fmt.Sprintf("byte %d changed", at), damaged)
	}
}
