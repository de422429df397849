package shard

import (
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/limit"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// QueueInfo is what a queue tells about itself.
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
	// Duplicate: a message with the same deduplication id was accepted before.
	// Nothing was added.
	Duplicate bool
}

// Outgoing is a message to be accepted by a queue.
type Outgoing struct {
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
	// Memory is what the messages, and all that is made of them, are reserved from
	// before they are read: three times their size. Where there is no room for all,
	// those come that fit, and the others stay; where there is none for the first,
	// the receive waits for some, and then fails with limit.ErrFull. A receive that
	// waits for a message reserves nothing. Nil: they take any amount.
	Memory *limit.Reservation
	// Waiting is told that the receive begins to wait for a message, and that it does
	// no longer, in that very moment. It is called under a shard's lock: it must be
	// quick, and not call the engine. Nil: nobody wants to know.
	Waiting func(is bool)
}

// Received is a message leased to a client.
type Received struct {
	*message.Message
	Sequence      uint64
	ReceiptHandle string
	Receives      int   // including this one, and those in queues that it was moved here from
	FirstReceived int64 // epoch milliseconds
	FIFO          bool  // the queue is one
}

// Attempt is one try to deliver a message to a subscription's endpoint.
type Attempt struct {
	At      time.Time     `json:"at"`      // when it began
	Outcome string        `json:"outcome"` // "success", "client-error", "server-error", "expired"
	Status  int           `json:"status"`  // HTTP status; 0 where there is none
	Detail  string        `json:"detail"`  // why it failed, in a few words; no body, no secret
	Latency time.Duration `json:"latency"`
}

// DeliveryState says where a delivery stands.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending    DeliveryState = "pending"     // waiting for its next attempt
	DeliveryInFlight   DeliveryState = "in-flight"   // an attempt is under way
	DeliveryDelivered  DeliveryState = "delivered"   // done
	DeliveryDeadLetter DeliveryState = "dead-letter" // moved to the dead-letter queue
	DeliveryDropped    DeliveryState = "dropped"     // failed for good, and there is no dead-letter queue that takes it
)

// BacklogInfo is an operator's view of what a subscription is owed.
type BacklogInfo struct {
	Subscription topic.Subscription
	Due          int64     // deliveries that could be attempted now
	Waiting      int64     // for their next attempt's time
	InFlight     int64     // given to the consumer
	Oldest       time.Time // publish of the oldest message; zero: there is none
	Now          time.Time // by the server's clock
}

// DeliveryInfo is an operator's view of one delivery.
type DeliveryInfo struct {
	// ID names the delivery among those of its subscription while it waits or is
	// under way; empty afterwards.
	ID            string
	MessageID     string
	Subscription  arn.ARN
	State         DeliveryState
	Attempts      int       // made so far
	NextAttemptAt time.Time // zero when there is none
	PublishedAt   time.Time
	FinishedAt    time.Time // zero while it goes on
	History       []Attempt // oldest first: the first 20 and the last 80
	// Reason is why, for dead-letter and dropped, and for what waits for its
	// dead-letter queue.
	Reason string
}
