package queues

import (
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
)

// QueueInfo describes a queue.
type QueueInfo struct {
	ARN        arn.ARN
	Attributes map[string]string // as given by the owner, canonical; defaults are not in it
	Tags       map[string]string
	Created    time.Time
	Modified   time.Time
	Counts     queue.Counts
}

// SendResult is the outcome of one accepted message.
type SendResult struct {
	ID       message.ID // the message's, or, of a duplicate, the original's
	Sequence uint64
	Origin   uint64 // of the queue's sequence numbers: see message.NumberFrom
	// Duplicate: a message with the same deduplication id was accepted before.
	// Nothing was added.
	Duplicate bool
}

// SendEntry is a message to be accepted by a queue.
type SendEntry struct {
	Message *message.Message // Sent is filled in by the shard, the rest by the caller; sealed
	// Delay hides the message at first. Negative means the queue's own delay.
	Delay time.Duration
}

// ReceiveRequest asks for messages of a queue.
type ReceiveRequest struct {
	Queue arn.ARN
	Max   int // 1–10
	// Visibility hides what is received. Negative means the queue's own.
	Visibility time.Duration
	// Wait is how long to wait, in real time, for a first message. Negative
	// means the queue's own.
	Wait time.Duration
	// Attempt is the ReceiveRequestAttemptId, or empty; FIFO queues only.
	Attempt string
	// Memory is the budget from which three times the size of a message is reserved
	// before it is read. If the budget does not suffice for all, the receive takes
	// those that fit, and the others stay visible; if not even for the first, it waits
	// for memory, and fails with limit.ErrFull in the end. A receive that waits for a
	// message reserves nothing. Nil: there is no limit.
	Memory *limit.Reservation
	// Caller receives, and needs the right to decrypt; nil: the root of the queue's account.
	Caller *caller.Caller
	// Admit is asked again once messages were found, without a lock: what it refuses puts
	// them back as if nobody had received them, and is the receive's error. Nil admits.
	Admit func() error
	// Waiting is called when the receive begins to wait for a message and when it stops,
	// under a shard's lock: it must be quick, and not call the engine. May be nil.
	Waiting func(is bool)
}

// Received is a message leased to a client.
type Received struct {
	*message.Message
	Sequence      uint64
	Origin        uint64 // of the queue's sequence numbers: see message.NumberFrom
	ReceiptHandle string
	Receives      int   // including this one, and those in queues that it was moved here from
	FirstReceived int64 // epoch milliseconds
	FIFO          bool  // the queue is one
}
