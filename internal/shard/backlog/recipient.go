package backlog

import (
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// Recipient is whom messages wait for that are published to no topic. Its backlog is like
// a subscription's, and so is all that an operator can do about it, by its name. It has no
// dead-letter queue.
type Recipient struct {
	*topic.Subscription // as topic.Direct makes it
	// Save writes that it was paused or resumed, as part of the command under way.
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
	if _, ok := sh.Counters[layout.Incarnation(r.Incarnation)]; !ok {
		return nil
	}
	return sh.LoadMachine(sh.OpenBacklog(r.Subscription))
}

// DropRecipient removes a recipient and what waits for it, as part of the command under way.
func (sh *Shard) DropRecipient(r *Recipient) {
	delete(sh.recipients, r.ARN)
	sh.DropBacklog(layout.Incarnation(r.Incarnation))
}

// AcceptFor puts a message into a recipient's backlog, as part of the command under way. Its
// notice names the endpoint in the place of a token.
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

// deliverable finds what has a backlog.
func (sh *Shard) deliverable(name arn.ARN) (*topic.Subscription, bool) {
	if r := sh.recipients[name]; r != nil {
		return r.Subscription, true
	}
	return sh.Topics.Deliverable(name)
}

// Direct reports that the message was published to no topic.
func (d *Delivery) Direct() bool {
	_, _, ofTopic := d.Subscription.ARN.SplitSubscription()
	return !ofTopic
}
