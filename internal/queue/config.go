package queue

import (
	"errors"
	"time"

	"godwit.dev/godwit/internal/arn"
)

// maxInFlight is how many messages of a queue can be leased at once. Source:
// the quotas of SQS standard queues.
const maxInFlight = 120_000

// maxVisibility is how long one receive can make a message invisible, in milliseconds, with all
// changes of its visibility timeout. Source: ChangeMessageVisibility in the SQS API reference.
const maxVisibility = int64(12 * time.Hour / time.Millisecond)

// Errors of commands. The rings above turn them into a client's answer, which may be a
// success.
var (
	ErrGone       = errors.New("queue: no such message")
	ErrNotLeased  = errors.New("queue: message is not leased")
	ErrVisibility = errors.New("queue: total visibility timeout is beyond 12 hours")
	ErrInFlight   = errors.New("queue: too many messages in flight")
	ErrExpired    = errors.New("queue: the receive is over") // of a FIFO queue's handle
)

// Kind is what sort of queue a machine is.
type Kind struct {
	// FIFO: a message in flight blocks the later ones of its group.
	FIFO bool
	// Backlog: the queue of a subscription or of a function's events. Its consumer is in
	// this process, so leases have no timeout: they last until they are concluded or the
	// process ends. There is no retention either.
	Backlog bool
}

// MaxMessageBytes is the largest MaximumMessageSize, and the most that the messages of one batch
// may have together, in bytes.
const MaxMessageBytes = 1 << 20

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

// envelopedMessageBytes was the largest MaximumMessageSize until August 2025, and is still that of
// the queues that were made with it.
const envelopedMessageBytes = 256 << 10

// Takes reports that the queue takes a delivery of a size in bytes. A queue with the largest
// MaximumMessageSize takes what a topic makes of the largest message, whose envelope is larger.
func (c *Config) Takes(size int) bool {
	return size <= c.MaxMessageSize || c.MaxMessageSize == MaxMessageBytes
}

// TakesNotification is Takes for a delivery that a topic has made of a message of published bytes,
// with its attributes. A queue that takes 256 KiB takes the envelope of each message that it would
// take itself.
func (c *Config) TakesNotification(size, published int) bool {
	return c.Takes(size) || c.MaxMessageSize >= envelopedMessageBytes && published <= c.MaxMessageSize
}

// Counts are the numbers of messages in each state. They are exact, except that in a queue with
// more scheduled messages than memory holds a message that has come due counts as delayed for
// up to a second more.
type Counts struct {
	Visible  int64 // can be received
	InFlight int64 // leased, or being moved to another queue
	Delayed  int64 // not yet due
}
