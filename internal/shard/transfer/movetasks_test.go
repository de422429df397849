package transfer_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/store/memory"
)

// TestMoveTasksAreFoundAgain: after a restart a queue has its latest tasks, each as it was, with where
// it moves messages to; of two at once the second one is refused.
func TestMoveTasksAreFoundAgain(t *testing.T) {
	ctx := context.Background()
	now := clock.NewVirtual(shardtest.Start)
	o := shard.Options{Journal: shardtest.JournalOf(t, memory.New(), nil), Clock: now}
	e := shardtest.Open(t, o)
	died(t, e, 1)
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: shardtest.QueueARN("other")}); err != nil {
		t.Fatal(err)
	}
	const begun = transfer.MoveTasksKept + 2
	spec := transfer.MoveTaskSpec{Source: shardtest.QueueARN("dead"), Destination: shardtest.QueueARN("other"), Rate: 1}
	for i := range begun {
		spec.ID = fmt.Sprint(i)
		if err := e.StartMoveTask(ctx, spec); err != nil {
			t.Fatal(err)
		}
		if i == begun-1 {
			break // it goes on after the restart
		}
		if err := e.StartMoveTask(ctx, spec); !errors.Is(err, transfer.ErrMoveRunning) {
			t.Errorf("a second task at once: %v", err)
		}
		if _, err := e.CancelMoveTask(ctx, spec.Source, spec.ID); err != nil {
			t.Fatal(err)
		}
		e.AwaitIdle()
	}
	e.Close()
	e = shardtest.Open(t, o)
	defer e.Close()
	tasks, err := e.MoveTasks(ctx, spec.Source, begun)
	if err != nil || len(tasks) != transfer.MoveTasksKept {
		t.Fatalf("%d tasks, %v; want the latest %d", len(tasks), err, transfer.MoveTasksKept)
	}
	for i, task := range tasks {
		if task.ID != fmt.Sprint(begun-1-i) || task.Destination != spec.Destination || task.Rate != 1 {
			t.Errorf("task %d from behind: %+v", i, task)
		}
	}
	if _, err := now.Advance(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	e.AwaitIdle()
	if got := visible(t, e, "other"); got != 1 || visible(t, e, "q") != 0 {
		t.Errorf("%d messages are in the destination", got)
	}
}
