package shard

import (
	"math"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// A publish to queues whose shards share this one's store need not go through
// the backlogs: the commit that accepts the publish delivers it, too. That is
// the short way of what a backlog and a transfer do in three commits, and is
// taken only where these would succeed at once; anything else (a queue that is
// gone, too small or at fault, a backlog that holds earlier messages, a message
// that cannot be rendered) goes the long way, which knows what to do about it.

// Renderer makes the message that a subscribed queue gets of a notification,
// with an id of its own, sealed or Unsigned: it is called under locks, and must
// not wait for a signature.
type Renderer func(notification *message.Message) (*message.Message, error)

// plan is where publications go.
type plan struct {
	deliveries []planned
	shards     []*shard // of the queues and of the topic, in the order of their ids
	direct     bool     // a queue is among the subscribers
}

// planned is one publication for one subscription.
type planned struct {
	f     *fanout
	sub   *topic.Subscription
	queue arn.ARN // zero: not a queue
	to    *shard  // of the queue
}

// plan finds the subscriptions of publications, which are of one topic, unless
// they are too many for one commit: then fits is false. They may be used while
// the generation of the shard's catalog is the same.
func (sh *shard) plan(fs []fanout) (p plan, fits bool) {
	p.shards = append(p.shards, sh)
	p.deliveries = make([]planned, 0, sh.planned)
	defer func() { sh.planned = min(len(p.deliveries), fanoutStep) }()
	seen := uint64(1) << sh.id // the shards among p.shards
	size := 0
	for i := range fs {
		f := &fs[i]
		each := f.size()
		f.reached = topic.Reached{}
		for sub := range sh.topics.Match(f.topic, "", f.message(), nil) {
			if len(p.deliveries) == fanoutStep || size > fanoutBytes {
				return p, false
			}
			if f.topic.FIFO() && !sub.Wants(math.MaxUint64) { // the sequence to come is later than any
				continue
			}
			size += each
			f.reached.Add(sub)
			d := planned{f: f, sub: sub}
			if sub.Protocol == topic.SQS {
				d.queue, _ = arn.Parse(sub.Endpoint) // checked when it was subscribed
				p.direct = true
				d.to = sh.engine.shardOf(d.queue)
				if bit := uint64(1) << d.to.id; seen&bit == 0 {
					seen |= bit
					p.shards = append(p.shards, d.to)
				}
			}
			p.deliveries = append(p.deliveries, d)
		}
	}
	slices.SortFunc(p.shards, func(a, b *shard) int { return int(a.id) - int(b.id) })
	return p, true
}

// publishAtOnce publishes in one commit if it can; ok is false if it did
// nothing. It is called with the lock of the topic's shard held, and returns so.
func (sh *shard) publishAtOnce(fs []fanout) (g *group, ok bool) {
	if len(fs) > 0 && sh.behind(fs[0].topic) {
		return nil, false
	}
	p, ok := sh.plan(fs)
	if !ok {
		return nil, false
	}
	if e := sh.engine; e.options.Render == nil || e.options.TwoStep || !p.direct {
		sh.admit(fs)
		now := sh.now()
		for _, d := range p.deliveries {
			if !d.f.result.Duplicate {
				sh.spreadTo(d.f, d.sub, now)
			}
		}
		return sh.commit(true), true
	}
	return sh.publishDirect(fs, p)
}

func (sh *shard) publishDirect(fs []fanout, p plan) (g *group, ok bool) {
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
	if generation != sh.generation || sh.behind(fs[0].topic) {
		return nil, false
	}
	now := int64(0)
	for _, s := range p.shards {
		now = max(now, s.now())
	}
	for _, s := range p.shards {
		s.meta.now = now // in a queue, what was sent later is not older
	}
	sh.admit(fs)
	w := directWriter{now: now}
	done := sh.done[:0]
	for i := range p.deliveries {
		d := &p.deliveries[i]
		if d.f.result.Duplicate {
			continue
		}
		if w.f != d.f {
			w.f, w.raw = d.f, rawRecord{}
			d.f.delivered, d.f.direct = 0, nil
		}
		if d.to != nil && w.deliver(sh, d) {
			done = append(done, finished{
				id: d.f.p.ID, subscription: d.sub.ARN, state: DeliveryDelivered, published: d.f.sent, at: now,
				first: Attempt{At: time.UnixMilli(now).UTC(), Outcome: "success"}, total: 1,
			})
			d.f.delivered++
			if d.f.feedback.Success {
				d.f.direct = append(d.f.direct, DirectDelivery{Subscription: *d.sub, Body: d.f.body(d.sub), MessageID: w.id})
			}
			continue
		}
		sh.spreadTo(d.f, d.sub, now)
	}
	g = commitAll(true, p.shards)
	sh.engine.finished.addAll(done)
	clear(done)
	sh.done = done
	return g, true
}

// directWriter renders publications for queues, one after the other.
// Subscriptions with raw delivery get the same record but for its id.
type directWriter struct {
	written int        // bytes of records, of all publications
	id      message.ID // of the last message
	f       *fanout
	now     int64
	raw     rawRecord // of f
	record  []byte
}

// rawRecord is a record that several queues get, all FIFO queues or none.
type rawRecord struct {
	record []byte // nil: not made yet
	size   int    // of the message, as MaximumMessageSize counts
	fifo   bool
}

// deliver puts the publication into a subscribed queue; false if that is not
// possible at once.
func (w *directWriter) deliver(from *shard, d *planned) bool {
	e, sub, dest, to := from.engine, d.sub, d.queue, d.to
	if sub.PausedAt != 0 {
		return false
	}
	if qs := from.backlogOf(sub); qs != nil && !qs.machine.Empty() {
		return false
	}
	if w.written > fanoutBytes { // rendering made so much of it that one commit might not take the rest
		return false
	}
	qs, ok := to.queues[dest]
	if !ok || e.injected(dest) != nil || qs.admits(w.f.topic, w.now) != nil {
		return false
	}
	fifo := dest.FIFO()
	known := w.raw.record != nil && w.raw.fifo == fifo && sub.Raw && w.f.shared(sub)
	n := &w.f.note // but for what differs from subscription to subscription
	if !known {
		n = w.f.notification(sub)
	}
	if fifo && !to.surelyNew(qs, w.now, n) {
		return false
	}
	var record []byte
	var size int
	if known {
		record, size = w.raw.record, w.raw.size
		w.id = e.options.NewID()
		message.SetRecordID(record, w.id)
	} else {
		m, err := e.options.Render(n)
		if err != nil {
			return false
		}
		m.Sent, w.id = w.now, m.ID
		if !fifo {
			m.Dedup = ""
		}
		size = m.Size()
		w.record = m.AppendRecord(w.record[:0])
		record = w.record
		if sub.Raw && w.f.shared(sub) {
			w.raw = rawRecord{record: record, size: size, fifo: fifo}
			w.record = nil // it is kept
		}
	}
	cfg := qs.machine.Config()
	if size > cfg.MaxMessageSize {
		return false
	}
	w.written += len(record)
	e.event(QueueEvent{Queue: dest, Kind: MessagesSent, At: w.now, Messages: 1, Bytes: size})
	sequence := to.accept(qs, w.now, queue.Arrival{
		Record: record, Sent: w.now, Due: w.now + cfg.Delay.Milliseconds(), Lane: layout.GroupLane(w.f.p.Group),
	})
	to.remember(qs, w.now, n, SendResult{ID: w.id, Sequence: sequence})
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
