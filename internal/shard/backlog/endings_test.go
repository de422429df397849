package backlog_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
)

// TestFinished: the deliveries that ended are listed, latest first, each with its attempts and what
// became of it.
func TestFinished(t *testing.T) {
	w := newOperatorWorld(t)
	w.publish(3)
	taken, _, err := w.Take(w.sub, 3)
	w.check(err)
	at := w.clock.Now()
	failed := backlog.Attempt{At: at, Outcome: "client-error", Status: 410}
	w.Delivered(taken[0], backlog.Attempt{At: at, Outcome: "success", Status: 200})
	w.Drop(taken[1], failed, "gone")
	w.Drop(taken[2], backlog.Attempt{}, "unreadable") // no attempt was made
	infos, err := w.Deliveries(t.Context(), w.sub, 10)
	w.check(err)
	var got []string
	for _, d := range infos {
		line := fmt.Sprintf("%s %s of %s, %d attempts:", d.State, d.Reason, d.MessageID, d.Attempts)
		for _, a := range d.History {
			line += fmt.Sprintf(" %s %d", a.Outcome, a.Status)
		}
		if d.ID != "" || !d.FinishedAt.Equal(at) {
			line += fmt.Sprintf(" (%q, until %v)", d.ID, d.FinishedAt)
		}
		got = append(got, line)
	}
	id := func(i int) string { return uuid.UUID(shardtest.MessageID(i)).String() }
	want := []string{
		"dropped unreadable of " + id(3) + ", 0 attempts:",
		"dropped gone of " + id(2) + ", 1 attempts: client-error 410",
		"delivered  of " + id(1) + ", 1 attempts: success 200",
	}
	if d := cmp.Diff(want, got[:min(3, len(got))]); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	w.expect("the backlog", w.backlog(), "0 due, 0 waiting, 0 in flight, oldest none, paused false")
}

// TestOriginOfDeadLetters: a dead letter keeps its message with when it was first attempted; one
// that never was, without.
func TestOriginOfDeadLetters(t *testing.T) {
	ctx := t.Context()
	w := newOperatorWorld(t)
	w.advance(time.Second)
	begun := w.clock.Now().UnixMilli()
	w.publish(1)
	w.made()
	w.advance(time.Minute)
	w.made()
	w.publish(1)
	walk := &backlog.Waiting{Subscription: w.sub}
	for range 2 { // what was attempted, and what was not
		ids, err := w.Next(ctx, walk)
		w.check(err)
		for i, id := range ids {
			d, err := w.Peek(ctx, w.sub, id)
			w.check(err)
			first := int64(0)
			if d.Attempt > 0 {
				first = begun
			}
			dead := shardtest.NewMessage(100+i, "dead")
			wait, err := w.Remove(ctx, d, shardtest.QueueARN("dlq"), dead, backlog.DeliveryDeadLetter, "x")
			w.check(err)
			wait()
			origin, err := message.DecodeRecord(dead.Origin)
			w.check(err)
			if origin.FirstReceived != first || int(origin.Receives) != d.Attempt || origin.Source != "x" {
				t.Errorf("after %d attempts: first at %d, %d attempts, %q", d.Attempt, origin.FirstReceived, origin.Receives, origin.Source)
			}
		}
	}
}

// visits counts the records that scans visit.
type visits struct {
	store.Store
	n atomic.Int64
}

type visit struct {
	store.Iterator
	n *atomic.Int64
}

func (s *visits) Iter(lower, upper []byte) (store.Iterator, error) {
	it, err := s.Store.Iter(lower, upper)
	return visit{it, &s.n}, err
}

func (it visit) Next() bool {
	it.n.Add(1)
	return it.Iterator.Next()
}

// TestWalkEnds: a walk over what waits does not read what was published after it began, however
// much that is.
func TestWalkEnds(t *testing.T) {
	w := newOperatorWorld(t)
	counted := &visits{Store: w.store}
	w.store = counted
	w.reopen()
	w.check(w.Pause(t.Context(), w.sub))
	w.publish(3)
	walk := &backlog.Waiting{Subscription: w.sub}
	ids, err := w.Next(t.Context(), walk)
	w.check(err)
	if len(ids) != 3 {
		t.Fatalf("first %v", ids)
	}
	w.publish(100)
	counted.n.Store(0)
	ids, err = w.Next(t.Context(), walk)
	w.check(err)
	if n := counted.n.Load(); len(ids) != 0 || n > 10 {
		t.Errorf("then %v, and %d records are visited", ids, n)
	}
}
