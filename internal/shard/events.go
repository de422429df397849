package shard

import (
	"sync/atomic"

	"godwit.dev/godwit/internal/arn"
)

// QueueEvent is something that happened to messages of an SQS queue: what
// metrics are made of.
type QueueEvent struct {
	Queue    arn.ARN
	Slot     *Slot // of the queue; nil where it was not at hand
	Kind     QueueEventKind
	At       int64 // epoch milliseconds
	Messages int   // 0 for a receive that found nothing, and the end of a queue
	Bytes    int   // MessagesSent: the size of all messages, as MaximumMessageSize counts it
	// Sizes are those of several messages that were sent at once, and nil of a single
	// one. They are not to be kept.
	Sizes []int
}

// Slot is room beside a queue for what the listener keeps about it, which it then
// need not look for at each event. It is the listener's alone, empty at first, and
// goes with the queue; a purge begins with an empty one.
type Slot struct{ atomic.Value }

// QueueEventKind says what happened.
type QueueEventKind byte

// The kinds of event. MessagesSent is of what a client or a topic
// sent, dead letters of subscriptions included; what a maxReceiveCount or a move
// task moves is not sent, as in SQS's own metrics.
const (
	MessagesSent         QueueEventKind = iota + 1
	MessagesDeduplicated                // sent again within five minutes: nothing was added
	MessagesReceived
	MessagesDeleted
	MessagesDeadLettered // moved to the dead-letter queue by the queue's maxReceiveCount
	MessagesExpired      // dropped by a sweep at the end of their retention
	MessagesDeletedAgain // deleted by a handle of what was gone already
	MessagesMovedIn      // came from another queue, by its maxReceiveCount or a move task
	QueueDeleted         // the queue is gone; what ends just now may still be told of after it
)

// event tells the listener, if there is one. It may be called with locks held.
func (e *Engine) event(ev QueueEvent) {
	if e.options.Events != nil {
		e.options.Events(ev)
	}
}

// happened tells of what happened to n messages of a queue, if it did.
func (e *Engine) happened(qs *queueState, kind QueueEventKind, at int64, n int) {
	if n > 0 || kind == MessagesReceived || kind == QueueDeleted {
		e.event(QueueEvent{Queue: qs.arn, Slot: &qs.slot, Kind: kind, At: at, Messages: n})
	}
}

// sent makes one event of what was put into a queue at once, by the messages' sizes,
// which are not kept.
func (e *Engine) sent(qs *queueState, at int64, sizes []int) {
	ev := QueueEvent{Queue: qs.arn, Slot: &qs.slot, Kind: MessagesSent, At: at, Messages: len(sizes)}
	for _, size := range sizes {
		ev.Bytes += size
	}
	if len(sizes) > 1 {
		ev.Sizes = sizes
	}
	if len(sizes) > 0 {
		e.event(ev)
	}
}
