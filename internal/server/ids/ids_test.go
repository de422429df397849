package ids

import (
	"testing"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/queue/message"
)

func TestIDs(t *testing.T) {
	seen := map[message.ID]bool{}
	var set, clear message.ID // the bits that were 1, and those that were 0
	for range 1000 {
		id := New()
		if u := uuid.UUID(id); u.Version() != 4 || u.Variant() != uuid.RFC4122 {
			t.Fatalf("%s is of version %d and variant %s", u, u.Version(), u.Variant())
		}
		if seen[id] {
			t.Fatalf("%s came twice", id)
		}
		seen[id] = true
		for i, b := range id {
			set[i] |= b
			clear[i] |= ^b
		}
	}
	for i := range set {
		fixed := [16]byte{6: 0xf0, 8: 0xc0}[i]
		if set[i]&clear[i] != ^fixed {
			t.Errorf("of byte %d the bits %08b vary", i, set[i]&clear[i])
		}
	}
	if id, err := uuid.Parse(Text()); err != nil || id.Version() != 4 {
		t.Errorf("the text is %s: %v", id, err)
	}
}
