// Package monitor keeps what an operator wants to know about the service over
// time. So far that is the totals of each queue since the process began.
package monitor

import (
	"sync"
	"sync/atomic"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/shard"
)

// Queues adds up the events of queues. A queue that nothing happened to costs
// nothing.
type Queues struct{ totals sync.Map } // arn.ARN → *counters

type counters struct{ sent, sentBytes, deduplicated, received, empty, deleted, deadLettered, expired atomic.Int64 }

// Totals are what happened to the messages of a queue since the process began.
type Totals struct {
	Sent, SentBytes, Deduplicated  int64
	Received, EmptyReceives        int64
	Deleted, DeadLettered, Expired int64
}

// Add takes an event. It does not block.
func (q *Queues) Add(e shard.QueueEvent) {
	found, ok := q.totals.Load(e.Queue)
	if !ok {
		found, _ = q.totals.LoadOrStore(e.Queue, &counters{})
	}
	c, n := found.(*counters), int64(e.Messages)
	switch e.Kind {
	case shard.MessagesSent:
		c.sent.Add(n)
		c.sentBytes.Add(int64(e.Bytes))
	case shard.MessagesDeduplicated:
		c.deduplicated.Add(n)
	case shard.MessagesReceived:
		c.received.Add(n)
		if n == 0 {
			c.empty.Add(1)
		}
	case shard.MessagesDeleted:
		c.deleted.Add(n)
	case shard.MessagesDeadLettered:
		c.deadLettered.Add(n)
	case shard.MessagesExpired:
		c.expired.Add(n)
	}
}

// Of are the totals of a queue.
func (q *Queues) Of(queue arn.ARN) Totals {
	found, ok := q.totals.Load(queue)
	if !ok {
		return Totals{}
	}
	c := found.(*counters)
	return Totals{
		Sent: c.sent.Load(), SentBytes: c.sentBytes.Load(), Deduplicated: c.deduplicated.Load(),
		Received: c.received.Load(), EmptyReceives: c.empty.Load(),
		Deleted: c.deleted.Load(), DeadLettered: c.deadLettered.Load(), Expired: c.expired.Load(),
	}
}
