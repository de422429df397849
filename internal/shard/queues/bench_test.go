package queues_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store/pebble"
)

// BenchmarkCycle sends, receives and deletes messages of 256 B in batches of ten,
// one batch after the other, without a disk: what remains is the state machine
// and the store's own work. A thousand groups hold ten messages each all along.
func BenchmarkCycle(b *testing.B) {
	for _, kind := range []string{"standard", "fair", "fifo"} {
		b.Run(kind, func(b *testing.B) {
			ctx := context.Background()
			s, err := pebble.Open("data", pebble.Options{FS: vfs.NewMem()})
			if err != nil {
				b.Fatal(err)
			}
			e := shardtest.Open(b, shard.Options{Journal: shardtest.JournalOf(b, s, nil), Clock: clock.System})
			defer e.Close()
			name, attributes := "q", map[string]string{}
			if kind == "fifo" {
				name, attributes["FifoQueue"] = "q.fifo", "true"
			}
			q := shardtest.QueueARN(name)
			if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q, Attributes: attributes}); err != nil {
				b.Fatal(err)
			}
			n := 0
			body := strings.Repeat("x", 256)
			send := func() {
				msgs := make([]queues.SendEntry, 10)
				for i := range msgs {
					n++
					m := shardtest.NewMessage(n, body)
					if kind != "standard" {
						m.Group = fmt.Sprint("group-", n%1000)
					}
					if kind == "fifo" {
						m.Dedup = fmt.Sprint(n)
					}
					msgs[i] = queues.SendEntry{Message: m}
				}
				if _, err := e.Send(ctx, q, msgs); err != nil {
					b.Fatal(err)
				}
			}
			for range 1000 {
				send()
			}
			b.ReportAllocs()
			for b.Loop() {
				send()
				for got := 0; got < 10; {
					r, err := e.Receive(ctx, queues.ReceiveRequest{Queue: q, Max: 10 - got, Visibility: time.Minute})
					if err != nil {
						b.Fatal(err)
					}
					handles := make([]string, len(r))
					for i := range r {
						handles[i] = r[i].ReceiptHandle
					}
					if _, err := e.DeleteMessages(ctx, q, handles); err != nil {
						b.Fatal(err)
					}
					got += len(r)
				}
			}
		})
	}
}
