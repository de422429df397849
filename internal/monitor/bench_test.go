package monitor

import (
	"testing"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/store/memory"
)

// BenchmarkEvents is what counting and measuring cost by the event.
func BenchmarkEvents(b *testing.B) {
	c := clock.NewVirtual(start)
	j := journal.Open(journal.Options{Store: memory.New()})
	defer j.Close()
	k, _, err := openMetrics(j, c, nil)
	if err != nil {
		b.Fatal(err)
	}
	queues, topics, functions := NewQueues(k, nil, func() {}), NewTopics(k, func() {}), NewFunctions(k, func() {})
	for name, f := range map[string]func(n int){
		"queue": func(n int) {
			i := n % len(queueNames)
			queues.Add(shard.QueueEvent{Queue: queueNames[i], Slot: &slots[i], Kind: shard.MessagesSent, At: c.Now().UnixMilli(), Messages: 1, Bytes: 1024})
		},
		"topic": func(n int) {
			topics.Record(topicNames[n%len(topicNames)], c.Now(), metrics.Datum{Name: "NumberOfMessagesPublished", Unit: count, Value: 1})
		},
		"function": func(n int) {
			functions.Record(&Datum{Function: functionNames[n%len(functionNames)], Qualifier: "live", Version: "3", Metric: "Invocations", At: c.Now(), Value: 1})
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				f(n)
			}
		})
	}
}

var (
	slots         [2]shard.Slot
	queueNames    = []arn.ARN{arn.Queue("us-east-1", "000000000000", "a"), arn.Queue("us-east-1", "000000000000", "b")}
	topicNames    = []arn.ARN{arn.Topic("us-east-1", "000000000000", "a"), arn.Topic("us-east-1", "000000000000", "b")}
	functionNames = []arn.ARN{arn.Function("us-east-1", "000000000000", "a"), arn.Function("us-east-1", "000000000000", "b")}
)
