package topics

import (
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
)

// Published reports the results of one publish, and the deliveries of its own commit. All of it
// is durable.
type Published struct {
	Topic arn.ARN
	ID    message.ID
	At    time.Time
	Size  int // bytes of the body, or of all bodies, and of the attributes
	// Later says that this event reports the end of a fan-out that exceeded one commit. An
	// earlier event had the message itself.
	Later bool
	// FanOutPending says that the fan-out continues in the background: another event, with
	// Later, follows.
	FanOutPending bool
	FilteredOut   [filter.Verdicts]int // subscriptions that do not get it, by reason
	Delivered     int                  // immediate deliveries to queues
	// Immediate are the immediate deliveries, if the topic logs successes.
	Immediate []ImmediateDelivery
	Feedback  topic.Feedback // of queues
	// What is the publication in its stored form; it must not be kept or changed. Nil if Later,
	// and for a publish without a topic.
	What *publication.Record
}

// ImmediateDelivery is a delivery made by the publish's own commit.
type ImmediateDelivery struct {
	Subscription topic.Subscription
	Body         []byte     // must not be kept or shown
	MessageID    message.ID // of the message in the queue
}

// publishedEvent reports a publish.
type publishedEvent struct {
	emit func(*Published)
	what *Published
}

// Emit implements Emitter.
func (p *publishedEvent) Emit() { p.emit(p.what) }

// publishedEvent makes the event of a committed publication; nil without a listener, or for a
// duplicate. The shard's lock is held.
func (sh *Shard) publishedEvent(f *fanout, done bool) *Published {
	if sh.module.options.Published == nil || f.result.Duplicate {
		return nil
	}
	p := &Published{
		Topic: f.Topic, ID: f.P.ID, At: clock.Time(f.Sent), Size: f.P.Size(),
		Delivered: f.delivered, Immediate: f.immediate, Feedback: f.feedback, What: &f.Record,
	}
	p.FanOutPending = !done
	if done {
		p.FilteredOut = sh.Topics.FilteredOut(f.Topic, f.Message, f.reached)
	}
	return p
}
