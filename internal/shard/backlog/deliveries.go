package backlog

import (
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/topic"
)

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
