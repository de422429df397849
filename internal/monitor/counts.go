package monitor

import (
	"sync/atomic"

	"godwit.dev/godwit/internal/shard"
)

// QueueCounts counts the events of a queue, or of several.
type QueueCounts struct {
	// Left says that a queue's events are to be counted elsewhere: the caller of Add must find
	// its counts again.
	Left atomic.Bool

	Sent, SentBytes, Deduplicated  atomic.Int64
	Received, EmptyReceives        atomic.Int64
	Deleted, DeadLettered, Expired atomic.Int64
}

// Add counts an event. It does not block.
func (c *QueueCounts) Add(e *shard.QueueEvent) {
	n := int64(e.Messages)
	switch e.Kind {
	case shard.MessagesSent:
		c.Sent.Add(n)
		c.SentBytes.Add(int64(e.Bytes))
	case shard.MessagesDeduplicated:
		c.Deduplicated.Add(n)
	case shard.MessagesReceived:
		c.Received.Add(n)
		if n == 0 {
			c.EmptyReceives.Add(1)
		}
	case shard.MessagesDeleted:
		c.Deleted.Add(n)
	case shard.MessagesDeadLettered:
		c.DeadLettered.Add(n)
	case shard.MessagesExpired:
		c.Expired.Add(n)
	case shard.MessagesMovedIn, shard.MessagesDeletedAgain, shard.QueueDeleted: // counted elsewhere, or before
	case shard.MessagesChanged: // not counted
	}
}
