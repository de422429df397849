package topics

import (
	"cmp"
	"crypto/md5" //nolint:gosec // the SQS protocol's checksum, not a protection
	"math"
	"slices"
	"sync"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/multimd5"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/backlog"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/topic"
)

// A publish to queues whose shards share this one's store need not go through the backlogs: the
// commit that accepts the publish also delivers it. This is a fast path for what a backlog and
// a transfer do in three commits, and is taken only if these would succeed now. Everything else
// takes the slow path through the backlog, which handles failures: a deleted queue, a queue for
// which the message is too large or that has an injected fault, a backlog with earlier
// messages, a message that cannot be rendered.

// Renderer renders a notification for a subscribed queue as a message with an id of its own,
// sealed or Unsigned. It is called under locks, and must not wait for a signature. The
// notification's BodyMD5 is set where that is known already.
type Renderer func(notification *message.Message) (*message.Message, error)

// plan has the deliveries of some publications, and the locks that they need.
type plan struct {
	publications int             // how many publications the plan covers
	deliveries   []planned       // publication by publication
	places       []place         // indexes of the deliveries, sorted by queue; nil: they are in that order already
	shards       []*kernel.Shard // of the queues and of the topic, in the order of their ids
	immediate    bool            // a subscriber is a queue
	seen         uint64          // the ids of shards, as a bit set
	size         int             // estimated size of the commit, in bytes

	slow []*topic.Subscription // reused by addMatching
}

// planned is the delivery of one publication to one subscription.
type planned struct {
	f   *fanout
	n   int // which publication it is
	sub *topic.Subscription
	target
	made     bool      // delivered immediately
	rendered *rendered // rendered for the queue before its lock was taken; nil: not rendered
}

// place is a delivery's sort key and index. It is small, since places are sorted while all
// publishers of the shard wait.
type place struct {
	incarnation uint64 // of the subscription
	shard       int16  // of the queue
	at          int16  // in the plan's deliveries
}

func (a place) compare(b place) int {
	switch {
	case a.shard != b.shard:
		return int(a.shard) - int(b.shard)
	case a.incarnation != b.incarnation:
		return cmp.Compare(a.incarnation, b.incarnation)
	}
	return int(a.at) - int(b.at)
}

// target is where a subscription's queue is.
type target struct {
	to    *queues.Shard // of the queue; nil: the subscriber is no queue
	queue *queues.Queue // nil: not known, or there is none; guarded by to's lock
}

// target finds a subscription's queue. The result is cached for the generation of the catalog.
func (sh *Shard) target(sub *topic.Subscription) target {
	if sh.targetsOf != sh.Generation.Load() {
		clear(sh.targets)
		sh.targetsOf = sh.Generation.Load()
	}
	t, ok := sh.targets[sub]
	// An outbound data protection policy is applied to each delivery from the backlog.
	if !ok && sub.Protocol == topic.SQS && !sub.Topic().Protection.Outbound() {
		t.to = sh.module.Queues.ShardOf(queueOf(sub))
		sh.targets[sub] = t
	}
	return t
}

// queueOf is the name of a subscribed queue.
func queueOf(sub *topic.Subscription) arn.ARN {
	a, _ := arn.Parse(sub.Endpoint) // checked when it was subscribed
	return a
}

// newPlan finds the subscriptions of publications of one topic, for as many of these as fit into
// one commit. If the first one alone has too many subscriptions, the rest are deferred if the
// topic allows that; else the plan is empty. It is valid for the current generation of the
// shard's catalog.
func (sh *Shard) newPlan(fs []fanout) plan {
	p := plan{shards: []*kernel.Shard{sh.Base()}, deliveries: make([]planned, 0, min(sh.planned*len(fs), fanoutStep))}
	p.seen = 1 << sh.ID
	deferrable := !fs[0].Topic.FIFO() // there is no order
	free := maxDeferred - sh.fanningOut[fs[0].Topic]
	for i := range fs {
		f, before := &fs[i], len(p.deliveries)
		p.addMatching(sh, f, i)
		if f.later && (!deferrable || i > 0 && (p.full() || free <= 0)) {
			f.later, p.deliveries = false, p.deliveries[:before]
			if i == 0 {
				sh.planned = fanoutStep
			}
			break
		}
		p.publications++
		sh.planned = len(p.deliveries) - before
		if f.later { // the publication is stored in the same commit
			free--
			p.size += max(f.P.RecordSize(), f.P.Size()) // with all bodies
			sh.planned++
		}
	}
	p.order()
	return p
}

// addMatching adds the deliveries of a publication, the n-th, to the subscriptions that match it:
// to the slow ones of a standard topic last, and if they are few. f.later says that others are
// left.
func (p *plan) addMatching(sh *Shard, f *fanout, n int) {
	size, fifo, slow := f.P.RecordSize(), f.Topic.FIFO(), 0
	f.reached, f.later, p.slow = topic.Reached{}, false, p.slow[:0]
	for sub := range sh.Topics.Match(f.Topic, "", f.Message()) {
		if f.later = p.full() || slow == maxPassed; f.later {
			break
		}
		if fifo && !sub.Wants(math.MaxUint64) { // the next sequence is later than any
			continue
		}
		if fifo || !sh.slow(sub) {
			p.add(sh, f, n, sub, size)
		} else if slow++; slow <= maxSlow {
			p.slow = append(p.slow, sub)
		}
	}
	f.later = f.later || slow > maxSlow
	for _, sub := range p.slow {
		if f.later = f.later || p.full(); f.later {
			return
		}
		p.add(sh, f, n, sub, size)
	}
}

// made is a delivery, and whether it was made immediately.
func (p *plan) made(i int) (d backlog.Immediate, made bool) {
	planned := p.nth(i)
	return backlog.Immediate{Subscription: planned.sub, Message: planned.f.P.ID, Published: planned.f.Sent}, planned.made
}

// full reports that the commit has no space for another delivery.
func (p *plan) full() bool { return len(p.deliveries) == fanoutStep || p.size > fanoutBytes }

// add adds a delivery of a publication, the n-th.
func (p *plan) add(sh *Shard, f *fanout, n int, sub *topic.Subscription, size int) {
	p.size += size
	f.reached.Add(sub)
	d := planned{f: f, n: n, sub: sub, target: sh.target(sub)}
	if d.to != nil {
		p.immediate = true
		if bit := uint64(1) << d.to.ID; p.seen&bit == 0 {
			p.seen |= bit
			p.shards = append(p.shards, d.to.Base())
		}
	}
	p.deliveries = append(p.deliveries, d)
}

// order sorts the shards into lock order, and groups the deliveries by queue, in the order of
// publishing.
func (p *plan) order() {
	slices.SortFunc(p.shards, func(a, b *kernel.Shard) int { return int(a.ID) - int(b.ID) })
	if p.publications > 1 {
		p.places = make([]place, len(p.deliveries))
		for i := range p.deliveries {
			d := &p.deliveries[i]
			p.places[i] = place{shard: int16(d.shard()), incarnation: d.sub.Incarnation, at: int16(i)}
		}
		slices.SortFunc(p.places, place.compare)
	}
}

// nth is the i-th delivery in the order of execution.
func (p *plan) nth(i int) *planned {
	if p.places != nil {
		i = int(p.places[i].at)
	}
	return &p.deliveries[i]
}

// shard is the number of the shard of the queue that gets the message immediately; -1: there is
// none.
func (d *planned) shard() int {
	if d.to == nil {
		return -1
	}
	return int(d.to.ID)
}

// publishInOneCommit publishes the first n of some publications of one topic in one commit. If
// that is impossible, n is 0 and nothing was changed. The caller holds the lock of the topic's
// shard, which is released and taken again in between.
func (sh *Shard) publishInOneCommit(tx *kernel.Tx, fs []fanout) (c *journal.Commit, n int) {
	if sh.behind(fs[0].Topic) {
		return nil, 0
	}
	p := sh.newPlan(fs)
	if p.publications == 0 {
		return nil, 0
	}
	fs = fs[:p.publications]
	if e := sh.module; e.options.Render == nil || e.TwoStep || !p.immediate {
		sh.admit(fs)
		now := sh.Now()
		for _, d := range p.deliveries {
			if !d.f.result.Duplicate {
				sh.enqueueFor(d.f, d.sub, now)
			}
		}
		sh.deferFanout(fs, p)
		return tx.Append(), p.publications
	}
	generation := sh.Generation.Load()
	alone := tx.Shards
	p.shards = append(p.shards, alone[1:]...) // of joined commands: behind those that are split by name
	if _, always := sh.module.Encrypting(); always {
		tx.WidenAfter(p.shards, sh.renderer(fs, p))
	} else {
		p.digest()
		tx.Widen(p.shards)
	}
	c, n = sh.publishImmediate(tx, fs, p, generation)
	tx.Narrow(alone)
	return c, n
}

// publishImmediate executes a plan, unless the catalog's generation differs from the plan's. The
// caller has the locks of all shards of the plan.
func (sh *Shard) publishImmediate(tx *kernel.Tx, fs []fanout, p plan, generation uint64) (c *journal.Commit, n int) {
	if generation != sh.Generation.Load() || sh.behind(fs[0].Topic) {
		return nil, 0
	}
	now := sh.Now()
	for _, s := range p.shards {
		now = max(now, s.LatestTime())
	}
	for _, s := range p.shards {
		s.AdvanceTo(now) // in a queue, later messages do not have earlier times
	}
	sh.admit(fs)
	w := immediateWriter{from: sh, now: now}
	for i := range p.deliveries {
		d := p.nth(i)
		if d.f.result.Duplicate {
			continue
		}
		if d.made = d.to != nil && w.deliver(d); !d.made {
			sh.enqueueFor(d.f, d.sub, now)
			continue
		}
		d.f.delivered++
		if d.f.feedback.Success {
			d.f.immediate = append(d.f.immediate, ImmediateDelivery{Subscription: *d.sub, Body: d.f.Body(d.sub), MessageID: w.id})
		}
	}
	w.emit()
	w.release(fs)
	sh.deferFanout(fs, p)
	c = tx.Append()
	sh.module.Finished.AddImmediate(len(p.deliveries), p.made, now)
	return c, len(fs)
}

// immediateWriter puts publications into queues, one after the other.
type immediateWriter struct {
	from      *Shard // of the topic
	now       int64
	written   int                 // bytes of records
	id        message.ID          // of the last message
	sub       *topic.Subscription // the last one
	queue     *queues.Queue       // its queue; nil: it takes no immediate deliveries
	encrypted bool                // it is encrypted
	record    *[]byte             // buffer for the next record; nil: none yet
	into      *queues.Queue       // the queue of the messages whose sizes are collected
	intoShard *queues.Shard
	sizes     []int
}

// rawRecord is the encoded record of a publication with raw message delivery. Several queues,
// either all FIFO or all standard ones, share it except for the message id.
type rawRecord struct {
	bodyMD5 [md5.Size]byte // zero: not computed yet; see digest

	record *[]byte // nil: not made yet
	size   int     // of the message, as MaximumMessageSize counts
	fifo   bool

	encrypted bool
}

// rawAlike reports that the queue gets the publication raw, as others do.
func (d *planned) rawAlike() bool { return d.sub.Raw && d.f.Shared(d.sub) }

// digest computes the digests of the bodies that queues get raw, side by side. It is called
// before the queues are locked.
func (p *plan) digest() {
	if p.publications == 1 {
		return
	}
	var digests multimd5.Batch
	var last *fanout
	for i := range p.deliveries { // publication by publication
		if d := &p.deliveries[i]; d.f != last && d.to != nil && d.rawAlike() {
			digests.Add(&d.f.raw.bodyMD5, d.f.P.Body)
			last = d.f
		}
	}
	digests.Flush()
}

// records is a pool of buffers for encoded records: each publication of a plan uses one.
var records = sync.Pool{New: func() any { return new([]byte) }}

// maxRecordKept bounds the buffers that are returned to the pool, in bytes.
const maxRecordKept = 16 << 10

// release returns the buffers of all records to the pool: batches have copied them.
func (w *immediateWriter) release(fs []fanout) {
	free := func(record *[]byte) {
		if record != nil && cap(*record) <= maxRecordKept {
			records.Put(record)
		}
	}
	free(w.record)
	w.record = nil
	for i := range fs {
		free(fs[i].raw.record)
		fs[i].raw = rawRecord{}
	}
}

// deliver puts a publication into a subscribed queue; false if it has to take the slow path.
// Then the plan's later publications for the subscription take the slow path, too, to keep
// their order.
func (w *immediateWriter) deliver(d *planned) bool {
	if w.sub != d.sub {
		w.sub, w.queue = d.sub, w.open(d)
	}
	if w.queue == nil || !w.put(d) {
		w.queue = nil
		return false
	}
	return true
}

// open finds the queue of a subscription if it takes immediate deliveries.
func (w *immediateWriter) open(d *planned) *queues.Queue {
	if d.sub.PausedAt != 0 {
		return nil
	}
	if qs := w.from.BacklogOf(d.sub); qs != nil && !qs.Machine.Empty() {
		return nil
	}
	qs := d.queue
	if qs == nil || !d.to.Use(qs) {
		qs, _ = d.to.Queue(queueOf(d.sub))
		w.from.targets[d.sub] = target{to: d.to, queue: qs}
		if qs == nil {
			return nil
		}
	}
	encrypted, managed := w.from.module.Encrypted(qs)
	if encrypted && !managed { // no KMS request under a lock
		return nil
	}
	w.encrypted = encrypted
	if w.from.module.Injected(qs.ARN) != nil || qs.Admits(d.f.Topic, w.now) != nil || qs.CheckQuota(d.f.Topic) != nil {
		return nil
	}
	return qs
}

// put renders a publication and puts it into the open queue.
func (w *immediateWriter) put(d *planned) bool {
	if w.written > fanoutBytes { // the rendered messages are so large that the commit might exceed its limit
		return false
	}
	fifo, shared := w.queue.ARN.FIFO(), w.shares(d)
	n := d.f.Unaddressed() // without the fields that differ between subscriptions
	if !shared {
		n = d.f.Notification(d.sub)
	}
	if fifo && !d.to.SurelyNew(w.queue, w.now, n) || w.encrypted && !d.rendered.of(d.f) {
		return false // it would have to be encrypted under the locks
	}
	var record []byte
	var size int
	if shared {
		record, size = w.reuse(d)
	} else {
		m, err := w.render(d, n)
		if err != nil {
			return false
		}
		record, size = w.encode(d, m)
	}
	return w.accept(d, n, record, size)
}

// shares reports that the publication's raw record is there already, and fits the open queue.
func (w *immediateWriter) shares(d *planned) bool {
	raw := &d.f.raw
	return raw.record != nil && raw.fifo == w.queue.ARN.FIFO() && raw.encrypted == w.encrypted && d.rawAlike()
}

// reuse is the publication's raw record, under a message id of its own, and the message's size.
func (w *immediateWriter) reuse(d *planned) (record []byte, size int) {
	w.id = w.from.module.options.NewID()
	message.SetRecordID(*d.f.raw.record, w.id)
	return *d.f.raw.record, d.f.raw.size
}

// render makes the message of a notification, unless that was done before the locks were taken.
func (w *immediateWriter) render(d *planned, n *message.Message) (*message.Message, error) {
	o := &w.from.module.options
	if d.rendered.of(d.f) {
		return d.rendered.message(o.NewID, w.encrypted), nil
	}
	if d.rawAlike() {
		n.BodyMD5 = d.f.raw.bodyMD5
	}
	m, err := o.Render(n)
	n.BodyMD5 = [md5.Size]byte{} // the next one may get it with another body
	return m, err
}

// encode makes the record of a message for the open queue, and the message's size. A raw one is
// kept for the publication's other subscriptions.
func (w *immediateWriter) encode(d *planned, m *message.Message) (record []byte, size int) {
	m.Sent, w.id = w.now, m.ID
	fifo := w.queue.ARN.FIFO()
	if !fifo {
		backlog.ForStandard(m, d.f.Topic)
	}
	size = m.Size()
	if w.record == nil {
		w.record = records.Get().(*[]byte)
	}
	record = m.AppendRecord((*w.record)[:0])
	*w.record = record
	if d.rawAlike() {
		kept := w.record
		w.record = d.f.raw.record // its queue is of the other kind
		d.f.raw = rawRecord{bodyMD5: d.f.raw.bodyMD5, record: kept, size: size, fifo: fifo, encrypted: w.encrypted}
	}
	return record, size
}

// accept puts a record into the open queue, unless the message is too large for it.
func (w *immediateWriter) accept(d *planned, n *message.Message, record []byte, size int) bool {
	qs := w.queue
	cfg := qs.Machine.Config()
	if !cfg.TakesNotification(size, n.Size()) {
		return false
	}
	w.written += len(record)
	if w.into != qs {
		w.emit()
		w.into, w.intoShard = qs, d.to
	}
	w.sizes = append(w.sizes, size)
	lane := layout.GroupLane(d.f.P.Group)
	if !qs.ARN.FIFO() && d.f.Topic.FIFO() {
		lane = layout.MainLane
	}
	sequence := d.to.Accept(qs, w.now, queue.Arrival{
		Record: record, Sent: w.now, Due: w.now + cfg.Delay.Milliseconds(), Lane: lane,
	})
	d.to.Remember(qs, w.now, n, queues.SendResult{ID: w.id, Sequence: sequence})
	return true
}

// emit makes one event of the messages that were put into a queue.
func (w *immediateWriter) emit() {
	if len(w.sizes) == 0 {
		return
	}
	w.intoShard.EmitSent(w.into, w.now, w.sizes)
	w.sizes = w.sizes[:0]
}
