package shard

import (
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/filter"
)

// A publish to queues whose shards share this one's store need not go through
// the backlogs: the commit that accepts the publish delivers it, too. That is
// the short way of what a backlog and a transfer do in three commits, and is
// taken only where these would succeed at once; anything else (a queue that is
// gone, too small or at fault, a backlog that holds earlier messages, a message
// that cannot be rendered) goes the long way, which knows what to do about it.

// Renderer makes the message that a subscribed queue gets of a notification,
// with an id of its own, sealed.
type Renderer func(notification *queue.Message) (*queue.Message, error)

// plan is where a publication goes.
type plan struct {
	subs   []*topic.Subscription
	queues []arn.ARN // of subs, by index; zero: not a queue
	shards []*shard  // of the queues and of the topic, in the order of their ids
}

// plan finds the subscriptions of a publication, unless they are too many for
// one commit: then fits is false. They may be used while the generation of the
// shard's catalog is the same.
func (sh *shard) plan(f *fanout, m *filter.Message) (p plan, fits bool) {
	each := f.size()
	p.shards = append(p.shards, sh)
	for sub := range sh.topics.Match(f.topic, "", m, nil) {
		if len(p.subs) == fanoutStep || len(p.subs)*each > fanoutBytes {
			return p, false
		}
		var q arn.ARN
		if sub.Protocol == topic.SQS {
			q, _ = arn.Parse(sub.Endpoint) // checked when it was subscribed
			if to := sh.engine.shardOf(q); !slices.Contains(p.shards, to) {
				p.shards = append(p.shards, to)
			}
		}
		p.subs, p.queues = append(p.subs, sub), append(p.queues, q)
	}
	slices.SortFunc(p.shards, func(a, b *shard) int { return int(a.id) - int(b.id) })
	return p, true
}

// publishAtOnce publishes in one commit if it can; ok is false if it did
// nothing. It is called with the lock of the topic's shard held, and returns so.
func (sh *shard) publishAtOnce(f *fanout) (g *group, ok bool) {
	p, ok := sh.plan(f, f.message())
	if !ok {
		return nil, false
	}
	if e := sh.engine; e.options.Render == nil || e.options.TwoStep || !p.direct() {
		now := sh.now()
		for _, sub := range p.subs {
			sh.spreadTo(f, sub, now)
		}
		return sh.commit(true), true
	}
	return sh.publishDirect(f, p)
}

// direct reports that a queue is among the subscribers.
func (p *plan) direct() bool {
	return slices.ContainsFunc(p.queues, func(q arn.ARN) bool { return !q.IsZero() })
}

func (sh *shard) publishDirect(f *fanout, p plan) (g *group, ok bool) {
	// The other locks come in the order of the shards' ids, this one among them.
	generation := sh.generation
	sh.mu.Unlock()
	for _, s := range p.shards {
		s.mu.Lock()
	}
	defer func() {
		for _, s := range p.shards {
			if s != sh {
				s.mu.Unlock()
			}
		}
	}()
	if generation != sh.generation {
		return nil, false
	}
	now := int64(0)
	for _, s := range p.shards {
		now = max(now, s.now())
	}
	for _, s := range p.shards {
		s.meta.now = now // in a queue, what was sent later is not older
	}
	w := directWriter{f: f, now: now}
	var done []finished
	for i, sub := range p.subs {
		if !p.queues[i].IsZero() && w.deliver(sh, sub, p.queues[i]) {
			done = append(done, finished{
				id: f.p.ID, subscription: sub.ARN, state: DeliveryDelivered, published: f.sent, at: now,
				first: Attempt{At: time.UnixMilli(now).UTC(), Outcome: "success"}, total: 1,
			})
			continue
		}
		sh.spreadTo(f, sub, now)
	}
	g = commitAll(true, p.shards)
	sh.engine.finished.addAll(done)
	return g, true
}

// directWriter renders one publication for queues. Subscriptions with raw
// delivery get the same record but for its id.
type directWriter struct {
	written int // bytes of records
	f       *fanout
	now     int64
	raw     []byte // the record, once made
	size    int    // of the raw message, as MaximumMessageSize counts
	record  []byte
}

// deliver puts the publication into a subscribed queue; false if that is not
// possible at once.
func (w *directWriter) deliver(from *shard, sub *topic.Subscription, dest arn.ARN) bool {
	e := from.engine
	if qs := from.backlogOf(sub); qs != nil && !qs.machine.Empty() {
		return false
	}
	if w.written > fanoutBytes { // rendering made so much of it that one commit might not take the rest
		return false
	}
	to := e.shardOf(dest)
	qs, ok := to.queues[dest]
	if !ok || e.injected(dest) != nil {
		return false
	}
	n := w.f.notification(sub)
	var record []byte
	var size int
	if w.raw != nil && n.Notice.Raw && w.f.shared(sub) {
		record, size = w.raw, w.size
		queue.SetRecordID(record, e.options.NewID())
	} else {
		m, err := e.options.Render(n)
		if err != nil {
			return false
		}
		m.Sent = w.now
		size = m.Size()
		w.record = m.AppendRecord(w.record[:0])
		record = w.record
		if n.Notice.Raw && w.f.shared(sub) {
			w.raw, w.size = slices.Clone(record), size
		}
	}
	cfg := qs.machine.Config()
	if size > cfg.MaxMessageSize {
		return false
	}
	w.written += len(record)
	to.accept(qs, w.now, queue.Arrival{
		Record: record, Sent: w.now, Due: w.now + cfg.Delay.Milliseconds(), Lane: queue.GroupLane(w.f.p.Group),
	})
	return true
}

// commitAll is commit for a command that changed several shards at once.
func commitAll(sync bool, shards []*shard) *group {
	parts := make([]part, 0, len(shards))
	changed := make([]*shard, 0, len(shards))
	for _, sh := range shards {
		if sh.batch.Len() > 0 || len(sh.dirty) > 0 {
			parts, changed = append(parts, sh.seal()), append(changed, sh)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	g := changed[0].engine.log.append(sync, parts...)
	for _, sh := range changed {
		sh.appended(g)
	}
	for _, sh := range changed {
		sh.afterCommit()
	}
	return g
}
