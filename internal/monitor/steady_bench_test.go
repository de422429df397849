package monitor

import (
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store/memory"
)

// BenchmarkQuietQueue is what the minute of a queue costs that has a message and is
// left alone.
func BenchmarkQuietQueue(b *testing.B) {
	const queues = 50_000
	c := clock.NewVirtual(start)
	j := journal.Open(journal.Options{Store: memory.New()})
	defer j.Close()
	all := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	k := metrics.New(all, metrics.Options{Layouts: Layouts})
	q := NewQueues(k, nil, func() {})
	e, err := shard.Open(shard.Options{Kernel: all, Events: q.Add})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	var next atomic.Int64
	done := make(chan error)
	const senders = 64
	for range senders {
		go func() {
			var err error
			for i := next.Add(1); i <= queues && err == nil; i = next.Add(1) {
				name := arn.Queue("us-east-1", "000000000000", fmt.Sprint("q", i))
				if err = e.CreateQueue(b.Context(), shard.QueueSpec{ARN: name}); err == nil {
					m := &message.Message{Body: []byte("a")}
					m.Seal()
					_, err = e.Send(b.Context(), name, []shard.SendEntry{{Message: m}})
				}
			}
			done <- err
		}()
	}
	for range senders {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	minute := func() {
		if _, err := c.Advance(b.Context(), time.Minute); err != nil {
			b.Fatal(err)
		}
		if _, err := q.Tick(e, c.Now()); err != nil {
			b.Fatal(err)
		}
		if _, err := k.Flush(); err != nil {
			b.Fatal(err)
		}
	}
	for range 12 { // until what was sent has left memory
		minute()
	}
	b.ReportAllocs()
	for b.Loop() {
		minute()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/queues, "ns/queue")
}
