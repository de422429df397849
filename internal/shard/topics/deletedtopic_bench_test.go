package topics_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/shard/topics"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/topic"
)

// BenchmarkDeleteTopic deletes a topic of 100,000 subscriptions, each with a message
// in its backlog. Beside the time until the answer it shows how long others waited
// for the shard until nothing was left, the largest commit, and the memory that came
// back. Alternating, the subscriptions were made in turn with those of another topic.
func BenchmarkDeleteTopic(b *testing.B) {
	const subscriptions = 100_000
	for _, alternating := range []bool{false, true} {
		b.Run(fmt.Sprintf("alternating=%v", alternating), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				ctx := context.Background()
				s, err := pebble.Open("data", pebble.Options{FS: vfs.NewMem()})
				if err != nil {
					b.Fatal(err)
				}
				largest := 0
				e := shardtest.Open(b, shard.Options{Journal: shardtest.JournalOf(b, s, func(sealed []byte) { largest = max(largest, len(sealed)) }), Clock: clock.System})
				large := shardtest.TopicARN("large")
				all := []arn.ARN{large}
				if alternating {
					all = append(all, besideTopic(e, large))
				}
				for _, name := range all {
					if err := e.CreateTopic(ctx, topic.CreateTopic{ARN: name}); err != nil {
						b.Fatal(err)
					}
				}
				for i := range subscriptions {
					for _, name := range all {
						shardtest.Subscribe(b, e, name.Resource, fmt.Sprint("q", i), shardtest.SubscriptionID(i))
					}
				}
				if _, err := e.Publish(ctx, large, shard.Publication{ID: shardtest.MessageID(1), Body: []byte("to all")}); err != nil {
					b.Fatal(err)
				}
				e.AwaitIdle()
				e.Journal.Flush()
				before := shardtest.HeapInUse()
				largest = 0
				over, waited := make(chan struct{}), make(chan time.Duration)
				go func() { waited <- longestWait(e, e.Topics.ShardOf(large), over) }()
				b.StartTimer()
				if err := e.DeleteTopic(ctx, large); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				e.AwaitIdle()
				close(over)
				b.ReportMetric(float64((<-waited).Microseconds()), "µs-waited")
				e.Journal.Flush()
				b.ReportMetric(float64(largest), "B-commit")
				b.ReportMetric(float64(before-shardtest.HeapInUse()), "B-freed")
				if err := e.Close(); err != nil {
					b.Fatal(err)
				}
				if err := s.Close(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
		})
	}
}

// longestWait reads from a shard again and again, as commands do, and returns how
// long that took at most.
func longestWait(e *shard.Engine, sh *topics.Shard, over <-chan struct{}) (longest time.Duration) {
	next := make(chan struct{})
	for {
		clock.System.AfterFunc(100*time.Microsecond, func() { next <- struct{}{} })
		<-next
		select {
		case <-over:
			return longest
		default:
		}
		began := clock.System.Now()
		sh.View(func() {
			sh.FlushAppended()
			_, _, _ = e.Store.Get(nil, topics.DeletedTopicsKey(sh.ID))
		})
		longest = max(longest, clock.System.Now().Sub(began))
	}
}
