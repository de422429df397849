package queue

import (
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/queue/layout"
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

// oldest expects the age of the oldest message, in milliseconds; none: there is no such message.
func (t *bench) oldest(tb testing.TB, when string, age int64, without ...layout.Lane) {
	tb.Helper()
	r, err := t.do(Oldest{Without: without})
	if err != nil {
		tb.Fatal(err)
	}
	got := none
	if r.Sent != 0 {
		got = t.now - r.Sent
	}
	if got != age {
		tb.Errorf("%s: the oldest is %d ms old, want %d", when, got, age)
	}
}

// none is the age of no message.
const none = int64(-1)

// receiveAll receives n messages a number of times; each time they come back at once.
func (t *bench) receiveAll(tb testing.TB, n, times int) {
	tb.Helper()
	for range times {
		for left := n; left > 0; {
			r, err := t.receive(min(left, 10), 1)
			if err != nil || len(r.Leases) == 0 {
				tb.Fatal(r, err)
			}
			left -= len(r.Leases)
		}
		t.now++
	}
}

// What was found while nothing was in flight is not the answer once something is, or was, and
// not that of a question about other tenants.
func TestOldestIsFoundAnew(t *testing.T) {
	b := newBench(Config{Visibility: time.Minute, Retention: time.Hour}, Kind{})
	for _, group := range []string{"loud", ""} {
		if _, err := b.send(1, group, 0); err != nil {
			t.Fatal(err)
		}
		b.now += 1000
	}
	b.oldest(t, "at first", 2000)
	b.oldest(t, "without the other tenant", 1000, layout.GroupLane("loud"))
	b.oldest(t, "with it again", 2000)
	b.receiveAll(t, 2, 2)
	b.oldest(t, "received twice", 2002)
	if _, err := b.receive(2, 60_000); err != nil {
		t.Fatal(err)
	}
	b.oldest(t, "in flight for the third time", none)
	b.now += 60_000
	b.oldest(t, "back for the third time", none)
}

// The messages that count are found behind more poison pills than one search reads.
func TestOldestBehindPoisonPills(t *testing.T) {
	for _, group := range []string{"", "g"} {
		b := newBench(Config{Visibility: time.Minute, Retention: time.Hour}, Kind{})
		const pills = oldestSteps + 10
		for range pills {
			if _, err := b.send(1, group, 0); err != nil {
				t.Fatal(err)
			}
		}
		b.receiveAll(t, pills, poisonPillReceives)
		b.oldest(t, "of pills", none)
		b.m.ages = nil // as after a start
		if _, err := b.send(1, group, 0); err != nil {
			t.Fatal(err)
		}
		b.now += 1000
		b.oldest(t, fmt.Sprintf("behind pills of the group %q", group), 1000)
	}
}

// A search of a lane ends with the first message that counts.
func TestOldestReadsNoFurther(t *testing.T) {
	for _, group := range []string{"", "g"} {
		b := newBench(Config{Visibility: time.Minute, Retention: time.Hour}, Kind{})
		for range oldestSteps {
			if _, err := b.send(1, group, 0); err != nil {
				t.Fatal(err)
			}
		}
		b.visited = 0
		b.oldest(t, "of many", 0)
		if b.visited > 4 { // one in each lane
			t.Errorf("a search visits %d messages of the group %q", b.visited, group)
		}
	}
}
