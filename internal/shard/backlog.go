package shard

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
	"godwit.dev/godwit/internal/topic/retry"
)

// Delivery is one message of a subscription's backlog, leased to the consumer
// until it says what became of it.
type Delivery struct {
	Subscription topic.Subscription // as it is now
	Retry        retry.Policy       // in effect now
	ContentType  string             // of notifications over HTTP
	Throttle     int                // deliveries a second; 0: no limit
	Feedback     topic.Feedback     // what the topic's delivery status log wants
	Message      *message.Message
	Attempt      int // the number of the attempt to be made, from 1
	// Cause is set once the delivery has failed for good. Retry keeps it: what has a
	// cause is not attempted any more, and waits for its dead-letter queue only.
	Cause Cause
	// Signature is the consumer's, of what it sends; nil: it has made none. It is
	// kept with the attempts.
	Signature []byte

	history history
	backlogLease
}

// backlogLease is a message of a backlog that the consumer has.
type backlogLease struct {
	shard      *backlogShard
	queue      *queueState
	lease      queue.Lease
	generation uint64 // of the shard's catalog then; see Current
}

// SetConsumer says who takes what is due in the backlogs of a service, "sns" or
// "lambda", and tells it what is.
func (e *backlogEngine) SetConsumer(service string, c Consumer) {
	e.consumersMu.Lock()
	consumers := map[string]Consumer{}
	if old := e.consumers.Load(); old != nil {
		maps.Copy(consumers, *old)
	}
	consumers[service] = c
	e.consumers.Store(&consumers)
	e.consumersMu.Unlock()
	for _, sh := range e.shards {
		sh.view(func() {
			for _, qs := range sh.backlogs {
				sh.reconcile(qs)
			}
			sh.arm()
		})
	}
}

// ready tells the consumer of a backlog, if there is one, that something in it is due.
func (e *backlogEngine) ready(qs *queueState) {
	all := e.consumers.Load()
	if all == nil {
		return
	}
	if consumer := (*all)[qs.arn.Service]; consumer != nil && qs.shard.available(qs, qs.shard.now()) {
		qs.readied = true
		consumer.Ready(qs.arn)
	}
}

// topicFIFO reports that the queue is the backlog of a FIFO topic's subscription.
func topicFIFO(qs *queueState) bool {
	t, _, ok := qs.arn.SplitSubscription()
	return ok && t.FIFO()
}

// backlogOf finds the backlog of a subscription, nil if nothing was ever in it.
func (sh *backlogShard) backlogOf(sub *topic.Subscription) *queueState {
	return sh.backlogs[layout.Incarnation(sub.Incarnation)]
}

// openBacklog finds or begins the backlog of a subscription.
func (sh *backlogShard) openBacklog(sub *topic.Subscription) *queueState {
	inc := layout.Incarnation(sub.Incarnation)
	qs, ok := sh.backlogs[inc]
	if !ok {
		qs = &queueState{shard: sh.ofQueues(), arn: sub.ARN, incarnation: inc, owner: sub.Topic(), backlog: true, paused: sub.PausedAt != 0}
		kind := queue.Kind{Backlog: true, FIFO: sub.Topic().ARN.FIFO()}
		qs.machine = *queue.New(layout.NewKeys(sh.id, inc), queue.Config{}, kind)
		sh.backlogs[inc] = qs
	}
	return qs
}

// dropBacklog removes the backlog of a subscription that is gone.
func (sh *backlogShard) dropBacklog(inc layout.Incarnation) {
	if qs, ok := sh.backlogs[inc]; ok {
		sh.drop(qs)
		delete(sh.backlogs, inc)
	}
}

// shardOfSubscription finds the shard of a subscription: its topic's.
func (e *backlogEngine) shardOfSubscription(sub arn.ARN) *backlogShard {
	if t, _, ok := sub.SplitSubscription(); ok {
		return e.shardOf(t)
	}
	return e.shardOf(sub)
}

// Take leases up to most messages that are due in a subscription's backlog.
// What it returns is durable. more says that there are others due. A
// subscription that is gone has none. A message that cannot be read is not among
// them, stays leased until the next start, and is the error.
func (e *backlogEngine) Take(sub arn.ARN, most int) (taken []*Delivery, more bool, err error) {
	sh := e.shardOfSubscription(sub)
	var qs *queueState
	var durable func(before bool)
	sh.view(func() {
		s, ok := sh.topics.Deliverable(sub)
		if ok {
			qs = sh.backlogOf(s)
		}
		if qs != nil && qs.paused {
			qs.readied, qs = false, nil
		}
		if qs == nil {
			return
		}
		var leases []backlogLease
		leases, more, durable = sh.leaseDue(qs, most)
		all := make([]Delivery, len(leases))
		taken = make([]*Delivery, len(leases))
		one := Delivery{Subscription: *s, Feedback: s.Topic().Feedback(s.Protocol)}
		one.Retry, one.ContentType = s.RetryPolicy(), s.ContentType()
		one.Throttle, _ = s.Throttle()
		for i, l := range leases {
			all[i], taken[i] = one, &all[i]
			all[i].Attempt, all[i].backlogLease = int(l.lease.Receives), l
		}
	})
	if qs == nil {
		return nil, false, nil
	}

	// An immediate retry rests on the outcome of the attempt before it: else a crash
	// could bring that one back, and the endpoint would get more requests than the
	// policy has attempts. Before any other retry the outcome is long durable.
	durable(slices.ContainsFunc(taken, (*Delivery).immediate))
	keys := layout.NewKeys(sh.id, qs.incarnation)
	var failed error
	for _, d := range taken {
		record, ok, err := e.readRecord(keys.Record(d.lease.Lane, d.lease.Sequence))
		if err != nil {
			e.fatal(err)
			return nil, false, err
		}
		if !ok {
			continue // the subscription was deleted meanwhile
		}
		m, unreadable := message.DecodeRecord(record)
		if unreadable != nil {
			failed = cmp.Or(failed, unreadable)
			continue
		}
		d.Message = m
		if d.lease.Receives > 1 {
			value, _, err := e.store.Get(nil, keys.History(d.lease.Sequence))
			if err != nil {
				e.fatal(err)
				return nil, false, err
			}
			d.history, _ = decodeHistory(value)
			d.Signature = d.history.signature
			if d.Cause = d.history.cause; !d.Cause.IsZero() {
				d.Attempt = d.Cause.Attempt // leases since then were no attempts
			}
		}
	}
	return slices.DeleteFunc(taken, func(d *Delivery) bool { return d.Message == nil }), more, failed
}

// immediate reports that the attempt follows the one before it at once.
func (d *Delivery) immediate() bool {
	if d.Attempt < 2 {
		return false
	}
	delay, ok := d.Retry.Delay(d.Attempt - 2)
	return ok && delay == 0
}

// leaseDue leases up to most messages that are due in a backlog to its consumer.
// durable waits, without the lock, until they are, and with before until the
// outcomes of the attempts before them are too. more says that there are others due.
func (sh *backlogShard) leaseDue(qs *queueState, most int) (leases []backlogLease, more bool, durable func(before bool)) {
	qs.readied = false
	former := sh.log.Last()
	found := sh.receive(qs, most, 0, "")
	leases = make([]backlogLease, len(found.leases))
	retries := false
	for i, l := range found.leases {
		leases[i] = backlogLease{shard: sh, queue: qs, lease: l, generation: sh.generation.Load()}
		retries = retries || l.Receives > 1
	}
	more = found.err == nil && sh.available(qs, sh.now())
	qs.readied = more // it knows; no need to tell it again
	if retries {
		sh.readable() // for the histories
	}
	return leases, more, func(before bool) {
		found.group.Wait()
		if before {
			former.Wait()
		}
	}
}

// conclude runs a command on the backlog of a lease, unless that is gone. With sync it
// is durable on return.
func (l *backlogLease) conclude(sync bool, f func(sh *backlogShard, qs *queueState, now int64)) {
	c, _ := l.shard.run(sync, func(*Tx) error {
		if !l.queue.ended() {
			f(l.shard, l.queue, l.shard.now())
			l.shard.touch(l.queue)
		}
		return nil
	})
	if sync {
		c.Wait()
	}
}

// Current reports whether there is still somebody to make a delivery to: that its
// subscription has not been deleted since it was taken.
func (e *backlogEngine) Current(d *Delivery) (current bool) {
	if d.shard.generation.Load() == d.generation {
		return true // nothing has been deleted; the lock may be another's for a while
	}
	d.shard.view(func() { current = !d.queue.ended() })
	return current
}

// Delivered ends a delivery that succeeded.
func (e *backlogEngine) Delivered(d *Delivery, a Attempt) { e.end(d, a, DeliveryDelivered, "") }

// Drop ends a delivery that failed for good and that no dead-letter queue takes.
func (e *backlogEngine) Drop(d *Delivery, a Attempt, reason string) {
	e.end(d, a, DeliveryDropped, reason)
}

func (e *backlogEngine) end(d *Delivery, a Attempt, state DeliveryState, reason string) {
	d.conclude(false, func(sh *backlogShard, qs *queueState, _ int64) { sh.ackSource(qs, d.lease) })
	e.finish(d, a, state, reason)
}

// Retry notes a failed attempt, if a is one, and makes the message due again. With
// a cause that is durable on return.
func (e *backlogEngine) Retry(d *Delivery, a Attempt, due time.Time) {
	if a.Outcome != "" {
		d.history.add(a)
	}
	d.history.signature, d.history.cause = d.Signature, d.Cause
	d.conclude(!d.Cause.IsZero(), func(sh *backlogShard, qs *queueState, now int64) {
		sh.batch.Set(qs.machine.Keys().History(d.lease.Sequence), d.history.encode())
		// Leased by nobody else: it fails only where the subscription was deleted.
		_, _ = sh.do(qs, now, queue.Return{Lease: d.lease, Due: due.UnixMilli(), History: true})
	})
}

// Release gives a delivery back unattempted, due now. One that was never
// attempted keeps its place before what was published later.
func (e *backlogEngine) Release(d *Delivery) {
	d.conclude(false, func(sh *backlogShard, qs *queueState, now int64) {
		due := now
		if d.Attempt == 1 {
			due = min(d.Message.Sent, now)
		}
		_, _ = sh.do(qs, now, queue.Return{Lease: d.lease, Due: due, Uncounted: true}) // as above
	})
}

func (e *backlogEngine) finish(d *Delivery, a Attempt, state DeliveryState, reason string) {
	if a.Outcome != "" {
		d.history.add(a)
	}
	now := e.clock.Now().UnixMilli()
	f := finished{
		id: d.Message.ID, state: state, published: d.Message.Sent, at: now, total: d.history.total, attempts: d.history.attempts(),
		reason: reason,
	}
	e.finished.add(d.Subscription.ARN, &f)
}

// Deliveries lists what waits in a subscription's backlog, next due first, and
// then what was finished of late, latest first: at most limit in all. Errors: NotFound.
func (e *backlogEngine) Deliveries(ctx context.Context, sub arn.ARN, limit int) ([]DeliveryInfo, error) {
	var infos []DeliveryInfo
	ok := false
	sh := e.shardOfSubscription(sub)
	err := sh.runDurable(func(tx *Tx) (err error) {
		tx.restOn(sh.log.Last())
		s, found := sh.topics.Deliverable(sub)
		if ok = found; ok {
			if qs := sh.backlogOf(s); qs != nil {
				infos, err = e.pendingDeliveries(sh, qs, limit)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	infos = append(infos, e.finished.of(e.clock.Now(), sub, limit-len(infos))...)
	if !ok && len(infos) == 0 {
		return nil, fault.New(fault.NotFound, "Subscription does not exist")
	}
	return infos, ctx.Err()
}

func (e *backlogEngine) pendingDeliveries(sh *backlogShard, qs *queueState, limit int) ([]DeliveryInfo, error) {
	sh.readable()
	keys := layout.NewKeys(sh.id, qs.incarnation)
	var infos []DeliveryInfo
	add := func(p layout.State, leased bool) error {
		record, ok, err := e.store.Get(nil, keys.Record(p.Lane, p.Sequence))
		if err != nil || !ok {
			return err
		}
		m, err := message.DecodeRecord(record)
		if err != nil {
			return err
		}
		value, _, err := e.store.Get(nil, keys.History(p.Sequence))
		if err != nil {
			return err
		}
		h, _ := decodeHistory(value)
		info := DeliveryInfo{
			ID: deliveryID{p.Lane, p.Sequence}.String(), MessageID: m.ID.String(), Subscription: qs.arn, State: DeliveryPending,
			Attempts: h.total, PublishedAt: time.UnixMilli(m.Sent).UTC(), History: h.attempts(),
			Reason: h.cause.Reason,
		}
		if leased {
			info.State = DeliveryInFlight
		} else {
			info.NextAttemptAt = time.UnixMilli(max(p.Due, m.Sent)).UTC()
		}
		infos = append(infos, info)
		return nil
	}
	leases := qs.machine.Leases()
	for _, l := range leases[:min(limit, len(leases))] {
		if err := add(layout.State{Sequence: l.Sequence, Lane: l.Lane}, true); err != nil {
			return nil, err
		}
	}
	var failed error
	walk := func(span layout.Span, peek func(key, value []byte) (layout.State, error)) {
		if failed != nil || len(infos) >= limit {
			return
		}
		err := each(e.store, span, func(key, value []byte) bool {
			p, err := peek(key, value)
			if _, leased := qs.machine.Leased(p.Sequence); err == nil && !leased {
				err = add(p, false)
			}
			failed = err
			return err == nil && len(infos) < limit
		})
		failed = cmp.Or(failed, err)
	}
	walk(qs.machine.Keys().Of(layout.KindDue), layout.DecodeState)
	walk(qs.machine.HeadSpan(), freshState)
	if topicFIFO(qs) { // group by group
		walk(qs.machine.Keys().Of(layout.KindRecord), func(key, _ []byte) (layout.State, error) { return e.peekGrouped(&keys, key) })
	}
	return infos, failed
}

// freshState is that of a message that was never received, by the key of its record.
func freshState(key, _ []byte) (layout.State, error) {
	return layout.State{Sequence: layout.KeySequence(key), Lane: layout.KeyLane(key)}, nil
}

// peekGrouped reads what waits of a FIFO topic's message at the key of its record.
func (e *backlogEngine) peekGrouped(keys *layout.Keys, key []byte) (layout.State, error) {
	p, _ := freshState(key, nil)
	state, returned, err := e.store.Get(nil, keys.HeldState(p.Lane, p.Sequence))
	if err != nil || !returned {
		return p, err
	}
	return layout.DecodeState(keys.HeldState(p.Lane, p.Sequence), state)
}

// Transfer moves a delivery into a queue, as message m, which the caller made
// and sealed; it is durable on return. The delivery is finished with the given
// state. Refusals leave it leased as it was: QueueDoesNotExist and AccessDenied
// for good, Unavailable and Throttled for now.
func (e *backlogEngine) Transfer(ctx context.Context, d *Delivery, a Attempt, dest arn.ARN, m *message.Message, state DeliveryState, reason string) error {
	moved, err := e.moveOut(ctx, &d.backlogLease, dest, m, freshOf(dest, m, state), e.newArrival(d, dest, m, state))
	if moved {
		e.finish(d, a, state, reason)
	}
	return err
}

// moveOut moves a leased message of a backlog to where make lets it in, as m; it is
// durable on return. moved is false, without an error, if the backlog was deleted
// meanwhile, and the message with it. Errors: those of transfer; ctx's, if that has
// ended before anything was moved.
func (e *backlogEngine) moveOut(ctx context.Context, l *backlogLease, dest arn.ARN, m, fresh *message.Message, make arrival) (moved bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	g, err := e.transfer(l.shard.transferShard, l.queue, l.lease, dest, fresh, make)
	g.Wait()
	switch {
	case errors.Is(err, errNotLeased):
		return false, nil
	case err != nil:
		return false, err
	}
	e.sinkOf(dest).arrived(dest, m)
	return true, nil
}

func errLonger(cfg queue.Config) error {
	return fault.Newf(fault.InvalidParameter, "The message is longer than the queue's %d bytes.", cfg.MaxMessageSize)
}

// freshOf is m where a FIFO queue must tell it from those that it has accepted;
// of two dead letters with one id none is lost. A standard queue has no use for
// the id.
func freshOf(dest arn.ARN, m *message.Message, state DeliveryState) *message.Message {
	if m != nil && !dest.FIFO() {
		m.Dedup = ""
	}
	if state == DeliveryDeadLetter {
		return nil
	}
	return m
}

// newArrival makes m, which another queue held as the message of d, enter the
// queue dest, if its policy lets the topic send to it.
func (e *backlogEngine) newArrival(d *Delivery, dest arn.ARN, m *message.Message, state DeliveryState) arrival {
	topic, _, _ := d.Subscription.ARN.SplitSubscription()
	return func(now int64, cfg queue.Config) (queue.Arrival, error) {
		// Under the lock of the destination, which was just found there.
		if err := e.shardOf(dest).queues[dest].admits(topic, now); err != nil {
			return queue.Arrival{}, err
		}
		if m.Size() > cfg.MaxMessageSize {
			return queue.Arrival{}, errLonger(cfg)
		}
		m.Sent = now
		if state == DeliveryDeadLetter {
			m.Origin = d.Message.AppendRecord(nil)
		}
		return arrivalOf(m, now, cfg), nil
	}
}

// withSubscription is withCatalog for the shard of a subscription.
func (e *backlogEngine) withSubscription(ctx context.Context, sub arn.ARN, f func(sh *backlogShard) error) error {
	if t, _, ok := sub.SplitSubscription(); ok {
		sub = t
	}
	return e.withCatalog(ctx, sub, f)
}

// backlogEngine is the module of what waits for somebody of ours to take it: the
// backlogs of subscriptions, and the queues of functions' events.
type backlogEngine struct {
	*transferEngine
	parts[*backlogShard]
	consumers   atomic.Pointer[map[string]Consumer] // by service
	consumersMu sync.Mutex                          // held while they are replaced
	finished    *finishedCache
}

// backlogShard is the module's part in a shard.
type backlogShard struct {
	*transferShard
	engine *backlogEngine
	topics *topic.State // whose subscriptions have backlogs
}

// Consumer takes the messages of backlogs.
type Consumer interface {
	// Ready says that the backlog of a subscription or a function has something
	// due. It is called under a shard's lock and must not block; it is not called
	// again for the same backlog until the consumer has taken from it.
	Ready(owner arn.ARN)
}

// history is how long finished deliveries stay visible; limits are those of every topic.
func newBacklogEngine(below *transferEngine, history time.Duration, limits topic.Limits) *backlogEngine {
	e := &backlogEngine{transferEngine: below, finished: newFinishedCache(history)}
	for id, sh := range below.shards {
		s := &backlogShard{transferShard: sh, engine: e, topics: topic.New(uint16(id), limits)}
		e.shards[id] = s
		sh.add(backlogModule{sh: s})
	}
	below.hooks.ready = e.ready
	below.sinks["sns"] = backlogSink{e}
	below.takesOthers = e.takesDeadLetters
	return e
}

// takesDeadLetters reports whether a queue is a subscription's dead-letter queue.
// It looks at all of them: move tasks are begun by hand.
func (e *backlogEngine) takesDeadLetters(a arn.ARN) (found bool) {
	for _, sh := range e.shards {
		sh.view(func() {
			for sub := range sh.topics.AllDeliverable() {
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

// backlogSink moves messages to the backlogs of subscriptions.
type backlogSink struct{ e *backlogEngine }

func (s backlogSink) home(dest arn.ARN) *transferShard {
	return s.e.shardOfSubscription(dest).transferShard
}

func (s backlogSink) open(dest arn.ARN) (*queueState, error) {
	sh := s.e.shardOfSubscription(dest)
	sub, ok := sh.topics.Subscription(dest)
	if !ok {
		return nil, errNoSubscription
	}
	return sh.openBacklog(sub), nil
}

func (backlogSink) arrived(arn.ARN, *message.Message) {}

// backlogModule is the module of a shard.
type backlogModule struct {
	nothing
	sh *backlogShard
}

func (m backlogModule) resume() {
	sh := m.sh
	for _, qs := range sh.backlogs {
		// Whether these attempts reached anybody is unknown: they are made again.
		for _, l := range qs.machine.Leases() {
			_, _ = sh.do(qs, sh.now(), queue.Return{Lease: l, Due: sh.now(), Uncounted: true})
			sh.commitMuch()
		}
		if !qs.machine.Empty() {
			sh.touch(qs)
			sh.commitMuch()
		}
	}
}
