package queue

import (
	"errors"
	"time"

	"godwit.dev/godwit/internal/arn"
)

// MaxInFlight is how many messages of a queue can be leased at once. Source:
// the quotas of SQS standard queues.
const MaxInFlight = 120_000

// maxVisibility is how long one receive can hide a message, in milliseconds,
// all changes of its visibility together.
const maxVisibility = int64(12 * time.Hour / time.Millisecond)

// Errors of a command. They are facts about the queue; what a client is answered is
// decided above.
var (
	ErrGone       = errors.New("queue: no such message")
	ErrNotLeased  = errors.New("queue: message is not leased")
	ErrVisibility = errors.New("queue: total visibility timeout is beyond 12 hours")
	ErrInFlight   = errors.New("queue: too many messages in flight")
	ErrExpired    = errors.New("queue: the receive is over") // of a FIFO queue's handle
)

// Kind is what sort of queue a machine is.
type Kind struct {
	// FIFO: a message in flight blocks those behind it in its group.
	FIFO bool
	// Backlog: the queue of a subscription. Its consumer is in this process, so a
	// lease holds until it ends or the process does, and messages do not expire
	// by themselves.
	Backlog bool
}

// Config is how a queue behaves: the typed form of its attributes.
type Config struct {
	Delay          time.Duration // DelaySeconds: 0–900 s
	Visibility     time.Duration // VisibilityTimeout: 0–12 h
	Wait           time.Duration // ReceiveMessageWaitTimeSeconds: 0–20 s
	Retention      time.Duration // MessageRetentionPeriod: 60 s–14 d
	MaxMessageSize int           // bytes: 1,024–1,048,576
	MaxReceives    int           // RedrivePolicy's maxReceiveCount: 1–1,000; 0 without a RedrivePolicy
	DeadLetter     arn.ARN       // RedrivePolicy's deadLetterTargetArn; zero without one
	ContentDedup   bool          // ContentBasedDeduplication
	GroupDedup     bool          // DeduplicationScope is messageGroup
	Key            string        // KmsMasterKeyId, however it names the key; empty without one
	KeyReuse       time.Duration // KmsDataKeyReusePeriodSeconds: 60 s–24 h
	Managed        bool          // SqsManagedSseEnabled
}

// Counts are the numbers that a queue answers about itself. They are exact but
// for delayed messages of a deep queue, which count as visible up to a second late.
type Counts struct {
	Visible  int64 // can be received
	InFlight int64 // leased, or on their way to another queue
	Delayed  int64 // not yet due
}
