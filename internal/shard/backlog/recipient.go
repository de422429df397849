package backlog

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// Recipient is the target of messages that are published without a topic. Its backlog is like a
// subscription's, also for operators, who use its name. It has no dead-letter queue.
type Recipient struct {
	*topic.Subscription // as topic.Direct makes it
	// Save writes that it was paused or resumed, as part of the command.
	Save func()
	// Failed is called when a message is dropped, in the command that drops it.
	Failed func(d *Delivery, attempts int, reason string)
}

func (r *Recipient) pause(now int64) {
	if r.PausedAt == 0 {
		r.PausedAt = now
		r.Save()
	}
}

func (r *Recipient) resume(now int64) {
	if r.PausedAt != 0 {
		r.PausedAt, r.ResumedAt = 0, now
		r.Save()
	}
}

// AddRecipient adds a recipient, which its module has loaded or made.
func (sh *Shard) AddRecipient(r *Recipient) { sh.recipients[r.ARN] = r }

// LoadRecipient is AddRecipient at a start.
func (sh *Shard) LoadRecipient(r *Recipient) error {
	sh.AddRecipient(r)
	if _, ok := sh.OfQueues().Counters[layout.Incarnation(r.Incarnation)]; !ok {
		return nil
	}
	return sh.OfQueues().LoadMachine(sh.OpenBacklog(r.Subscription))
}

// DropRecipient removes a recipient and its backlog, as part of the command.
func (sh *Shard) DropRecipient(r *Recipient) {
	delete(sh.recipients, r.ARN)
	sh.DropBacklog(layout.Incarnation(r.Incarnation))
}

// AcceptFor adds a message to a recipient's backlog, as part of the command. The token of its
// notice is the endpoint.
func (sh *Shard) AcceptFor(r *Recipient, m *message.Message) {
	now := sh.Now()
	m.Sent = now
	sh.Accept(sh.OpenBacklog(r.Subscription), now, queue.Arrival{Message: m, Sent: now, Due: now})
}

// subscription finds a subscription or a recipient.
func (sh *Shard) subscription(name arn.ARN) (*topic.Subscription, bool) {
	if r := sh.recipients[name]; r != nil {
		return r.Subscription, true
	}
	return sh.Topics.Subscription(name)
}

// deliverable finds a subscription or recipient that can have a backlog.
func (sh *Shard) deliverable(name arn.ARN) (*topic.Subscription, bool) {
	if r := sh.recipients[name]; r != nil {
		return r.Subscription, true
	}
	return sh.Topics.Deliverable(name)
}

// Direct reports that the message was published without a topic.
func (d *Delivery) Direct() bool {
	_, _, ofTopic := d.Subscription.ARN.SplitSubscription()
	return !ofTopic
}
