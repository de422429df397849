package queues_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
)

// TestEmptyQueuesRest: of queues that were used, only the last of a shard keep
// what they need for it, and one that rested goes on where it was.
func TestEmptyQueuesRest(t *testing.T) {
	const queueCount = queues.EmptiedKept * 2 // of one shard
	ctx := context.Background()
	s := shardtest.NewStore(t)
	defer s.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: clock.System})
	defer e.Close()
	var names []arn.ARN
	for i := 0; len(names) < queueCount; i++ {
		if a := shardtest.QueueARN(fmt.Sprint("q", i)); e.Topics.ShardOf(a).ID == 0 {
			names = append(names, a)
		}
	}
	use := func(i int, want uint64) {
		t.Helper()
		sent, err := e.Send(ctx, names[i], []queues.SendEntry{{Message: shardtest.NewMessage(i, "x")}})
		if err != nil || sent[0].Sequence != want {
			t.Fatalf("%+v, %v; want sequence %d", sent, err, want)
		}
		r, err := e.Receive(ctx, queues.ReceiveRequest{Queue: names[i], Max: 10, Visibility: time.Minute})
		if err != nil || len(r) != 1 || r[0].Sequence != want {
			t.Fatalf("%+v, %v; want sequence %d", r, err, want)
		}
		if _, err := e.DeleteMessages(ctx, names[i], []string{r[0].ReceiptHandle}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range queueCount {
		if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: names[i]}); err != nil {
			t.Fatal(err)
		}
		use(i, 1)
	}
	sh := e.Topics.Shards[0]
	awake, loaded := 0, 0
	sh.View(func() {
		for _, qs := range sh.Loaded() {
			if qs.Emptied || qs.Unsynced() > 0 {
				awake++
			}
		}
		loaded = len(sh.Loaded())
	})
	if awake != queues.EmptiedKept || loaded != awake {
		t.Errorf("%d of %d queues are in memory, of which %d keep what they had", loaded, queueCount, awake)
	}
	use(0, 2)
	use(queueCount-1, 2)
}
