package queue

import (
	"errors"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/grouping"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
	"godwit.dev/godwit/internal/queue/message"
)

// TestMaxInFlight: the 120,000th message can be leased, the next one cannot,
// by a receive or by hiding it again.
func TestMaxInFlight(t *testing.T) {
	b := newBench(Config{Retention: time.Hour}, Kind{})
	send := func() {
		t.Helper()
		if _, err := b.send(1, "", 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		send()
	}
	first, err := b.receive(1, 1000)
	if err != nil || len(first.Leases) != 1 {
		t.Fatal(first, err)
	}
	b.now += 1000
	if err := b.run(Expire{}); err != nil { // the first can be received again
		t.Fatal(err)
	}
	for seq := uint64(1_000_000); b.m.leases.Len() < maxInFlight-2; seq++ {
		b.m.leases.Add(leases.NewItem(layout.State{Sequence: seq, Due: layout.Never}))
	}
	got, err := b.receive(10, 1000)
	if err != nil || len(got.Leases) != 2 {
		t.Fatalf("received %v, %v, and two more can be in flight", got.Leases, err)
	}
	if got, err := b.receive(10, 1000); !errors.Is(err, ErrInFlight) || len(got.Leases) != 0 {
		t.Errorf("received %v, %v, and no more can be in flight", got.Leases, err)
	}
	l := got.Leases[0]
	h := Handle{Sequence: l.Sequence, Lane: l.Lane, Receives: l.Receives, Epoch: l.Epoch}
	change := func() error {
		return b.run(ChangeVisibility{h, 5000})
	}
	if err := change(); err != nil {
		t.Errorf("a message that is in flight: %v", err)
	}
	if err := b.run(ChangeVisibility{h, 0}); err != nil {
		t.Fatal(err)
	}
	if err := change(); err != nil {
		t.Errorf("the last one: %v", err)
	}
	if err := b.run(ChangeVisibility{h, 0}); err != nil {
		t.Fatal(err)
	}
	b.m.leases.Add(leases.NewItem(layout.State{Sequence: 500_000, Due: layout.Never}))
	if err := change(); !errors.Is(err, ErrInFlight) {
		t.Errorf("one too many: %v", err)
	}
}

// TestBoundedCommands: neither the leases that run out at once nor the dead
// letters that a receive comes upon make a commit that grows with their number.
func TestBoundedCommands(t *testing.T) {
	const messages = 3*maxExpire + 1
	b := newBench(Config{Retention: time.Hour, MaxReceives: 1, DeadLetter: arn.Queue("us-east-1", "000000000000", "dead")}, Kind{})
	var m message.Message
	record := m.AppendRecord(nil)
	do := func(c Command) Result { // from memory: nothing is written
		t.Helper()
		r, err := b.m.Do(nil, &b.batch, b.now, c)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for range messages {
		seq := do(Accept{Arrival{Record: record, Sent: b.now}}).Sequence
		b.m.main.Fresh.Remove(grouping.Fresh{Sequence: seq})
		b.m.leave(&b.m.main)
		b.m.grant(&b.batch, b.now, leases.NewItem(layout.State{Sequence: seq, Sent: b.now, Receives: 1}), b.now+1)
	}
	b.batch.Reset()
	b.now++
	steps := 0
	for b.m.Counts(b.now).InFlight > 0 {
		before := b.m.leases.Len()
		do(Expire{})
		if returned := before - b.m.leases.Len(); returned > maxExpire {
			t.Fatalf("one command returned %d leases", returned)
		}
		if steps++; steps > messages {
			t.Fatal("it does not come to an end")
		}
		if at := b.m.NextTimer(b.now); b.m.leases.Len() > 0 && (at == 0 || at > b.now) {
			t.Fatalf("more leases have run out, and the timer is set to %d at %d", at, b.now)
		}
	}
	if r := do(Receive{Max: 10, Epoch: 1}); len(r.Moves) != maxMoves || len(r.Leases) != 0 {
		t.Errorf("a receive came upon %d dead letters and %d messages", len(r.Moves), len(r.Leases))
	}
}
