package shard

import (
	"cmp"
	"math"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
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
	publications int // how many it is for
	deliveries   []planned
	shards       []*coreShard // of the queues and of the topic, in the order of their ids
	direct       bool         // a queue is among the subscribers
	seen         uint64       // the ids of shards, by bits
	size         int          // bytes, about
}

// planned is one publication for one subscription.
type planned struct {
	f   *fanout
	n   int // which publication it is
	sub *topic.Subscription
	target
	made bool // at once
}

// target is where a subscription's queue is.
type target struct {
	to    *queueShard // of the queue; nil: the subscriber is no queue
	queue *queueState // nil: not known, or there is none; under to's lock
}

// target finds where a subscription's queue is. It remembers that, since nearly
// all publications go where others went.
func (sh *topicShard) target(sub *topic.Subscription) target {
	if sh.targetsOf != sh.generation.Load() {
		clear(sh.targets)
		sh.targetsOf = sh.generation.Load()
	}
	t, ok := sh.targets[sub]
	if !ok && sub.Protocol == topic.SQS {
		t.to = sh.engine.queueEngine.shardOf(queueOf(sub))
		sh.targets[sub] = t
	}
	return t
}

// queueOf is the name of a subscribed queue.
func queueOf(sub *topic.Subscription) arn.ARN {
	a, _ := arn.Parse(sub.Endpoint) // checked when it was subscribed
	return a
}

// plan finds the subscriptions of as many publications, which are of one topic,
// as fit into one commit. If the first alone is for too many, these get it later
// where they may, and else the plan is for none. It may be used while the
// generation of the shard's catalog is the same.
func (sh *topicShard) plan(fs []fanout) plan {
	p := plan{shards: []*coreShard{sh.core()}, deliveries: make([]planned, 0, min(sh.planned*len(fs), fanoutStep))}
	p.seen = 1 << sh.id
	patient := !fs[0].topic.FIFO() // some may get it later than others
	room := laterMost - sh.spreading[fs[0].topic]
	var slow []*topic.Subscription
	for i := range fs {
		f := &fs[i]
		each, before, slowOnes := f.p.size(), len(p.deliveries), 0
		f.reached, f.later, slow = topic.Reached{}, false, slow[:0]
		for sub := range sh.topics.Match(f.topic, "", f.message(), nil) {
			if f.later = p.full() || slowOnes == passedMost; f.later {
				break
			}
			if f.topic.FIFO() && !sub.Wants(math.MaxUint64) { // the sequence to come is later than any
				continue
			}
			if !patient || !sh.slow(sub) {
				p.add(sh, f, i, sub, each)
			} else if slowOnes++; slowOnes <= slowMost {
				slow = append(slow, sub)
			}
		}
		f.later = f.later || slowOnes > slowMost
		for n := 0; n < len(slow) && !f.later; n++ {
			if f.later = p.full(); !f.later {
				p.add(sh, f, i, slow[n], each)
			}
		}
		if f.later && (!patient || i > 0 && (p.full() || room <= 0)) {
			f.later, p.deliveries = false, p.deliveries[:before]
			if i == 0 {
				sh.planned = fanoutStep
			}
			break
		}
		p.publications++
		sh.planned = len(p.deliveries) - before
		if f.later { // it is kept in the same commit
			room--
			p.size += max(each, f.published()) // with all bodies
			sh.planned++
		}
	}
	p.order()
	return p
}

// made are the deliveries that were made at once.
func (p *plan) made(yield func(Direct) bool) {
	for i := range p.deliveries {
		d := &p.deliveries[i]
		if d.made && !yield(Direct{Subscription: d.sub, Message: d.f.p.ID, Published: d.f.sent}) {
			return
		}
	}
}

// full reports that there is no room for another delivery.
func (p *plan) full() bool { return len(p.deliveries) == fanoutStep || p.size > fanoutBytes }

// add adds a delivery of a publication, the n-th.
func (p *plan) add(sh *topicShard, f *fanout, n int, sub *topic.Subscription, size int) {
	p.size += size
	f.reached.Add(sub)
	d := planned{f: f, n: n, sub: sub, target: sh.target(sub)}
	if d.to != nil {
		p.direct = true
		if bit := uint64(1) << d.to.id; p.seen&bit == 0 {
			p.seen |= bit
			p.shards = append(p.shards, d.to.core())
		}
	}
	p.deliveries = append(p.deliveries, d)
}

// order puts the shards into the order of locking, and what is for one queue
// together, in the order of publishing.
func (p *plan) order() {
	slices.SortFunc(p.shards, func(a, b *coreShard) int { return int(a.id) - int(b.id) })
	if p.publications > 1 {
		slices.SortFunc(p.deliveries, func(a, b planned) int {
			return cmp.Or(cmp.Compare(a.shard(), b.shard()), cmp.Compare(a.sub.Incarnation, b.sub.Incarnation), a.n-b.n)
		})
	}
}

// shard is the number of the shard that gets the message at once, or less than
// any.
func (d *planned) shard() int {
	if d.to == nil {
		return -1
	}
	return int(d.to.id)
}

// publishAtOnce publishes the first n of some publications, which are of one
// topic, in one commit; n is 0, and nothing was done, if that cannot be. It is
// called with the lock of the topic's shard held, and returns so.
func (sh *topicShard) publishAtOnce(tx *Tx, fs []fanout) (g *journal.Commit, n int) {
	if sh.behind(fs[0].topic) {
		return nil, 0
	}
	p := sh.plan(fs)
	if p.publications == 0 {
		return nil, 0
	}
	fs = fs[:p.publications]
	if e := sh.engine; e.options.Render == nil || e.twoStep || !p.direct {
		sh.admit(fs)
		now := sh.now()
		for _, d := range p.deliveries {
			if !d.f.result.Duplicate {
				sh.spreadTo(d.f, d.sub, now)
			}
		}
		sh.deferFanout(fs, p)
		return tx.commit(), p.publications
	}
	generation := sh.generation.Load()
	alone := tx.shards
	tx.widen(p.shards)
	g, n = sh.publishDirect(tx, fs, p, generation)
	tx.narrow(alone)
	return g, n
}

// publishDirect publishes as planned, unless the catalog is of another generation. It
// has the locks of all the plan's shards.
func (sh *topicShard) publishDirect(tx *Tx, fs []fanout, p plan, generation uint64) (g *journal.Commit, n int) {
	if generation != sh.generation.Load() || sh.behind(fs[0].topic) {
		return nil, 0
	}
	now := sh.now()
	for _, s := range p.shards {
		now = max(now, s.meta.Now)
	}
	for _, s := range p.shards {
		s.meta.Now = now // in a queue, what was sent later is not older
	}
	sh.admit(fs)
	w := directWriter{from: sh, now: now}
	for i := range p.deliveries {
		d := &p.deliveries[i]
		if d.f.result.Duplicate {
			continue
		}
		if d.made = d.to != nil && w.deliver(d); !d.made {
			sh.spreadTo(d.f, d.sub, now)
			continue
		}
		d.f.delivered++
		if d.f.feedback.Success {
			d.f.direct = append(d.f.direct, DirectDelivery{Subscription: *d.sub, Body: d.f.body(d.sub), MessageID: w.id})
		}
	}
	w.emit()
	sh.deferFanout(fs, p)
	g = tx.commit()
	sh.engine.finished.addDirect(p.made, now)
	return g, len(fs)
}

// directWriter puts publications into queues, one after the other.
type directWriter struct {
	from      *topicShard // of the topic
	now       int64
	written   int                 // bytes of records
	id        message.ID          // of the last message
	sub       *topic.Subscription // the last one
	queue     *queueState         // its queue; nil: that takes nothing at once
	record    []byte
	into      *queueState // the queue of the messages whose sizes these are
	intoShard *queueShard
	sizes     []int
}

// rawRecord is the record of a publication that several queues get, all FIFO
// queues or none, the same but for its id.
type rawRecord struct {
	record []byte // nil: not made yet
	size   int    // of the message, as MaximumMessageSize counts
	fifo   bool
}

// deliver puts a publication into a subscribed queue; false if that is not
// possible at once. Then the subscription gets none of those that follow at
// once, either.
func (w *directWriter) deliver(d *planned) bool {
	if w.sub != d.sub {
		w.sub, w.queue = d.sub, w.open(d)
	}
	if w.queue == nil || !w.put(d) {
		w.queue = nil
		return false
	}
	return true
}

// open finds the queue of a subscription if a publication can go there at once.
func (w *directWriter) open(d *planned) *queueState {
	if d.sub.PausedAt != 0 {
		return nil
	}
	if qs := w.from.backlogOf(d.sub); qs != nil && !qs.machine.Empty() {
		return nil
	}
	qs := d.queue
	if qs == nil || qs.gone {
		qs = d.to.queues[queueOf(d.sub)]
		w.from.targets[d.sub] = target{to: d.to, queue: qs}
		if qs == nil {
			return nil
		}
	}
	if w.from.engine.injected(qs.arn) != nil || qs.admits(d.f.topic, w.now) != nil {
		return nil
	}
	return qs
}

// put renders a publication and puts it into the queue that is open.
func (w *directWriter) put(d *planned) bool {
	if w.written > fanoutBytes { // rendering made so much of it that one commit might not take the rest
		return false
	}
	e, f, sub, qs, raw := w.from.engine, d.f, d.sub, w.queue, &d.f.raw
	fifo := qs.arn.FIFO()
	known := raw.record != nil && raw.fifo == fifo && sub.Raw && f.shared(sub)
	n := &f.note // but for what differs from subscription to subscription
	if !known {
		n = f.notification(sub)
	}
	if fifo && !d.to.surelyNew(qs, w.now, n) {
		return false
	}
	var record []byte
	var size int
	if known {
		record, size = raw.record, raw.size
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
		if sub.Raw && f.shared(sub) {
			*raw = rawRecord{record: record, size: size, fifo: fifo}
			w.record = nil // it is kept
		}
	}
	cfg := qs.machine.Config()
	if size > cfg.MaxMessageSize {
		return false
	}
	w.written += len(record)
	if w.into != qs {
		w.emit()
		w.into, w.intoShard = qs, d.to
	}
	w.sizes = append(w.sizes, size)
	sequence := d.to.accept(qs, w.now, queue.Arrival{
		Record: record, Sent: w.now, Due: w.now + cfg.Delay.Milliseconds(), Lane: layout.GroupLane(f.p.Group),
	})
	d.to.remember(qs, w.now, n, SendResult{ID: w.id, Sequence: sequence})
	return true
}

// emit makes one event of what was put into a queue.
func (w *directWriter) emit() {
	if len(w.sizes) == 0 {
		return
	}
	w.intoShard.sent(w.into, w.now, w.sizes)
	w.sizes = w.sizes[:0]
}
