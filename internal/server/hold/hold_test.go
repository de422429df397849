package hold_test

import (
	"testing"

	"godwit.dev/godwit/internal/server/hold"
)

// A directory that is marked holds what delivers, over restarts, until it is released, once
// and for all.
func TestHold(t *testing.T) {
	data := t.TempDir()
	if err := hold.Mark(data); err != nil {
		t.Fatal(err)
	}
	var h *hold.Hold
	began := 0
	for range 2 { // a start, and the one behind it
		var err error
		if h, err = hold.Open(data); err != nil {
			t.Fatal(err)
		}
		began = 0
		h.Begin(func() { began++ })
		h.Begin(func() { began++ })
		if !h.Held() || began != 0 || h.Released() == nil {
			t.Fatalf("held: %v; %d have begun", h.Held(), began)
		}
	}
	released := h.Released()
	if changed, err := h.Release(); !changed || err != nil || began != 2 || h.Held() {
		t.Errorf("released: %v, %v; %d have begun", changed, err, began)
	}
	<-released
	if changed, err := h.Release(); changed || err != nil || began != 2 {
		t.Errorf("released again: %v, %v; %d have begun", changed, err, began)
	}
	h.Begin(func() { began++ })
	if began != 3 {
		t.Error("what comes later does not begin")
	}
	h, err := hold.Open(data)
	if err != nil || h.Held() || h.Released() != nil {
		t.Errorf("after a restart: %v, %v", h.Held(), err)
	}
	var none *hold.Hold
	none.Begin(func() { began++ })
	if changed, err := none.Release(); none.Held() || none.Released() != nil || changed || err != nil || began != 4 {
		t.Error("where there is none, something is held")
	}
}
