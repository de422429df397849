package jetstream

import (
	"testing"
	"time"
)

// A position where nothing came in time is read with a longer heartbeat from the second time on,
// and others as ever.
func TestBeat(t *testing.T) {
	l := new(Log)
	expect := func(at uint64, want time.Duration) {
		t.Helper()
		if got := l.beat(at); got != want {
			t.Errorf("after %d at %d: %v at %d, want %v", l.missed.times, l.missed.at, got, at, want)
		}
	}
	expect(0, heartbeat)
	for _, factor := range []time.Duration{1, 2, 4, 8, 16, 16, 16} {
		l.miss(7)
		expect(7, min(factor*heartbeat, longBeat))
		expect(8, heartbeat)
	}
	l.miss(8)
	expect(8, heartbeat)
	expect(7, heartbeat) // it has come since
	l.miss(8)
	expect(8, 2*heartbeat)
}
