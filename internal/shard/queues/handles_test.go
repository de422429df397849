package queues_test

import (
	"context"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/memory"
)

// TestHandleOfAnotherQueue: a handle is good for its own queue, in its own
// life, and after a restart too.
func TestHandleOfAnotherQueue(t *testing.T) {
	ctx := context.Background()
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: clock.System}
	e := shardtest.Open(t, o)
	for _, name := range []string{"mine", "other"} {
		if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN(name)}); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() string {
		t.Helper()
		if _, err := e.Send(ctx, shardtest.QueueARN("mine"), []queues.SendEntry{{Message: shardtest.NewMessage(1, "x")}}); err != nil {
			t.Fatal(err)
		}
		got, err := e.Receive(ctx, queues.ReceiveRequest{Queue: shardtest.QueueARN("mine"), Max: 1, Visibility: 1e12})
		if err != nil || len(got) != 1 {
			t.Fatal(got, err)
		}
		return got[0].ReceiptHandle
	}
	use := func(name, handle string) error {
		t.Helper()
		deleted, err := e.DeleteMessages(ctx, shardtest.QueueARN(name), []string{handle})
		if err != nil {
			t.Fatal(err)
		}
		changed, err := e.ChangeVisibility(ctx, shardtest.QueueARN(name), []queues.VisibilityChange{{Handle: handle}})
		if err != nil {
			t.Fatal(err)
		}
		if (deleted[0] == nil) != (fault.KindOf(changed[0]) != fault.ReceiptHandleIsInvalid) {
			t.Errorf("delete says %v and change says %v", deleted[0], changed[0])
		}
		return deleted[0]
	}
	old := receive()
	if err := use("other", old); fault.KindOf(err) != fault.ReceiptHandleIsInvalid {
		t.Errorf("in another queue: %v", err)
	}
	if err := e.DeleteQueue(ctx, shardtest.QueueARN("mine")); err != nil {
		t.Fatal(err)
	}
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("mine")}); err != nil {
		t.Fatal(err)
	}
	if err := use("mine", old); fault.KindOf(err) != fault.ReceiptHandleIsInvalid {
		t.Errorf("in another life of the queue: %v", err)
	}
	handle := receive()
	e.Close()
	e = shardtest.Open(t, o)
	defer e.Close()
	if err := use("mine", handle); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if info, err := e.QueueInfo(ctx, shardtest.QueueARN("mine")); err != nil || info.Counts != (queue.Counts{}) {
		t.Errorf("after the delete: %+v, %v", info.Counts, err)
	}
}
