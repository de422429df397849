package topics

import (
	"context"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/key"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/topics/coalesce"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/topic"
)

// fanout is a publication that is being added to the backlogs of its subscriptions.
type fanout struct {
	publication.Record
	later            bool              // some subscriptions get it in the background
	alreadyDelivered []byte            // the subscriptions that got it before; see alreadyDeliveredKey
	dated            bool              // rendered for queues with this Sent, which must not change
	result           queues.SendResult // the result for its publisher

	// For the event; not persisted.
	reached   topic.Reached
	delivered int
	immediate []ImmediateDelivery
	feedback  topic.Feedback  // of queues
	event     *Published      // the event, once made
	commit    *journal.Commit // the commit with which it becomes durable; nil: nothing was written

	record []byte    // reused by enqueueFor
	raw    rawRecord // reused by immediateWriter
}

// publisher has the publications of a call of Publish, and their results.
type publisher struct {
	call         call
	publications []publication.Publication

	results []queues.SendResult
	events  []*Published // emitted once the commit is durable
	durable *journal.Commit
	err     error
}

// call is the call of a publisher.
type call = coalesce.Call[*publisher]

// Publish puts messages into the backlog, or immediately into the queue, of each subscription
// whose filter policy matches, in the given order. It returns once that is durable, or, for
// very many subscriptions, once the fan-out is stored durably: it resumes after a crash. A
// duplicate of a message that a FIFO topic has accepted is not fanned out. Errors: NotFound;
// InvalidParameter for a message without a deduplication id if the topic needs one;
// InsufficientStorage; Throttled if the account's storage quota is used up; KMS's for the
// topic's key; ctx's.
func (e *Topics) Publish(ctx context.Context, t arn.ARN, publications ...publication.Publication) ([]queues.SendResult, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.Full() {
		return nil, kernel.ErrFull
	}
	size := 0
	for i := range publications {
		size += publications[i].Size()
	}
	if err := e.Accounts.CheckStorage(t.Account, size); err != nil {
		return nil, err
	}
	sh := e.ShardOf(t)
	if of, ok := sh.lookupTopic(t); ok { // if there is no such topic, the command reports it
		for i := range publications {
			if err := e.inspect(t, of.protection, &publications[i]); err != nil {
				return nil, err
			}
		}
		var err error
		if publications, err = e.encrypt(t, of.key, publications); err != nil {
			return nil, err
		}
	}
	p := publisher{publications: publications}
	p.call = call{Topic: t, Publications: len(publications), Of: &p}
	for i := range publications {
		p.call.Bytes += publications[i].RecordSize()
	}
	sh.publishers.Run(&p.call)
	p.durable.Wait()
	for _, event := range p.events {
		e.options.Published(event)
	}
	for i := range p.results {
		e.audit(t, &publications[i])
	}
	return p.results, p.err
}

// publish runs several calls to the same topic as one command, and returns how many
// subscriptions a publication reaches. For a FIFO topic there is only one call, as an error may
// concern it alone.
func (sh *Shard) publish(calls []*call) (reach int) {
	t := calls[0].Topic
	var fs []fanout
	var dependsOn *journal.Commit // of an answer without a commit of its own
	own, err := sh.Run(journal.Awaited, func(tx *kernel.Tx) (err error) {
		if with := joined(calls); len(with) > 0 {
			tx.Widen(append([]*kernel.Shard{sh.Base()}, with...))
		}
		fs, dependsOn, err = sh.fanOutAll(tx, t, calls)
		if t.FIFO() { // duplicates depend on their originals
			dependsOn = sh.Stream.Last()
		}
		if dependsOn == nil { // the topic's existence, or its absence, must be durable all the same
			dependsOn = sh.LastCatalogCommit
		}
		reach = sh.planned
		if sh.fanningOut[t] >= maxDeferred {
			reach = fanoutStep // the next one has to make steps, and is not coalesced
		}
		return err
	})
	if err != nil {
		own.StartSync() // the answer may not wait for it
	}
	for _, c := range calls {
		p := c.Of
		n := min(len(p.publications), len(fs))
		p.take(fs[:n])
		fs = fs[n:]
		if n < len(p.publications) || n == 0 {
			p.durable.StartSync() // of those before the error, which the answer does not wait for
			p.results, p.err = nil, err
		}
		if p.durable == nil || t.FIFO() || p.err != nil {
			p.durable = dependsOn
		}
	}
	return reach
}

// joined are the own shards of modules that the publications of calls have commands for, in the
// order of their ids.
func joined(calls []*call) (all []*kernel.Shard) {
	for _, c := range calls {
		for i := range c.Of.publications {
			if j := c.Of.publications[i].Joined; j != nil {
				all = append(all, j.Shard)
			}
		}
	}
	slices.SortFunc(all, func(a, b *kernel.Shard) int { return int(a.ID) - int(b.ID) })
	return slices.Compact(all)
}

// take takes over the results of the publisher's publications.
func (p *publisher) take(fs []fanout) {
	p.results = make([]queues.SendResult, len(fs))
	for i := range fs {
		f := &fs[i]
		p.results[i] = f.result
		if f.commit != nil {
			p.durable = f.commit // commits become durable in their order
		}
		if f.event != nil {
			p.events = append(p.events, f.event)
		}
	}
}

// fanOutAll accepts and fans out all publications of calls. With an error, fs has the
// publications that were accepted before it, and the answer with the error depends on a commit.
func (sh *Shard) fanOutAll(tx *kernel.Tx, t arn.ARN, calls []*call) (fs []fanout, dependsOn *journal.Commit, err error) {
	found, ok := sh.Topics.Topic(t)
	if !ok {
		return nil, nil, topic.ErrNoTopic
	}
	if possible, _ := sh.module.Encrypting(); !possible {
		if err := key.Find(t, found.Key()); err != nil {
			return nil, nil, err
		}
	}
	fs = sh.newFanouts(found, t, calls)
	if t.FIFO() {
		for i := range fs {
			if p := &fs[i].P; p.Dedup == "" {
				if !found.ContentDedup() {
					return nil, nil, ErrNoDedup
				}
				p.Dedup = p.Content
			}
		}
	}
	for rest, again := fs, false; len(rest) > 0; {
		sh.applyBackpressure(tx, t)
		if _, ok := sh.Topics.Topic(t); !ok { // deleted while the lock was released
			return fs[:len(fs)-len(rest)], sh.LastCatalogCommit, topic.ErrNoTopic
		}
		generation := sh.Generation.Load()
		c, n := sh.publishInOneCommit(tx, rest)
		if n == 0 && generation != sh.Generation.Load() && !again { // the plan's catalog has changed
			again = true
			continue
		}
		again = false
		done := true
		if n == 0 {
			if c, done, err = sh.publishInSteps(tx, rest[:1]); err != nil {
				return fs[:len(fs)-len(rest)], c, err
			}
			n = 1
		}
		for i := range rest[:n] {
			rest[i].commit, rest[i].event = c, sh.publishedEvent(&rest[i], done && !rest[i].later)
		}
		sh.startFanouts(c)
		if rest = rest[n:]; len(rest) > 0 {
			c.StartSync() // nobody waits for it before the rest is published
		}
	}
	return fs, nil, nil
}

// newFanouts makes fanouts of the publications of calls. They are large, and so are filled in
// place.
func (sh *Shard) newFanouts(to *topic.Topic, t arn.ARN, calls []*call) []fanout {
	count := 0
	for _, c := range calls {
		count += len(c.Of.publications)
	}
	fs, at := make([]fanout, count), 0
	signature, sent, feedback := signatureVersion(to), sh.Now(), to.Feedback(topic.SQS)
	for _, c := range calls {
		for i := range c.Of.publications {
			f := &fs[at]
			at++
			f.Topic, f.Signature, f.Sent, f.Incarnation = t, signature, sent, sh.LatestIncarnation()
			f.P = c.Of.publications[i]
			f.feedback = feedback
		}
	}
	return fs
}

// publishInSteps makes the first step of the only fan-out in fs, and leaves further ones to the
// background. If earlier messages of a FIFO topic are still being fanned out, it leaves all
// steps to the background. Errors: NotFound.
func (sh *Shard) publishInSteps(tx *kernel.Tx, fs []fanout) (c *journal.Commit, done bool, err error) {
	f := &fs[0]
	if _, ok := sh.Topics.Topic(f.Topic); !ok { // deleted while the lock was released
		return sh.LastCatalogCommit, false, topic.ErrNoTopic
	}
	if sh.admit(fs); f.result.Duplicate {
		return nil, true, nil
	}
	f.reached, f.later, f.delivered, f.immediate = topic.Reached{}, false, 0, nil
	more := sh.behind(f.Topic) || sh.enqueueStep(f, fanoutStep, nil)
	if more {
		n := sh.addFanout(f.Topic)
		sh.Batch.Set(fanoutKey(sh.ID, n), f.Encode())
		sh.reached[n] = f.reached
	}
	return tx.Append(), !more, nil
}

// enqueueFor puts the message into the backlog of one subscription and returns the size of its
// record, in bytes.
func (sh *Shard) enqueueFor(f *fanout, sub *topic.Subscription, now int64) int {
	f.record = f.Notification(sub).AppendRecord(f.record[:0])
	lane := layout.MainLane
	if f.Topic.FIFO() {
		lane = layout.GroupLane(f.P.Group)
	}
	sh.Accept(sh.OpenBacklog(sub), now, queue.Arrival{Record: f.record, Sent: f.Sent, Due: now, Lane: lane})
	return len(f.record)
}
