package queue

import (
	"testing"
	"time"
)

// Who asks for the oldest message does not pass what the one before has passed, deleted
// messages above all.
func TestOldestIsFoundAtOnce(t *testing.T) {
	b := newBench(Config{Visibility: time.Minute, Retention: time.Hour}, Kind{})
	send := func(delay int64, n int) {
		t.Helper()
		for range n {
			if _, err := b.send(1, "", delay); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(n int) {
		t.Helper()
		r, err := b.receive(n, 60_000)
		if err != nil || len(r.Leases) != n {
			t.Fatal(r, err)
		}
		for _, l := range r.Leases {
			if err := b.run(Remove{l.Lane, l.Sequence}); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect := func(age int64, mainLow, delayedLow uint64) {
		t.Helper()
		r, err := b.do(Oldest{})
		if err != nil || b.now-r.Sent != age {
			t.Errorf("the oldest is %d ms old, want %d: %v", b.now-r.Sent, age, err)
		}
		if c := b.m.ages.from; c.main != mainLow || c.delayed != delayedLow {
			t.Errorf("the next look begins at %+v, want %d and %d", c, mainLow, delayedLow)
		}
	}
	send(0, 3)         // 1 to 3
	send(1000, 2)      // 4 and 5
	send(3_600_000, 1) // 6
	b.now += 1000
	expect(1000, 1, 4)
	remove(2)
	expect(1000, 3, 4)
	remove(3)
	expect(1000, 7, 6)
	b.now += 1000
	send(0, 1)
	expect(2000, 7, 6)
}
