package queues_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// TestPurgeCostsTheSame: a purge writes as much for many messages as for few,
// and leaves no record behind; so does a deletion.
func TestPurgeCostsTheSame(t *testing.T) {
	ctx := context.Background()
	writes := map[string]int{}
	for _, n := range []int{10, 2000} {
		for _, what := range []string{"purge", "delete"} {
			s := shardtest.NewStore(t)
			var last []int
			e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, func(sealed []byte) {
				if c, err := mutation.DecodeFramedBatch(sealed); err == nil {
					last = append(last, c.Batch.Len())
				}
			}), Clock: clock.System})
			if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q")}); err != nil {
				t.Fatal(err)
			}
			for i := range n / 10 {
				var msgs []queues.SendEntry
				for j := range 10 {
					msgs = append(msgs, queues.SendEntry{Message: shardtest.NewMessage(10*i+j, "x"), Delay: time.Duration(j%2) * time.Minute})
				}
				if _, err := e.Send(ctx, shardtest.QueueARN("q"), msgs); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("q"), Max: 10, Visibility: time.Hour}); err != nil {
				t.Fatal(err)
			}
			e.Journal.Sync()
			last = nil
			var err error
			if what == "purge" {
				err = e.PurgeQueue(ctx, shardtest.QueueARN("q"))
			} else {
				err = e.DeleteQueue(ctx, shardtest.QueueARN("q"))
			}
			if err != nil || len(last) != 1 {
				t.Fatal(err, last)
			}
			if want, ok := writes[what]; ok && want != last[0] {
				t.Errorf("%s: %d writes for %d messages, %d for fewer", what, last[0], n, want)
			}
			writes[what] = last[0]
			if n := shardtest.CountKeys(t, s, 'D', 0); n != 0 {
				t.Errorf("%s: %d records are left", what, n)
			}
			if n := shardtest.CountKeys(t, s, 'C', 0); (n == 1) != (what == "purge") {
				t.Errorf("%s: %d counters", what, n)
			}
			e.Close()
			s.Close()
		}
	}
}

// TestPurgeWhileWaiting: receives that wait at a queue when it is purged go on
// waiting, in their order, and can still leave.
func TestPurgeWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t, clock.System)
		defer p.Close()
		ctx, cancel := context.WithCancel(context.Background())
		gone := p.wait(ctx, 1, 20*time.Second, time.Minute)
		first := p.wait(context.Background(), 1, 20*time.Second, time.Minute)
		second := p.wait(context.Background(), 1, 15*time.Second, time.Minute)
		third := p.wait(context.Background(), 1, 20*time.Second, time.Minute)
		for range 2 {
			if err := p.PurgeQueue(context.Background(), shardtest.QueueARN("q")); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		synctest.Wait()
		p.expect("who left", gone, "fault false")
		p.expect("the first", first, "")
		p.send(0, "a")
		p.expect("the first", first, "a×1 ok")
		<-shardtest.After(15 * time.Second)
		synctest.Wait()
		p.expect("whose time is over", second, "ok")
		p.send(0, "b")
		p.expect("the third", third, "b×1 ok")
		if c := p.counts(); c.InFlight != 2 {
			t.Errorf("%+v", c)
		}
	})
}

// TestHandlesOfPurgedMessages: to its holder a purged message is gone. A
// handle of before very many purges is no handle, and so is one of a queue of
// the same name that was deleted.
func TestHandlesOfPurgedMessages(t *testing.T) {
	ctx := context.Background()
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System}
	e := shardtest.Open(t, o)
	try := func(what, handle string, want fault.Kind) {
		t.Helper()
		deleted, err := e.DeleteMessages(ctx, shardtest.QueueARN("q"), []string{handle})
		if err != nil {
			t.Fatal(err)
		}
		changed, err := e.ChangeVisibility(ctx, shardtest.QueueARN("q"), []queues.VisibilityChange{{Handle: handle, Timeout: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		if ok := deleted[0] == nil; ok != (want == fault.InvalidParameter) || fault.KindOf(changed[0]) != want {
			t.Errorf("%s: %v, %v", what, deleted[0], changed[0])
		}
	}
	held := func() string {
		t.Helper()
		if _, err := e.Send(ctx, shardtest.QueueARN("q"), []queues.SendEntry{{Message: shardtest.NewMessage(1, "x")}}); err != nil {
			t.Fatal(err)
		}
		got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("q"), Max: 1, Visibility: time.Hour})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		return got[0].ReceiptHandle
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q")}))
	old := held()
	for i := range queues.FormerKept {
		must(e.PurgeQueue(ctx, shardtest.QueueARN("q")))
		e.Close()
		e = shardtest.Open(t, o)
		try(fmt.Sprintf("after %d purges", i+1), old, fault.InvalidParameter)
	}
	must(e.PurgeQueue(ctx, shardtest.QueueARN("q")))
	try("after very many purges", old, fault.ReceiptHandleIsInvalid)
	old = held()
	must(e.DeleteQueue(ctx, shardtest.QueueARN("q")))
	must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q")}))
	try("after a deletion", old, fault.ReceiptHandleIsInvalid)
	e.Close()
}

// TestPurgeCooldown: it holds through a restart.
func TestPurgeCooldown(t *testing.T) {
	ctx := context.Background()
	now := clock.NewVirtual(shardtest.Start)
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: now, Cooldowns: true}
	e := shardtest.Open(t, o)
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("q")}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		later   time.Duration
		refused bool
	}{{0, false}, {60*time.Second - time.Millisecond, true}, {time.Millisecond, false}, {time.Second, true}} {
		if _, err := now.Advance(ctx, c.later); err != nil {
			t.Fatal(err)
		}
		e.Close()
		e = shardtest.Open(t, o)
		if err := e.PurgeQueue(ctx, shardtest.QueueARN("q")); (fault.KindOf(err) == fault.PurgeQueueInProgress) != c.refused || err != nil && !c.refused {
			t.Errorf("after %v: %v", c.later, err)
		}
	}
	e.Close()
}
