package transfer_test

import (
	"context"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/store/memory"
)

// TestPurgeInTransfer: a dead letter that is on its way when its queue is
// purged is in the dead-letter queue or gone, and nowhere twice.
func TestPurgeInTransfer(t *testing.T) {
	ctx := context.Background()
	for _, arrived := range []bool{false, true} {
		s := memory.New()
		e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System, TwoStep: true})
		died(t, e, 1)
		from, to := e.Topics.ShardOf(shardtest.QueueARN("dead")), e.Topics.ShardOf(shardtest.QueueARN("q"))
		var qs *queues.Queue
		var leases []queue.Lease
		var err error
		from.View(func() {
			qs = shardtest.QueueIn(from, shardtest.QueueARN("dead"))
			leases, err = from.LeaseForMove(qs, from.Now(), 1)
		})
		if err != nil || len(leases) != 1 {
			t.Fatal(leases, err)
		}
		purge := func() {
			if err := e.PurgeQueue(ctx, shardtest.QueueARN("dead")); err != nil {
				t.Error(err)
			}
		}
		tk := &transfer.RunningTask{From: shardtest.QueueARN("dead"), To: shardtest.QueueARN("q")}
		if arrived { // after the first step, before the second
			to.View(func() {
				id := transfer.TransferID{Shard: from.ID, Incarnation: qs.Incarnation, Sequence: leases[0].Sequence}
				now := to.Now()
				to.Accept(shardtest.QueueIn(to, shardtest.QueueARN("q")), now, shardtest.Arrival("m0", now))
				to.TakenIn(id)
				to.Batch.Set(id.Key(to.ID), []byte{0, 0, 0, 2})
				to.Append(journal.Eager)
			})
		}
		purge()
		if _, err := e.MoveOne(from.OfTransfers(), tk, qs, leases[0]); err == nil {
			t.Error("a message that was purged was moved")
		}
		e.Close()
		e = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System, TwoStep: true})
		if got := len(take(t, e, "q")); (got == 1) != arrived || got > 1 {
			t.Errorf("arrived=%v: %d messages at the destination", arrived, got)
		}
		if got := take(t, e, "dead"); got != nil {
			t.Errorf("%v at the source", got)
		}
		if n := shardtest.CountKeys(t, s, 'X', 0); n != 0 {
			t.Errorf("%d marks are left", n)
		}
		e.Close()
	}
}
