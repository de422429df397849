package receipt

import (
	"strings"
	"testing"

	"godwit.dev/godwit/internal/queue"
)

// TestHandleRoundTrip: a handle carries all of a receive.
func TestHandleRoundTrip(t *testing.T) {
	s := New([]byte("a key"))
	lease := queue.Lease{Sequence: 1<<63 + 5, Lane: 7, Receives: 1<<32 - 1, Epoch: 99}
	got, ok := s.Open(s.Seal(63, 1<<40, lease), 63, 1<<40)
	want := queue.Handle{Sequence: 1<<63 + 5, Lane: 7, Receives: 1<<32 - 1, Epoch: 99}
	if !ok || got != want {
		t.Errorf("opened %+v, %v, want %+v", got, ok, want)
	}
}

// TestHandleIsAuthentic: no other string than the one that was given out opens.
func TestHandleIsAuthentic(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n\r-_ \x00\xff"
	s := New([]byte("a key"))
	handle := s.Seal(3, 7, queue.Lease{Sequence: 1, Receives: 1, Epoch: 1})
	refuse := func(what, h string) {
		t.Helper()
		if _, ok := s.Open(h, 3, 7); ok {
			t.Errorf("%s: %q opens like %q", what, h, handle)
		}
	}
	for i := range handle {
		for _, c := range []byte(alphabet) {
			if handle[i] != c {
				refuse("changed", handle[:i]+string([]byte{c})+handle[i+1:])
			}
		}
		refuse("cut", handle[:i])
		refuse("spread", handle[:i]+"\n"+handle[i:])
	}
	refuse("longer", handle+"A")
	refuse("longer", handle+"\n")
	refuse("twice", handle+handle)
	refuse("long", strings.Repeat("A", 1<<16))
	if _, ok := s.Open(handle, 4, 7); ok {
		t.Error("opens in another shard")
	}
	if _, ok := s.Open(handle, 3, 8); ok {
		t.Error("opens in another incarnation")
	}
	if _, ok := New([]byte("another key")).Open(handle, 3, 7); ok {
		t.Error("opens with another key")
	}
}
