package queue

import (
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/queue/layout"
)

// What quiet tenants have is what is left without the noisy ones', before and after
// a restart.
func TestQuietGroups(t *testing.T) {
	cfg := Config{Retention: time.Hour, Visibility: time.Minute}
	b := newBench(cfg, Kind{})
	var id byte
	send := func(group string, n int, delay int64) {
		t.Helper()
		for range n {
			id++
			if _, err := b.send(id, group, delay); err != nil {
				t.Fatal(err)
			}
		}
	}
	expect := func(noisy int, want Counts) {
		t.Helper()
		g := b.m.Groups(b.now)
		if len(g.Noisy) != noisy || g.Quiet != want {
			t.Fatalf("%+v, want %d noisy and %+v", g, noisy, want)
		}
		if noisy > 0 && !slices.Equal(g.Noisy, []layout.Lane{layout.GroupLane("loud")}) {
			t.Fatalf("%v are noisy", g.Noisy)
		}
	}
	send("loud", 40, 0)
	for range 4 {
		if _, err := b.receive(10, 60_000); err != nil {
			t.Fatal(err)
		}
	}
	send("loud", 9, 0)
	send("loud", 3, 5000)
	send("", 2, 0)
	send("quiet", 4, 0)
	send("quiet", 2, 5000)
	expect(1, Counts{Visible: 6, Delayed: 2})
	if _, err := b.receive(5, 60_000); err != nil { // the quiet ones come first
		t.Fatal(err)
	}
	expect(1, Counts{Visible: 1, InFlight: 5, Delayed: 2})
	if err := b.reopen(); err != nil {
		t.Fatal(err)
	}
	if err := b.run(Count{}); err != nil {
		t.Fatal(err)
	}
	expect(1, Counts{Visible: 1, InFlight: 5, Delayed: 2})
	b.now += 5000
	expect(1, Counts{Visible: 3, InFlight: 5})
	for _, l := range b.m.Leases() {
		if err := b.run(Remove{l.Lane, l.Sequence}); err != nil {
			t.Fatal(err)
		}
	}
	if g := b.m.Groups(b.now); len(g.Noisy) != 1 { // by the time that it took
		t.Fatalf("%+v", g)
	}
	expect(1, Counts{Visible: 3})
	b.now += 3_000_000
	if _, err := b.send(200, "", 0); err != nil {
		t.Fatal(err)
	}
	b.m.groups.tenants.ReleasedAlone(b.now, 0) // an hour later nobody remembers
	expect(0, Counts{Visible: 16})
}

// Where more is delayed than memory holds, what tenants have scheduled tells whose
// it is; and where more tenants wait than are counted, the noisy one is still known.
func TestQuietGroupsBeyondMemory(t *testing.T) {
	defer func(w, n int) { windowSize, waitsSize = w, n }(windowSize, waitsSize)
	windowSize, waitsSize = 4, 8
	b := newBench(Config{Retention: time.Hour, Visibility: time.Minute}, Kind{})
	send := func(group string, delay int64) {
		t.Helper()
		if _, err := b.send(1, group, delay); err != nil {
			t.Fatal(err)
		}
	}
	for range 60 {
		send("loud", 0)
	}
	for received := 0; received < 40; {
		r, err := b.receive(10, 60_000)
		if err != nil {
			t.Fatal(err)
		}
		received += len(r.Leases)
	}
	for i := range 30 {
		send("loud", 5000)
		send(string(rune('a'+i%20)), 5000)
		send(string(rune('a'+i%20)), 0)
	}
	g := b.m.Groups(b.now)
	if want := (Counts{Visible: 30, Delayed: 30}); !slices.Equal(g.Noisy, []layout.Lane{layout.GroupLane("loud")}) || g.Quiet != want {
		t.Errorf("%+v, want %+v", g, want)
	}
	if n := b.store.count(b.m.Keys(), layout.TagTenant); n > waitsSize {
		t.Errorf("%d tenants are counted on disk", n)
	}
}
