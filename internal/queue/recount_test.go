package queue

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/queue/layout"
)

// What a longer delay hides again is counted in steps of a bounded size, whatever else happens between
// them, and anew behind a crash. The counts are then as of one step.
func TestRecountInSteps(t *testing.T) {
	defer func(n, size int) { recountStep, recountBytes = n, size }(recountStep, recountBytes)
	const messages = 40
	for _, bound := range []struct{ step, size int }{{messages + 20, fillBytes}, {7, fillBytes}, {messages + 20, 300}} {
		for crash := range 4 {
			t.Run(fmt.Sprintf("%+v, %d crashes", bound, crash), func(t *testing.T) {
				recountStep, recountBytes = bound.step, bound.size
				cfg := Config{Visibility: time.Minute, Retention: time.Hour}
				b := newBench(cfg, Kind{FIFO: true})
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				send := func(n int) {
					t.Helper()
					for i := range n {
						_, err := b.send(byte(i), fmt.Sprint(i%9), 0)
						must(err)
					}
				}
				send(messages / 2) // too old to be hidden
				b.now += 20_000
				send(messages / 2)
				b.now += 5_000
				var leased []Lease
				recent := func(l Lease) bool { return l.Sequence > messages/2 }
				for !slices.ContainsFunc(leased, recent) {
					leased = append(leased, b.mustReceive(t, 60_000).Leases...)
				}
				returned := leased[slices.IndexFunc(leased, recent)] // what was received is not delayed
				must(b.run(ChangeVisibility{Handle{Sequence: returned.Sequence, Lane: returned.Lane, Receives: returned.Receives, Epoch: returned.Epoch}, 0}))

				cfg.Delay = 10 * time.Second
				b.cfg = cfg // of the machine that is opened again
				must(b.run(Configure{cfg}))
				if small := bound.step > messages && bound.size == fillBytes; small != (b.m.recount == nil) {
					t.Fatalf("a queue of %d messages is counted at once: %v", messages, !small)
				}
				steps, sent := 0, 0
				for ; b.m.recount != nil; steps++ {
					if at := b.m.NextTimer(b.now); at != b.now {
						t.Fatalf("the next step is due in %d ms", at-b.now)
					}
					before := b.m.recount.from
					must(b.run(Recount{}))
					if steps == 1 {
						send(2) // one of them of a group that was read
						sent = 2
					}
					if steps > 0 && steps <= crash {
						must(b.write())
						must(b.reopen())
						if b.m.recount == nil {
							t.Fatalf("it is not begun anew, after it had come to %d", before)
						}
					}
					if steps > 200 {
						t.Fatal("it does not end")
					}
				}
				if b.m.recount = nil; bound.step < messages && steps < messages/bound.step {
					t.Errorf("it ended after %d steps", steps)
				}
				must(b.write())
				must(b.reopen())
				if b.m.recount != nil || b.store.count(b.m.Keys(), layout.TagBucket) > 2 {
					t.Errorf("it is not over: %d seconds", b.store.count(b.m.Keys(), layout.TagBucket))
				}
				hidden := int64(messages/2 + sent)
				for _, l := range leased {
					if recent(l) {
						hidden--
					}
				}
				if got := b.m.Counts(b.now); got.Delayed != hidden {
					t.Errorf("%+v, want %d delayed", got, hidden)
				}
				b.now += 11_000
				if got := b.m.Counts(b.now); got.Delayed != 0 {
					t.Errorf("%+v once the delay is over", got)
				}
			})
		}
	}
}

// A queue that is emptied while it is counted is counted no more, and hibernates.
func TestRecountOfEmptied(t *testing.T) {
	defer func(n int) { recountStep = n }(recountStep)
	recountStep = 1
	cfg := Config{Visibility: time.Minute, Retention: time.Hour}
	b := newBench(cfg, Kind{FIFO: true})
	for range 3 {
		if _, err := b.send(1, "g", 0); err != nil {
			t.Fatal(err)
		}
	}
	r := b.mustReceive(t, 60_000)
	cfg.Delay = time.Second
	if err := b.run(Configure{cfg}); err != nil || b.m.recount == nil {
		t.Fatal(err, "it is counted at once")
	}
	for _, l := range r.Leases {
		if err := b.run(Remove{l.Lane, l.Sequence}); err != nil {
			t.Fatal(err)
		}
	}
	for sequence := range uint64(3) {
		if err := b.run(Remove{layout.GroupLane("g"), sequence + 1}); err != nil && b.m.Len() > 0 {
			t.Fatal(err)
		}
	}
	over := func() {
		t.Helper()
		if err := b.write(); err != nil {
			t.Fatal(err)
		}
		if !b.m.Empty() || b.m.recount != nil || b.m.NextTimer(b.now) != 0 || b.store.count(b.m.Keys(), layout.TagBucket) != 0 {
			t.Errorf("it is not over: %d messages and %d seconds are left, the next step is due at %d", b.m.Len(), b.store.count(b.m.Keys(), layout.TagBucket), b.m.NextTimer(b.now))
		}
		if !b.m.Hibernate() {
			t.Error("it does not hibernate")
		}
	}
	over()

	layout.PutCount(&b.batch, b.m.Keys().Bucket(recounting), 1) // as an earlier version has left it
	if err := b.write(); err != nil {
		t.Fatal(err)
	}
	if err := b.reopen(); err != nil || b.m.NextTimer(b.now) == 0 {
		t.Fatal(err, "the mark of an earlier version is not seen")
	}
	if err := b.run(Recount{}); err != nil {
		t.Fatal(err)
	}
	over()
}

// A queue whose messages have expired before they became visible hibernates at once, also with the counts of
// an earlier version.
func TestEmptiedBeforeItIsVisible(t *testing.T) {
	for _, kind := range []Kind{{FIFO: true}, {}} {
		cfg := Config{Visibility: time.Minute, Retention: time.Minute, Delay: 10 * time.Minute}
		b := newBench(cfg, kind)
		for i := range 3 {
			if _, err := b.send(byte(i), "g", 600_000); err != nil {
				t.Fatal(err)
			}
		}
		if b.store.count(b.m.Keys(), layout.TagBucket) == 0 {
			t.Fatal("nothing is counted")
		}
		b.now += 61_000
		for range 3 {
			if err := b.run(Sweep{}); err != nil {
				t.Fatal(err)
			}
		}
		if n := b.store.count(b.m.Keys(), layout.TagBucket); !b.m.Empty() || n != 0 || !b.m.Hibernate() {
			t.Errorf("%+v: %d messages are left, and %d seconds; it hibernates: %v", kind, b.m.Len(), n, b.m.Hibernate())
		}
		if !kind.FIFO {
			continue
		}
		layout.PutCount(&b.batch, b.m.Keys().Bucket(b.now/1000+500), 3)
		if err := b.write(); err != nil {
			t.Fatal(err)
		}
		if err := b.reopen(); err != nil || b.m.NextTimer(b.now) == 0 {
			t.Fatal(err, "the counts of an earlier version are not seen")
		}
		if err := b.run(Expire{}); err != nil || b.m.NextTimer(b.now) != 0 || b.store.count(b.m.Keys(), layout.TagBucket) != 0 || !b.m.Hibernate() {
			t.Errorf("%v: %d seconds are left", err, b.store.count(b.m.Keys(), layout.TagBucket))
		}
	}
}
