package topics_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/topic"
)

// BenchmarkPublish publishes 1 KiB to raw queues, 16 at once, on a disk; one by one, or in
// batches.
func BenchmarkPublish(b *testing.B) {
	for _, bc := range []struct{ queues, batch int }{{1, 1}, {10, 1}, {100, 1}, {1, 10}, {10, 10}} {
		b.Run(fmt.Sprintf("%dto%d", bc.batch, bc.queues), func(b *testing.B) {
			ctx := context.Background()
			s, err := pebble.Open(b.TempDir(), pebble.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			var ids atomic.Int64
			newID := func() message.ID { return shardtest.MessageID(int(ids.Add(1))) }
			e := shardtest.Open(b, shard.Options{
				Journal: shardtest.JournalOf(b, s, nil), Clock: clock.System, NewID: newID, Published: func(*topics.Published) {}, Events: func(queues.QueueEvent) {},
				Render: func(n *message.Message) (*message.Message, error) {
					m := &message.Message{ID: newID(), Sender: n.Sender, Body: n.Body, Attributes: n.Attributes}
					if n.BodyMD5 != [16]byte{} {
						m.SealAs(n.BodyMD5)
					} else {
						m.Seal()
					}
					return m, nil
				},
			})
			defer e.Close()
			if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: shardtest.TopicARN("t")}); err != nil {
				b.Fatal(err)
			}
			for i := range bc.queues {
				q := shardtest.QueueARN(fmt.Sprint("q", i))
				if err := e.CreateQueue(ctx, queues.QueueSpec{ARN: q}); err != nil {
					b.Fatal(err)
				}
				if _, err := e.Subscribe(ctx, topic.Subscribe{
					Topic: shardtest.TopicARN("t"), Owner: shardtest.Account, Protocol: "sqs", Endpoint: q.String(), ID: shardtest.SubscriptionID(i + 1),
					Attributes: map[string]string{"RawMessageDelivery": "true"},
				}); err != nil {
					b.Fatal(err)
				}
			}
			body := []byte(strings.Repeat("x", 1024))
			b.ReportAllocs()
			b.SetParallelism(8)
			before := processorTime(b)
			b.RunParallel(func(pb *testing.PB) {
				ps := make([]shard.Publication, bc.batch)
				for pb.Next() {
					for i := range ps {
						ps[i] = shard.Publication{ID: newID(), Sender: "s", Body: body}
					}
					if _, err := e.Publish(ctx, shardtest.TopicARN("t"), ps...); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "µs-cpu/op")
		})
	}
}

// processorTime is what this process has used, which another load on the machine
// changes little.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
