package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// dying is an engine with three dead letters in "dead", all leased for a task.
type dying struct {
	*shard.Engine
	dead   *topics.Shard
	qs     *queues.Queue
	leases []queue.Lease
}

func newDying(t *testing.T, o shard.Options) *dying {
	t.Helper()
	if o.Clock = clock.System; o.Journal == nil {
		o.Journal = shardtest.JournalOf(t, memory.New(), nil)
	}
	o.Logger = slog.New(slog.DiscardHandler)
	w := &dying{Engine: shardtest.Open(t, o)}
	died(t, w.Engine, 3)
	w.dead = w.Topics.ShardOf(shardtest.QueueARN("dead"))
	w.dead.View(func() {
		var err error
		w.qs = shardtest.QueueIn(w.dead, shardtest.QueueARN("dead"))
		if w.leases, err = w.dead.LeaseForMove(w.qs, w.dead.Now(), 3); err != nil || len(w.leases) != 3 {
			t.Fatal(w.leases, err)
		}
	})
	return w
}

// giveBack ends a lease.
func (w *dying) giveBack(l queue.Lease) {
	w.dead.View(func() {
		_, _ = w.dead.Do(w.qs, w.dead.Now(), queue.Return{Lease: l, Due: w.dead.Now()})
		w.dead.Touch(w.qs)
	})
}

// counts is how many messages each queue holds.
func (w *dying) counts(t *testing.T) string {
	t.Helper()
	said := ""
	for _, name := range []string{"dead", "q"} {
		info, err := w.QueueInfo(context.Background(), shardtest.QueueARN(name))
		if err != nil {
			t.Fatal(err)
		}
		said += fmt.Sprint(name, " ", info.Counts.Visible+info.Counts.InFlight, " ")
	}
	return said
}

// TestRefusedMoves: a move that is refused, by either side, leaves the message where it is, and
// nothing at the destination.
func TestRefusedMoves(t *testing.T) {
	full := false
	for name, c := range map[string]struct {
		before func(w *dying, l *queue.Lease)
		to     string
		want   func(err error) bool
	}{
		"another lease": {func(_ *dying, l *queue.Lease) { l.Receives++ }, "q", func(err error) bool { return errors.Is(err, transfer.ErrNotLeased) }},
		"given back":    {func(w *dying, l *queue.Lease) { w.giveBack(*l) }, "q", func(err error) bool { return errors.Is(err, transfer.ErrNotLeased) }},
		"no queue":      {func(*dying, *queue.Lease) {}, "none", func(err error) bool { return fault.KindOf(err) == fault.QueueDoesNotExist }},
		"a full disk":   {func(*dying, *queue.Lease) { full = true }, "q", func(err error) bool { return errors.Is(err, transfer.ErrDiskFull) }},
	} {
		for _, twoStep := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s,TwoStep=%v", name, twoStep), func(t *testing.T) {
				full = false
				w := newDying(t, shard.Options{TwoStep: twoStep})
				defer w.Close()
				w.Options.Full = func() bool { return full }
				l := w.leases[0]
				c.before(w, &l)
				tk := &transfer.RunningTask{From: shardtest.QueueARN("dead"), To: shardtest.QueueARN(c.to)}
				if _, err := w.MoveOne(w.dead.OfTransfers(), tk, w.qs, l); !c.want(err) {
					t.Errorf("%v", err)
				}
				if got := w.counts(t); got != "dead 3 q 0 " {
					t.Error(got)
				}
			})
		}
	}
}

// TestMovesAsTheRequesterMay: a task ends where its requester lost the permission, for good; one
// without a requester needs none.
func TestMovesAsTheRequesterMay(t *testing.T) {
	ctx := context.Background()
	denied := fault.NewRule(fault.AccessDenied, "denied")
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System, Logger: slog.New(slog.DiscardHandler)}
	o.MayMove = func(by *caller.Caller, from, to arn.ARN) error {
		if by == nil || from != shardtest.QueueARN("dead") || to != shardtest.QueueARN("q") {
			t.Errorf("%v is asked to move from %s to %s", by, from, to)
		}
		return denied
	}
	e := shardtest.Open(t, o)
	died(t, e, 3)
	spec := transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN("dead"), By: &caller.Caller{Account: shardtest.Account}}
	if err := e.StartMoveTask(ctx, spec); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e.AwaitIdle()
		if task := lastTask(t, e); task.Status != transfer.MoveFailed || task.Reason != "AccessDenied" || visible(t, e, "dead") != 3 {
			t.Errorf("%+v, %d messages left", task, visible(t, e, "dead"))
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = shardtest.Open(t, o)
	}
	defer e.Close()
	spec.By = nil
	if err := e.StartMoveTask(ctx, spec); err != nil {
		t.Fatal(err)
	}
	if e.AwaitIdle(); visible(t, e, "q") != 3 {
		t.Errorf("%d of 3 moved", visible(t, e, "q"))
	}
}

// TestPicked: an operator moves and deletes a message that is where it was picked and not in
// flight, once.
func TestPicked(t *testing.T) {
	ctx := context.Background()
	for _, twoStep := range []bool{false, true} {
		w := newDying(t, shard.Options{TwoStep: twoStep})
		dead, q := shardtest.QueueARN("dead"), shardtest.QueueARN("q")
		picked := func(i int) transfer.Picked {
			return transfer.Picked{Lane: w.leases[i].Lane, Sequence: w.leases[i].Sequence, Incarnation: w.qs.Incarnation}
		}
		expect := func(what string, p transfer.Picked, want error) {
			t.Helper()
			wait, err := w.DeletePicked(ctx, dead, p)
			if wait(); !errors.Is(err, want) {
				t.Errorf("deleting %s: %v", what, err)
			}
			wait, err = w.MovePicked(ctx, dead, q, p, nil)
			if wait(); !errors.Is(err, want) {
				t.Errorf("moving %s: %v", what, err)
			}
		}
		expect("what is in flight", picked(0), transfer.ErrPicked)
		w.giveBack(w.leases[0])
		w.giveBack(w.leases[1])
		none, other := picked(0), picked(0)
		none.Sequence += 100
		expect("what is not there", none, transfer.ErrNoMessage)
		other.Incarnation++
		expect("what was in another queue", other, transfer.ErrQueueMadeAgain)
		if got := w.counts(t); got != "dead 3 q 0 " {
			t.Error(got)
		}
		wait, err := w.MovePicked(ctx, dead, arn.ARN{}, picked(0), nil) // back to its source
		if wait(); err != nil {
			t.Error(err)
		}
		wait, err = w.DeletePicked(ctx, dead, picked(1))
		if wait(); err != nil {
			t.Error(err)
		}
		expect("what was moved", picked(0), transfer.ErrNoMessage)
		expect("what was deleted", picked(1), transfer.ErrNoMessage)
		if got := w.counts(t); got != "dead 1 q 1 " {
			t.Error(got)
		}
		w.Close()
	}
}

// TestStepsOfATransfer: without a common commit the destination has the message durably before
// the source removes it, and the source has removed it durably before the mark is forgotten;
// whoever moves the same message meanwhile doubles nothing.
func TestStepsOfATransfer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &storetest.Gated{Store: memory.New()}
		gated := false
		j := journal.Open(journal.Options{Store: s, Synced: func(time.Duration) {
			if gated {
				s.Shut() // one at a time
			}
		}})
		t.Cleanup(j.Close)
		w := newDying(t, shard.Options{TwoStep: true, Journal: j})
		defer w.Close()
		j.Sync()
		s.Shut()
		gated = true
		var moved atomic.Int32
		for range 2 {
			go func() {
				tk := &transfer.RunningTask{From: shardtest.QueueARN("dead"), To: shardtest.QueueARN("q")}
				_, _ = w.MoveOne(w.dead.OfTransfers(), tk, w.qs, w.leases[0])
				moved.Add(1)
			}()
			synctest.Wait()
		}
		for step, want := range []string{"leased true, 1 marks, 0 moved", "leased false, 1 marks, 0 moved"} {
			leased := false
			w.dead.View(func() { _, leased = w.qs.Machine.Leased(w.leases[0].Sequence) })
			j.Flush()
			if got := fmt.Sprintf("leased %v, %d marks, %d moved", leased, shardtest.CountKeys(t, s, 'X', 0), moved.Load()); got != want {
				t.Errorf("step %d: %s, want %s", step, got, want)
			}
			s.Open()
			synctest.Wait()
		}
		gated = false
		s.Open()
		if synctest.Wait(); moved.Load() != 2 || w.counts(t) != "dead 2 q 1 " {
			t.Errorf("%d moved, %s", moved.Load(), w.counts(t))
		}
		if n := shardtest.CountKeys(t, s, 'X', 0); n > 0 {
			t.Errorf("%d marks are left", n)
		}
	})
}
