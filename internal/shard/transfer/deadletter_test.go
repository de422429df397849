package transfer_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/store/memory"
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

// A dead-letter queue and the destination of a move task take messages that are larger than their
// MaximumMessageSize: they have nowhere else to go.
func TestMovesIntoQueuesOfSmallMessages(t *testing.T) {
	ctx := context.Background()
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System})
	defer e.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	small := map[string]string{"MaximumMessageSize": "1024"}
	died(t, e, 0)
	must(e.SetQueueAttributes(ctx, shardtest.QueueARN("dead"), small))
	must(e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("small"), Attributes: small}))
	_, err := e.Send(ctx, shardtest.QueueARN("q"), []queues.SendEntry{{Message: shardtest.NewMessage(1, strings.Repeat("x", 5000))}})
	must(err)
	for range 2 {
		_, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("q"), Max: 1})
		must(err)
	}
	e.AwaitIdle()
	if n := visible(t, e, "dead"); n != 1 {
		t.Fatalf("%d dead letters", n)
	}
	must(e.StartMoveTask(ctx, transfer.MoveTaskSpec{ID: "x", Source: shardtest.QueueARN("dead"), Destination: shardtest.QueueARN("small")}))
	e.AwaitIdle()
	if n := visible(t, e, "small"); n != 1 {
		t.Errorf("%d messages were moved", n)
	}
}
