package badblocks

import (
	"testing"

	"godwit.dev/godwit/internal/store/pebble/files"
)

// A block of nearly any length can stand for one.
func TestStandIns(t *testing.T) {
	for length := 180; length < 20_000; length += 1 + length/50 {
		p, err := records([]byte("a key of a message, say"), 1_234_567, length)
		if err != nil || len(p) != length+files.BlockEnd {
			t.Errorf("records in %d bytes: %d, %v", length, len(p), err)
		}
	}
	sizes := []uint32{512, 600, 0, 1500, 777}
	for length := 300; length < 20_000; length += 1 + length/50 {
		p, err := values(sizes, length)
		if err != nil || len(p) != length+files.BlockEnd {
			t.Errorf("values in %d bytes: %d, %v", length, len(p), err)
		}
	}
}

func TestLost(t *testing.T) {
	for n := range 2000 {
		if Lost(lost(n)) != (n >= len(lostText)) {
			t.Errorf("a lost value of %d bytes", n)
		}
	}
	if v := lost(600); Lost(append(v[:599:599], 'x')) || Lost(nil) {
		t.Error("another value is taken for a lost one")
	}
}
