package shard

import "godwit.dev/godwit/internal/arn"

// QueueEvent is something that happened to messages of an SQS queue: what
// metrics are made of.
type QueueEvent struct {
	Queue    arn.ARN
	Kind     QueueEventKind
	At       int64 // epoch milliseconds
	Messages int   // 0 for a receive that found nothing, and the end of a queue
	Bytes    int   // MessagesSent: the size of all messages, as MaximumMessageSize counts it
	// Sizes are those of several messages that were sent at once, and nil of a single
	// one. They are not to be kept.
	Sizes []int
}

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
	if e.options.Events != nil && (ev.Messages > 0 || ev.Kind == MessagesReceived || ev.Kind == QueueDeleted) {
		e.options.Events(ev)
	}
}
