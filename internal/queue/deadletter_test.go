package queue

import (
	"errors"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
)

// deadLetters is a queue whose messages are dead after n receives.
func deadLetters(n int) Config {
	return Config{
		Retention: time.Hour, MaxReceives: n, DeadLetter: arn.Queue("us-east-1", "000000000000", "dlq"),
	}
}

func (t *bench) mustReceive(tt *testing.T, visibility int64) Result {
	tt.Helper()
	r, err := t.receive(10, visibility)
	if err != nil {
		tt.Fatal(err)
	}
	return r
}

// What is deleted on its way to the dead-letter queue neither arrives nor
// comes back.
func TestDeleteOnTheWay(t *testing.T) {
	b := newBench(deadLetters(1), Kind{})
	seq, err := b.send(1, "", 0)
	if err != nil {
		t.Fatal(err)
	}
	got := b.mustReceive(t, 0)
	h := Handle{Sequence: seq, Receives: got.Leases[0].Receives, Epoch: got.Leases[0].Epoch}
	if r := b.mustReceive(t, 0); len(r.Leases) != 0 || len(r.Moves) != 1 {
		t.Fatalf("the second receive: %+v", r)
	}
	if err := b.run(Delete{h}); err != nil {
		t.Fatal(err)
	}
	if err := b.run(RejectMove{seq}); !errors.Is(err, ErrNotLeased) {
		t.Errorf("a refused move of it: %v", err)
	}
	if r := b.mustReceive(t, 0); len(r.Leases)+len(r.Moves) != 0 || !b.m.Empty() {
		t.Errorf("it came back: %+v", r)
	}
}

// A receive that nobody saw is undone only while its lease lasts: afterwards
// the message is somebody else's.
func TestReturnOfALeaseThatIsOver(t *testing.T) {
	b := newBench(Config{Retention: time.Hour}, Kind{})
	if _, err := b.send(1, "", 0); err != nil {
		t.Fatal(err)
	}
	first := b.mustReceive(t, 0).Leases[0]
	second := b.mustReceive(t, 60_000).Leases[0]
	if err := b.run(Return{Lease: first, Due: b.now, Uncounted: true}); !errors.Is(err, ErrNotLeased) {
		t.Errorf("returned a lease that is over: %v", err)
	}
	if now, ok := b.m.Leased(second.Sequence); !ok || now != second {
		t.Errorf("the second lease is %+v, %v", now, ok)
	}
}

// A dead-letter queue with one of its own counts its own receives.
func TestDeadLetterQueueCountsAnew(t *testing.T) {
	b := newBench(deadLetters(2), Kind{})
	if _, err := b.moveIn(1, b.now); err != nil {
		t.Fatal(err)
	}
	for n := uint32(1); n <= 2; n++ {
		if err := b.reopen(); err != nil {
			t.Fatal(err)
		}
		if r := b.mustReceive(t, 0); len(r.Leases) != 1 || r.Leases[0].Receives != n {
			t.Fatalf("receive %d: %+v", n, r)
		}
	}
	if r := b.mustReceive(t, 0); len(r.Leases) != 0 || len(r.Moves) != 1 {
		t.Errorf("after both of its receives: %+v", r)
	}
}
