// Package backlog is the module of the queues that the server's own consumers read: the
// deliveries of subscriptions, and the events of functions. A consumer leases the messages that
// are due, and concludes each lease.
package backlog

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/protect"
	"godwit.dev/godwit/internal/topic/retry"
)

// Delivery is a message of a subscription's backlog, leased to the consumer until it concludes
// the lease.
type Delivery struct {
	Subscription topic.Subscription // as it is now
	RetryPolicy  retry.Policy       // in effect now
	ContentType  string             // of notifications over HTTP
	DisplayName  string             // of the topic, whom mails and text messages are from; empty: it has none
	Throttle     int                // deliveries a second; 0: no limit
	Feedback     topic.Feedback     // which attempts the topic's delivery status log records
	Guard        *protect.Policy    // denies the delivery of data that must not leave the topic; nil: there is none
	Message      *message.Message
	Attempt      int // the number of the attempt to be made, from 1
	// Cause is set once the delivery has failed for good. Backlogs.Retry persists it: such a delivery
	// is not attempted any more, it only waits for its dead-letter queue.
	Cause Cause
	// Kept is what the consumer keeps from one attempt to the next: its signature of a
	// notification, or which parts of a text message were sent; nil: nothing. It is persisted
	// with the attempts.
	Kept []byte

	History History
	Lease
}

// Lease is a message of a backlog that is leased to the consumer.
type Lease struct {
	Shard      *Shard
	Queue      *queues.Queue
	Queued     queue.Lease
	generation uint64 // of the shard's catalog at the time of the lease; see Current
}

// SetConsumer sets the consumer of the backlogs of a service, "sns" or "lambda", and notifies it
// of those with due messages.
func (b *Backlogs) SetConsumer(service string, c Consumer) {
	b.consumersMu.Lock()
	consumers := map[string]Consumer{}
	if old := b.consumers.Load(); old != nil {
		maps.Copy(consumers, *old)
	}
	consumers[service] = c
	b.consumers.Store(&consumers)
	b.consumersMu.Unlock()
	for _, sh := range b.Shards {
		sh.RunLazy(func() {
			for _, qs := range queues.InOrder(maps.Values(sh.Backlogs)) {
				sh.AfterCommit(qs)
			}
			sh.Arm()
		})
	}
}

// ready notifies the consumer of a backlog, if there is one, that a message is due.
func (b *Backlogs) ready(qs *queues.Queue) {
	all := b.consumers.Load()
	if all == nil {
		return
	}
	if consumer := (*all)[qs.ARN.Service]; consumer != nil && qs.Shard.Available(qs, qs.Shard.Now()) {
		qs.Consumption.Notified = true
		consumer.Ready(qs.ARN)
	}
}

// ofFIFOTopic reports that a subscription is of a FIFO topic.
func ofFIFOTopic(sub arn.ARN) bool {
	t, _, ok := sub.SplitSubscription()
	return ok && t.FIFO()
}

// BacklogOf finds the backlog of a subscription; nil: it never had a message.
func (sh *Shard) BacklogOf(sub *topic.Subscription) *queues.Queue {
	return sh.Backlogs[layout.Incarnation(sub.Incarnation)]
}

// OpenBacklog finds or makes the backlog of a subscription.
func (sh *Shard) OpenBacklog(sub *topic.Subscription) *queues.Queue {
	inc := layout.Incarnation(sub.Incarnation)
	qs, ok := sh.Backlogs[inc]
	if !ok {
		qs = sh.AddBacklog(sub.ARN, inc, ofFIFOTopic(sub.ARN))
		qs.Topic, qs.Consumption.Paused = sub.Topic(), sub.Paused()
	}
	return qs
}

// DropBacklog removes the backlog of a deleted subscription.
func (sh *Shard) DropBacklog(inc layout.Incarnation) {
	if qs, ok := sh.Backlogs[inc]; ok {
		sh.Drop(qs)
		delete(sh.Backlogs, inc)
	}
}

// Conclude runs a command on the backlog of a lease, unless that was deleted. It is durable on
// return, unless it is journal.Lazy.
func (l *Lease) Conclude(when journal.Durability, f func(sh *Shard, qs *queues.Queue, now int64)) {
	c, _ := l.Shard.Run(when, func(*kernel.Tx) error {
		if !l.Queue.Ended() {
			f(l.Shard, l.Queue, l.Shard.Now())
			l.Shard.Touch(l.Queue)
		}
		return nil
	})
	if when != journal.Lazy {
		c.Wait()
	}
}

// Current reports that the subscription of a delivery has not been deleted since the lease.
func (b *Backlogs) Current(d *Delivery) (current bool) {
	if d.Shard.Generation.Load() == d.generation {
		return true // nothing has been deleted; this spares waiting for the lock
	}
	d.Shard.View(func() { current = !d.Queue.Ended() })
	return current
}

// Delivered acknowledges a delivery that succeeded.
func (b *Backlogs) Delivered(d *Delivery, a Attempt) {
	b.end(d, Ending{Attempt: a, State: DeliveryDelivered})
}

// Drop removes a delivery that failed for good and that no dead-letter queue takes, or can be given.
func (b *Backlogs) Drop(d *Delivery, a Attempt, reason string) {
	b.end(d, Ending{Attempt: a, State: DeliveryDropped, Reason: reason})
}

func (b *Backlogs) end(d *Delivery, e Ending) {
	d.Conclude(journal.Lazy, func(sh *Shard, qs *queues.Queue, _ int64) {
		sh.AckSource(qs, d.Queued)
		if r := sh.recipients[d.Subscription.ARN]; r != nil && e.State == DeliveryDropped {
			made := d.History.Total
			if e.Attempt.Outcome != "" {
				made++
			}
			r.Failed(d, made, e.Reason)
		}
	})
	b.Finish(d, e)
}

// Retry records a failed attempt, if a is one, and requeues the message until due. If the
// delivery has a cause, that is durable on return.
func (b *Backlogs) Retry(d *Delivery, a Attempt, due time.Time) {
	if a.Outcome != "" {
		d.History.add(a)
	}
	d.History.Kept, d.History.cause = d.Kept, d.Cause
	d.Conclude(journal.EagerIf(!d.Cause.IsZero()), func(sh *Shard, qs *queues.Queue, now int64) {
		sh.Batch.Set(qs.Machine.Keys().History(d.Queued.Sequence), d.History.Encode())
		// It fails only if the subscription was deleted: the lease is ours.
		_, _ = sh.Do(qs, now, queue.Return{Lease: d.Queued, Due: sh.At(due), History: true})
	})
}

// Release releases the lease of a delivery that was not attempted; it is due at once. One that
// was never attempted keeps its place before messages published later.
func (b *Backlogs) Release(d *Delivery) {
	d.Conclude(journal.Lazy, func(sh *Shard, qs *queues.Queue, now int64) {
		due := now
		if d.Attempt == 1 {
			due = min(d.Message.Sent, now)
		}
		_, _ = sh.Do(qs, now, queue.Return{Lease: d.Queued, Due: due, Uncounted: true}) // as above
	})
}

// Finish adds a delivery that has ended to the list that operators see.
func (b *Backlogs) Finish(d *Delivery, e Ending) {
	if e.Attempt.Outcome != "" {
		d.History.add(e.Attempt)
	}
	now := b.Clock.Now().UnixMilli()
	f := Finished{
		id: d.Message.ID, state: e.State, published: d.Message.Sent, at: now, total: d.History.Total, attempts: d.History.attempts(),
		reason: e.Reason,
	}
	b.Finished.Add(d.Subscription.ARN, &f)
}

// Transfer moves a delivery into a queue as message m, which the caller has made and sealed. It
// is durable on return, and the delivery ends with e. After a refusal it
// is still leased: QueueDoesNotExist and AccessDenied are permanent, Unavailable and Throttled
// temporary.
func (b *Backlogs) Transfer(ctx context.Context, d *Delivery, dest arn.ARN, m *message.Message, e Ending) error {
	if err := b.encryptFor(dest, d, m); err != nil {
		return err
	}
	moved, err := b.MoveOut(ctx, &d.Lease, m, b.incoming(d, dest, m, e.State))
	if moved {
		b.Finish(d, e)
	}
	return err
}

// encryptFor encrypts the message of a delivery for a queue, if that encrypts. Errors: KMS's.
func (b *Backlogs) encryptFor(dest arn.ARN, d *Delivery, m *message.Message) error {
	topic, _, _ := d.Subscription.ARN.SplitSubscription()
	return b.EncryptFor(dest, authorize.SNS(topic.Region), topic, m)
}

// MoveOut moves a leased message of a backlog, as m, to the destination of in; it is durable on
// return. moved is false, without an error, if the backlog was deleted meanwhile. Errors: those
// of transfer; ctx's, if that has ended before the move.
func (b *Backlogs) MoveOut(ctx context.Context, l *Lease, m *message.Message, in transfer.Incoming) (moved bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	g, err := b.Move(transfer.Outgoing{Shard: l.Shard.Shard, Queue: l.Queue, Lease: l.Queued}, in)
	g.Wait()
	switch {
	case errors.Is(err, transfer.ErrNotLeased):
		return false, nil
	case err != nil:
		return false, err
	}
	b.SinkOf(in.To).Arrived(in.To, m)
	return true, nil
}

// ErrTooLong refuses a message that exceeds the maximum message size of the queue, which is its
// field, in bytes.
var ErrTooLong = fault.NewRule(fault.InvalidParameter, "backlog: the message is too long for the queue")

// ForStandard removes from a topic's message what a standard queue does not get: the
// deduplication ID and, as with AWS, the group of a FIFO topic.
func ForStandard(m *message.Message, topic arn.ARN) {
	m.Dedup = ""
	if topic.FIFO() {
		m.Group = ""
	}
}

// incoming is the entry of m into the queue dest, by which delivery d ends in a state. It removes
// from m what dest does not get.
func (b *Backlogs) incoming(d *Delivery, dest arn.ARN, m *message.Message, state DeliveryState) transfer.Incoming {
	in := transfer.Incoming{To: dest, Fresh: m, Enter: b.newArrival(d, dest, m, state)}
	switch {
	case state == DeliveryDeadLetter:
		in.Fresh = nil // no dead letter is lost as a duplicate
		if !dest.FIFO() {
			m.Dedup = "" // it keeps its group, so that it can be redriven into it
		}
	case !dest.FIFO():
		topic, _, _ := d.Subscription.ARN.SplitSubscription()
		ForStandard(m, topic)
	}
	return in
}

// newArrival makes m, the message of delivery d, an arrival at the queue dest, if the queue's
// policy admits the topic.
func (b *Backlogs) newArrival(d *Delivery, dest arn.ARN, m *message.Message, state DeliveryState) transfer.EnterFunc {
	topic, _, _ := d.Subscription.ARN.SplitSubscription()
	return func(now int64, cfg queue.Config) (queue.Arrival, error) {
		// The caller holds the destination's lock, and has just found the queue.
		qs, _ := b.ShardOf(dest).Queue(dest)
		if err := qs.Admits(topic, now); err != nil {
			return queue.Arrival{}, err
		}
		if err := b.CheckEncrypted(qs, m); err != nil {
			return queue.Arrival{}, err
		}
		if !cfg.TakesNotification(m.Size(), d.Message.Size()) {
			return queue.Arrival{}, ErrTooLong.With(cfg.MaxMessageSize)
		}
		m.Sent = now
		if state == DeliveryDeadLetter {
			m.Origin = d.origin()
		}
		return transfer.ArrivalOf(m, now, cfg), nil
	}
}

// origin is the record of the message in its backlog, which its dead letter carries, with the
// cause and the number of attempts.
func (d *Delivery) origin() []byte {
	m := *d.Message
	m.Source, m.Receives = d.Cause.Reason, uint32(d.History.Total)
	if d.Cause.Attempt > 0 {
		m.Receives = uint32(d.Cause.Attempt)
	}
	if len(d.History.First) > 0 {
		m.FirstReceived = d.History.First[0].At.UnixMilli()
	}
	return m.AppendRecord(nil)
}

// WithSubscription is WithCatalog for the shard of a subscription.
func (b *Backlogs) WithSubscription(ctx context.Context, sub arn.ARN, f func(sh *Shard) error) error {
	return b.WithCatalog(ctx, topicOf(sub), f)
}

// ReadSubscription is ReadCatalog for the shard of a subscription.
func (b *Backlogs) ReadSubscription(ctx context.Context, sub arn.ARN, f func(sh *Shard) error) error {
	return b.ReadCatalog(ctx, topicOf(sub), f)
}

// topicOf is the topic of a subscription, whose shard it is in; of any other ARN, that itself.
func topicOf(sub arn.ARN) arn.ARN {
	if t, _, ok := sub.SplitSubscription(); ok {
		return t
	}
	return sub
}

// Backlogs is the module.
type Backlogs struct {
	*transfer.Transfers
	kernel.Parts[*Shard]
	consumers   atomic.Pointer[map[string]Consumer] // by service
	consumersMu sync.Mutex                          // guards the replacement of consumers
	Finished    *finishedCache
}

// Shard is the module's part in a shard.
type Shard struct {
	*transfer.Shard
	module *Backlogs
	Topics *topic.State // whose subscriptions have backlogs

	recipients map[arn.ARN]*Recipient
}

// Consumer takes the messages of backlogs.
type Consumer interface {
	// Ready notifies the consumer that a message of the backlog of a subscription or a
	// function is due. It is called under a shard's lock and must not block; it is not
	// called again for the same backlog until the consumer has leased from it.
	Ready(of arn.ARN)
}

// New adds the module to the shards, above that of transfers. history is how long
// finished deliveries stay visible; limits are those of every topic.
func New(below *transfer.Transfers, history time.Duration, limits topic.Limits) *Backlogs {
	b := &Backlogs{Transfers: below, Finished: newFinishedCache(history)}
	for id, sh := range below.Shards {
		s := &Shard{Shard: sh, module: b, Topics: topic.New(uint16(id), limits), recipients: map[arn.ARN]*Recipient{}}
		b.Shards[id] = s
		sh.Add(lifecycle{sh: s})
	}
	below.Hooks.Ready = b.ready
	below.Sinks["sns"] = sink{b}
	below.TakesOthers = b.takesDeadLetters
	return b
}

// takesDeadLetters reports whether a queue is a subscription's dead-letter queue. It scans all
// subscriptions, which is fast enough for move tasks, as people start them.
func (b *Backlogs) takesDeadLetters(a arn.ARN) (found bool) {
	for _, sh := range b.Shards {
		sh.View(func() {
			for sub := range sh.Topics.AllDeliverable() {
				if found = sub.DeadLetters() == a; found {
					break
				}
			}
		})
		if found {
			return true
		}
	}
	return false
}

// sink moves messages to the backlogs of subscriptions.
type sink struct{ b *Backlogs }

func (s sink) Home(dest arn.ARN) *transfer.Shard {
	return s.b.ShardOf(topicOf(dest)).Shard
}

func (s sink) Open(dest arn.ARN) (*queues.Queue, error) {
	sh := s.b.ShardOf(topicOf(dest))
	sub, ok := sh.Topics.Subscription(dest)
	if !ok {
		return nil, topic.ErrNoSubscription
	}
	return sh.OpenBacklog(sub), nil
}

func (sink) Arrived(arn.ARN, *message.Message) {}

// lifecycle is how the kernel runs a Shard of this package.
type lifecycle struct {
	kernel.NopLifecycle
	sh *Shard
}

func (l lifecycle) Resume() {
	sh := l.sh
	for _, qs := range queues.InOrder(maps.Values(sh.Backlogs)) {
		// It is not known whether these attempts reached their endpoints, so they are
		// repeated.
		for _, l := range qs.Machine.Leases() {
			_, _ = sh.Do(qs, sh.Now(), queue.Return{Lease: l, Due: sh.Now(), Uncounted: true})
			sh.AppendIfLarge()
		}
		if !qs.Machine.Empty() {
			sh.Touch(qs)
			sh.AppendIfLarge()
		}
	}
}
