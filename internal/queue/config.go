package queue

import (
	"time"

	"godwit.dev/godwit/internal/arn"
)

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
}

// Counts are the numbers that a queue answers about itself. They are exact but
// for delayed messages of a deep queue, which count as visible up to a second late.
type Counts struct {
	Visible  int64 // can be received
	InFlight int64 // leased, or on their way to another queue
	Delayed  int64 // not yet due
}
