package queues_test

import (
	"context"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// TestPartialStepsHaveCounters: a command that needs a record hands over first what it has
// written, and with it the counters as they are then: a crash may leave just that part.
func TestPartialStepsHaveCounters(t *testing.T) {
	ctx := context.Background()
	watched, without := false, 0
	observe := func(sealed []byte) {
		if !watched {
			return
		}
		c, err := mutation.DecodeFramedBatch(sealed)
		if err != nil {
			t.Error(err)
			return
		}
		leases, counters := false, false
		err = c.Batch.Each(func(_ mutation.Op, key, _ []byte) error {
			leases = leases || key[2] == keyspace.Data && key[11] == keyspace.Leases
			counters = counters || key[2] == keyspace.Counters
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		if leases && !counters {
			without++
		}
	}
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), observe), Clock: clock.NewVirtual(shardtest.Start)})
	defer e.Close()
	q := shardtest.QueueARN("q.fifo")
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q, Attributes: map[string]string{"FifoQueue": "true", "ContentBasedDeduplication": "true"}}); err != nil {
		t.Fatal(err)
	}
	receive := func(n int) string {
		t.Helper()
		m := shardtest.NewMessage(n, "x")
		m.Group, m.Dedup = "g", m.ID.String()
		if _, err := e.Send(ctx, q, []queues.SendEntry{{Message: m}}); err != nil {
			t.Fatal(err)
		}
		got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 1, Visibility: 30 * time.Second})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		return got[0].ReceiptHandle
	}
	handle := receive(1)
	if _, err := e.DeleteMessages(ctx, q, []string{handle}); err != nil {
		t.Fatal(err)
	}
	receive(2)
	sh := e.Topics.ShardOf(q)
	sh.View(func() {
		sh.AdvanceTo(sh.LatestTime() + 60_000) // the lease has run out, and no timer has come yet
	})
	watched = true
	if _, err := e.DeleteMessages(ctx, q, []string{handle}); err != nil { // it is gone, which only the store knows
		t.Fatal(err)
	}
	e.Journal.Flush()
	watched = false
	if without > 0 {
		t.Errorf("%d commits changed leases and not the counters", without)
	}
}
