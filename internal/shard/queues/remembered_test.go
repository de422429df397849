package queues_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
)

// TestIdleQueueForgets: the memory of what a FIFO queue has accepted goes once that has ended, also
// where nobody uses the queue.
func TestIdleQueueForgets(t *testing.T) {
	ctx := context.Background()
	s := shardtest.NewStore(t)
	defer s.Close()
	c := clock.NewVirtual(shardtest.Start)
	e := shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, s, nil), Clock: c})
	defer e.Close()
	a := shardtest.QueueARN("q.fifo")
	if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: a, Attributes: map[string]string{"FifoQueue": "true"}}); err != nil {
		t.Fatal(err)
	}
	send := func(want bool) {
		t.Helper()
		var batch []queues.SendEntry
		for i := range 10 {
			m := shardtest.NewMessage(i, "x")
			m.Group, m.Dedup = "g", fmt.Sprint(i)
			batch = append(batch, queues.SendEntry{Message: m})
		}
		sent, err := e.Send(ctx, a, batch)
		if err != nil || sent[0].Duplicate != want || sent[9].Duplicate != want {
			t.Fatalf("%+v, %v; want duplicates: %t", sent, err, want)
		}
	}
	remembers := func() (minutes int) {
		sh := e.Topics.ShardOf(a)
		sh.View(func() {
			if qs, ok := sh.Queue(a); ok {
				minutes = qs.Remembers()
			}
		})
		return minutes
	}
	pass := func(d time.Duration) {
		t.Helper()
		if _, err := c.Advance(ctx, d); err != nil {
			t.Fatal(err)
		}
	}
	send(false)
	pass(5*time.Minute - time.Millisecond)
	send(true)
	if n := remembers(); n != 1 {
		t.Errorf("it remembers %d minutes", n)
	}
	pass(2 * time.Minute)
	if n := remembers(); n != 0 {
		t.Errorf("after seven minutes it remembers %d", n)
	}
	send(false)
	pass(time.Minute)
	send(true)
	if n := remembers(); n != 1 {
		t.Errorf("used again it remembers %d minutes", n)
	}
	pass(12 * time.Minute)
	if n := remembers(); n != 0 {
		t.Errorf("after another 12 minutes it remembers %d", n)
	}
}
