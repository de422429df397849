package queues

import (
	"sync"
	"sync/atomic"

	"godwit.dev/godwit/internal/arn"
)

// QueueEvent is something that happened to messages of an SQS queue; metrics are made of it.
type QueueEvent struct {
	Queue    arn.ARN
	Slot     *Slot // of the queue; nil: not known where the event was emitted
	Kind     QueueEventKind
	At       int64 // epoch milliseconds
	Messages int   // 0 for a receive without messages, and QueueDeleted
	Bytes    int   // MessagesSent: the size of all messages, as MaximumMessageSize counts it
	// Sizes are the sizes of several messages that were sent together; nil: of one. The
	// receiver must not keep the slice.
	Sizes []int
}

// Slot is a field of a queue in which the listener keeps its state of the queue, to spare a map
// lookup for each event. It is empty at first, and after a purge.
type Slot struct{ atomic.Value }

// QueueEventKind says what happened.
type QueueEventKind byte

// The kinds of event. MessagesSent counts messages from clients and topics, dead letters of
// subscriptions included. Messages that a maxReceiveCount or a move task moves do not count, as
// in SQS's own NumberOfMessagesSent.
const (
	MessagesSent         QueueEventKind = iota + 1
	MessagesDeduplicated                // sent again within five minutes: nothing was added
	MessagesReceived
	MessagesDeleted
	MessagesDeadLettered // moved to the dead-letter queue by the queue's maxReceiveCount
	MessagesExpired      // dropped by a sweep at the end of their retention
	MessagesDeletedAgain // deleted by the handle of a message that was deleted before
	MessagesMovedIn      // came from another queue, by its maxReceiveCount or a move task
	MessagesChanged      // the gauges have changed by something without a counter: a purge, a move task, a visibility timeout
	QueueDeleted         // the queue was deleted; events of concurrent commands may follow
)

// queueEvents are those of one command.
type queueEvents struct {
	listener func(QueueEvent)
	list     []QueueEvent
	sizes    []int
}

var eventLists = sync.Pool{New: func() any { return new(queueEvents) }}

// Emit implements Emitter.
func (l *queueEvents) Emit() {
	for i := range l.list {
		l.listener(l.list[i])
	}
	clear(l.list)
	l.list, l.sizes = l.list[:0], l.sizes[:0]
	eventLists.Put(l)
}

// EmitNow emits an event that belongs to no command. The caller must hold no lock.
func (q *Queues) EmitNow(ev QueueEvent) {
	if q.options.Events != nil {
		q.options.Events(ev)
	}
}

// EmitEvent emits an event after the command.
func (sh *Shard) EmitEvent(ev QueueEvent) {
	if listener := sh.module.options.Events; listener != nil {
		l := sh.eventList()
		l.listener, l.list = listener, append(l.list, ev)
	}
}

// eventList is the list of the command's events.
func (sh *Shard) eventList() *queueEvents {
	if n := len(sh.Emits); n > 0 {
		if l, ok := sh.Emits[n-1].(*queueEvents); ok {
			return l
		}
	}
	l := eventLists.Get().(*queueEvents)
	sh.Emit(l)
	return l
}

// EmitMessages emits an event about n messages of a queue at a time in epoch milliseconds.
// With n = 0 it emits QueueDeleted only.
func (sh *Shard) EmitMessages(qs *Queue, kind QueueEventKind, at int64, n int) {
	if n > 0 || kind == QueueDeleted {
		sh.EmitEvent(QueueEvent{Queue: qs.ARN, Slot: &qs.slot, Kind: kind, At: at, Messages: n})
	}
}

// EmitSent emits one MessagesSent for all messages that a command has added to a queue, by their
// sizes in bytes. It copies sizes.
func (sh *Shard) EmitSent(qs *Queue, at int64, sizes []int) {
	if len(sizes) == 0 || sh.module.options.Events == nil {
		return
	}
	ev := QueueEvent{Queue: qs.ARN, Slot: &qs.slot, Kind: MessagesSent, At: at, Messages: len(sizes)}
	for _, size := range sizes {
		ev.Bytes += size
	}
	if len(sizes) > 1 {
		l := sh.eventList()
		from := len(l.sizes)
		l.sizes = append(l.sizes, sizes...)
		ev.Sizes = l.sizes[from:]
	}
	sh.EmitEvent(ev)
}
