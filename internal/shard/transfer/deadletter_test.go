package transfer_test

import (
	"context"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/transfer"
)

// A dead-letter queue that is out of reach gets its messages later; meanwhile
// they are not delivered again.
func TestDeadLetterQueueOutOfReach(t *testing.T) {
	ctx := context.Background()
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := shardtest.NewStore(t)
	defer s.Close()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	defer e.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("dlq")}))
	must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("work"), Attributes: map[string]string{
		"RedrivePolicy": `{"deadLetterTargetArn":"` + shardtest.QueueARN("dlq").String() + `","maxReceiveCount":2}`,
	}}))
	_, err := e.Send(ctx, shardtest.QueueARN("work"), []queues.SendEntry{{Message: shardtest.NewMessage(1, "x")}})
	must(err)
	must(e.SetFault(shardtest.QueueARN("dlq"), "unavailable"))
	received := 0
	for range 6 {
		got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("work"), Max: 1, Visibility: 0})
		must(err)
		received += len(got)
		e.AwaitIdle()
		_, err = c.Advance(ctx, time.Second)
		must(err)
	}
	if received != 2 {
		t.Errorf("received %d times, want the 2 of its policy", received)
	}
	must(e.SetFault(shardtest.QueueARN("dlq"), "none"))
	_, err = c.Advance(ctx, transfer.HandOverWait)
	must(err)
	info, err := e.QueueInfo(ctx, shardtest.QueueARN("dlq"))
	must(err)
	if info.Counts.Visible != 1 {
		t.Errorf("the dead-letter queue holds %+v", info.Counts)
	}
}
