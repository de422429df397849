package queues_test

import (
	"fmt"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
)

// A longer delay of a large FIFO queue holds its shard for a step only; the others are the timer's, and go on
// after a restart.
func TestRecountOfLargeQueue(t *testing.T) {
	const messages = 3000
	for _, restart := range []bool{false, true} {
		a := &ages{T: t, clock: clock.NewVirtual(shardtest.Start), store: shardtest.NewStore(t)}
		open := func() {
			a.engine = shardtest.Open(t, shard.Options{Journal: shardtest.JournalOf(t, a.store, nil), Clock: a.clock})
		}
		open()
		a.create("q.fifo", map[string]string{"FifoQueue": "true"})
		q := shardtest.QueueARN("q.fifo")
		for i := 0; i < messages; {
			var all []queues.SendEntry
			for ; len(all) < 100; i++ {
				m := shardtest.NewMessage(i, "x")
				m.Group, m.Dedup = fmt.Sprint(i%100), fmt.Sprint(i)
				all = append(all, queues.SendEntry{Message: m})
			}
			_, err := a.engine.Send(t.Context(), q, all)
			a.must(err)
		}
		delayed := func() int64 {
			info, err := a.engine.QueueInfo(t.Context(), q)
			a.must(err)
			return info.Counts.Delayed
		}
		a.pass(5 * time.Second)
		a.must(a.engine.SetQueueAttributes(t.Context(), q, map[string]string{"DelaySeconds": "60"}))
		if n := delayed(); n != 0 {
			t.Errorf("%d are counted at once", n)
		}
		if restart {
			a.engine.Close()
			open()
		}
		a.pass(time.Second)
		if n := delayed(); n != messages {
			t.Errorf("%d are delayed, want %d; restarted: %v", n, messages, restart)
		}
		a.pass(time.Minute)
		if n := delayed(); n != 0 {
			t.Errorf("%d are delayed once the delay is over", n)
		}
		a.engine.Close()
		a.store.Close()
	}
}
