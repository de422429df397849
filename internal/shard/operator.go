package shard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// What an operator can do about a subscription's backlog. Each command is
// durable when it returns, and may be repeated.

// ErrUnderWay refuses to touch a delivery that the consumer has.
var ErrUnderWay = errors.New("shard: an attempt at the delivery is under way")

var errNoDelivery = fault.New(fault.NotFound, "Delivery does not exist")

// deliveryID names a message of a backlog: its lane and sequence.
type deliveryID struct {
	lane     layout.Lane
	sequence uint64
}

func (id deliveryID) String() string {
	return strconv.FormatUint(uint64(id.lane), 10) + "-" + strconv.FormatUint(id.sequence, 10)
}

func parseDeliveryID(s string) (id deliveryID, err error) {
	lane, sequence, _ := strings.Cut(s, "-")
	l, err := strconv.ParseUint(lane, 10, 64)
	if err == nil {
		id.sequence, err = strconv.ParseUint(sequence, 10, 64)
	}
	if id.lane = layout.Lane(l); err != nil || id.String() != s {
		return deliveryID{}, errNoDelivery
	}
	return id, nil
}

// Pause stops the deliveries of a subscription: what is in its backlog, and what
// comes, waits there. Attempts under way go on, and the consumer gives back what
// it has not begun. Errors: NotFound.
func (e *backlogEngine) Pause(ctx context.Context, sub arn.ARN) error {
	return e.setPaused(ctx, sub, (*topic.State).Pause)
}

// Resume ends a Pause. Errors: NotFound.
func (e *backlogEngine) Resume(ctx context.Context, sub arn.ARN) error {
	return e.setPaused(ctx, sub, (*topic.State).Resume)
}

func (e *backlogEngine) setPaused(ctx context.Context, name arn.ARN, set func(*topic.State, time.Time, arn.ARN, *mutation.Batch) (*topic.Subscription, error)) error {
	return e.withSubscription(ctx, name, func(sh *backlogShard) error {
		sub, err := set(sh.topics, sh.time(), name, &sh.batch)
		if err != nil {
			return err
		}
		if qs := sh.backlogOf(sub); qs != nil {
			qs.paused, qs.readied = sub.PausedAt != 0, false
			sh.touch(qs) // so that the consumer is told
		}
		return nil
	})
}

// Backlog counts what a subscription is owed. Errors: NotFound.
func (e *backlogEngine) Backlog(ctx context.Context, sub arn.ARN) (info BacklogInfo, err error) {
	var low uint64
	var leased int64
	var qs *queueState
	sh := e.shardOfSubscription(sub)
	err = e.withSubscription(ctx, sub, func(sh *backlogShard) error {
		s, ok := sh.topics.Subscription(sub)
		if !ok {
			return topic.ErrNoSubscription
		}
		info.Subscription, info.Now = *s, sh.time()
		if qs = sh.backlogOf(s); qs == nil {
			return nil
		}
		c := sh.counts(qs, sh.now())
		info.Due, info.Waiting, info.InFlight = c.Visible, c.Delayed, c.InFlight
		sh.readable()
		low = qs.low
		if topicFIFO(qs) {
			for _, l := range qs.machine.Leases() {
				if leased == 0 || l.Sent < leased {
					leased = l.Sent
				}
			}
		}
		return nil
	})
	if err != nil || info.Due+info.Waiting+info.InFlight == 0 {
		return info, err
	}
	info.Oldest, err = e.oldestOf(sh, qs, low, leased)
	return info, err
}

// oldestOf is when the oldest message of a backlog was accepted, zero if it is
// empty. No message of it has a lower sequence than low; leased is when the oldest
// of those was accepted that the search does not find, 0 if there is none.
func (e *backlogEngine) oldestOf(sh *backlogShard, qs *queueState, low uint64, leased int64) (at time.Time, err error) {
	oldest, low, err := e.oldest(sh, qs, low)
	if err != nil {
		e.fatal(err)
		return at, err
	}
	rest, _ := sh.run(false, func(tx *Tx) error {
		qs.low = max(qs.low, low)
		tx.restOn(sh.log.Last())
		return nil
	})
	if leased != 0 && (oldest == 0 || leased < oldest) {
		oldest = leased
	}
	if oldest != 0 {
		at = time.UnixMilli(oldest).UTC()
	}
	rest.Wait()
	return at, nil
}

// oldest finds when the oldest message of a backlog was published, 0 if it is
// empty; of groups that are blocked it does not know. The search in the main lane
// begins at low; next is where the next can.
func (e *backlogEngine) oldest(sh *backlogShard, qs *queueState, low uint64) (sent int64, next uint64, err error) {
	next = low
	keys := layout.NewKeys(sh.id, qs.incarnation)
	for _, lane := range []layout.Lane{layout.MainLane, layout.DelayedLane, layout.MovedLane} {
		from := uint64(0)
		if lane == layout.MainLane {
			from = low
		}
		err := each(e.store, keys.Lane(lane, from), func(key, value []byte) bool {
			at, ok := message.RecordSent(value)
			if ok && (sent == 0 || at < sent) {
				sent = at
			}
			if lane == layout.MainLane {
				next = layout.KeySequence(key)
			}
			return false
		})
		if err != nil {
			return 0, low, err
		}
	}
	var failed error
	err = each(e.store, keys.ListedFrom(0), func(key, value []byte) bool {
		var record []byte
		listing, err := layout.DecodeListing(value)
		if failed = err; failed != nil {
			return false
		}
		record, _, failed = e.store.Get(nil, keys.Record(listing.Lane, layout.KeySequence(key)))
		if at, ok := message.RecordSent(record); ok && (sent == 0 || at < sent) {
			sent = at
		}
		return false
	})
	return sent, next, cmp.Or(failed, err)
}

// withBacklog runs f under the lock of a subscription's shard and returns once
// all that f saw and did is durable. Without a backlog f is not run. Errors:
// NotFound, f's.
func (e *backlogEngine) withBacklog(name arn.ARN, f func(sh *backlogShard, sub *topic.Subscription, qs *queueState) error) error {
	sh := e.shardOfSubscription(name)
	return sh.runDurable(func(tx *Tx) error {
		sub, ok := sh.topics.Subscription(name)
		if !ok {
			return topic.ErrNoSubscription
		}
		qs := sh.backlogOf(sub)
		if qs == nil {
			tx.restOn(sh.log.Last())
			return nil
		}
		sh.readable()
		err := f(sh, sub, qs)
		tx.restOn(sh.log.Last()) // with what f has handed over already
		return err
	})
}

// RetryNow makes a delivery that waits for its next attempt due now; changed is
// false if it is due already or under way. Errors: NotFound.
func (e *backlogEngine) RetryNow(_ context.Context, sub arn.ARN, id string) (changed bool, err error) {
	name, err := parseDeliveryID(id)
	if err != nil {
		return false, err
	}
	found := false
	err = e.withBacklog(sub, func(sh *backlogShard, _ *topic.Subscription, qs *queueState) error {
		found = true
		r, err := sh.do(qs, sh.now(), queue.MakeDueNow{Lane: name.lane, Sequence: name.sequence})
		changed = r.Changed
		return err
	})
	if errors.Is(err, queue.ErrGone) || err == nil && !found {
		return false, errNoDelivery
	}
	return changed, err
}

// operatorStep bounds the deliveries that one commit of an operator's command
// changes, and those that one look lists.
const operatorStep = 512

// RetryAllNow makes every delivery that waits for its next attempt due now and
// returns how many those were. It takes one commit for each 512 of them; if it
// fails, or ctx ends, some are due and the others as they were. Errors: NotFound.
func (e *backlogEngine) RetryAllNow(ctx context.Context, sub arn.ARN) (n int, err error) {
	var began int64
	var last layout.State // how far it has come
	for more := true; more && err == nil; {
		more = false
		err = e.withBacklog(sub, func(sh *backlogShard, _ *topic.Subscription, qs *queueState) error {
			now, keys := sh.now(), qs.machine.Keys()
			if began == 0 {
				began, last.Due = now, now+1
			}
			span := keys.DueFrom(last.Due, last.Sequence)
			if topicFIFO(qs) {
				span = keys.HeldFrom(last.Lane, last.Sequence)
			}
			var found []layout.State
			var values [][]byte
			var failed error
			seen := 0
			err := each(e.store, span, func(key, value []byte) bool {
				var p layout.State
				if p, failed = layout.DecodeState(key, value); failed != nil {
					return false
				}
				if seen++; seen > operatorStep {
					more = true
					return false
				}
				if p.Due > now && p.Received <= began { // else it has had its turn since
					found = append(found, p)
					if !topicFIFO(qs) {
						values = append(values, bytes.Clone(value))
					}
				}
				p.Sequence++
				last = p
				return true
			})
			if err := cmp.Or(failed, err); err != nil {
				return err
			}
			for i, p := range found {
				c := queue.MakeDueNow{Lane: p.Lane, Sequence: p.Sequence}
				if len(values) > 0 { // of a group the machine knows it, or reads it
					c.State = values[i]
				}
				r, err := sh.do(qs, now, c)
				if err != nil {
					return err
				}
				if r.Changed {
					n++
				}
			}
			return nil
		})
		if err == nil {
			err = ctx.Err()
		}
	}
	return n, err
}

// Waiting lists, a step at a time, the deliveries of a subscription that wait
// and were published before the first step. The zero value of all but
// Subscription begins.
type Waiting struct {
	Subscription arn.ARN

	begun bool
	fresh bool // those that were attempted are through, or stand among the others
	below uint64
	last  layout.State // how far it has come
}

// Next lists up to 512 deliveries; none is the end. Errors: NotFound.
func (e *backlogEngine) Next(ctx context.Context, w *Waiting) (ids []string, err error) {
	for more := true; more && len(ids) == 0 && err == nil; {
		more = false
		err = e.withBacklog(w.Subscription, func(_ *backlogShard, _ *topic.Subscription, qs *queueState) error {
			fifo := topicFIFO(qs) // then it goes group by group
			if !w.begun {
				w.begun, w.below, w.fresh = true, qs.machine.NextSequence(), fifo
			}
			span, peek := w.span(&qs.machine, fifo), freshState
			if !w.fresh {
				peek = layout.DecodeState
			}
			seen := 0
			var failed error
			err := each(e.store, span, func(key, value []byte) bool {
				var p layout.State
				if p, failed = peek(key, value); failed != nil {
					return false
				}
				if w.fresh && !fifo && p.Sequence >= w.below {
					return false
				}
				if seen++; seen > operatorStep {
					more = true
					return false
				}
				if _, leased := qs.machine.Leased(p.Sequence); !leased && p.Sequence < w.below {
					ids = append(ids, deliveryID{p.Lane, p.Sequence}.String())
				}
				p.Sequence++
				w.last = p
				return true
			})
			if !more && !w.fresh {
				more, w.fresh, w.last = true, true, layout.State{}
			}
			return cmp.Or(failed, err)
		})
		if err == nil {
			err = ctx.Err()
		}
	}
	return ids, err
}

// span is what comes next.
func (w *Waiting) span(m *queue.Machine, fifo bool) layout.Span {
	keys := m.Keys()
	switch {
	case fifo:
		return keys.RecordsFrom(w.last.Lane, w.last.Sequence)
	case !w.fresh:
		return keys.DueFrom(w.last.Due, w.last.Sequence)
	}
	span := m.HeadSpan()
	if from := keys.Lane(layout.MainLane, w.last.Sequence); bytes.Compare(from.Lower, span.Lower) > 0 {
		return from
	}
	return span
}

// Peek reads a delivery that waits, without taking it: Attempt is how many were
// made. Errors: NotFound, ErrUnderWay.
func (e *backlogEngine) Peek(_ context.Context, sub arn.ARN, id string) (*Delivery, error) {
	name, err := parseDeliveryID(id)
	if err != nil {
		return nil, err
	}
	var d *Delivery
	err = e.withBacklog(sub, func(sh *backlogShard, s *topic.Subscription, qs *queueState) error {
		d = &Delivery{Subscription: *s, backlogLease: backlogLease{shard: sh, queue: qs, lease: queue.Lease{Lane: name.lane, Sequence: name.sequence}}}
		d.Feedback = s.Topic().Feedback(s.Protocol)
		record, err := sh.waitingRecord(qs, name)
		if err != nil {
			return err
		}
		if d.Message, err = message.DecodeRecord(record); err != nil {
			return err
		}
		value, _, err := e.store.Get(nil, qs.machine.Keys().History(name.sequence))
		if err != nil {
			return err
		}
		d.history, _ = decodeHistory(value)
		d.Attempt, d.Cause = d.history.total, d.history.cause
		return nil
	})
	if err == nil && d == nil {
		err = errNoDelivery
	}
	return d, err
}

// waitingRecord reads the record of a message that nobody has.
func (sh *backlogShard) waitingRecord(qs *queueState, id deliveryID) ([]byte, error) {
	if _, leased := qs.machine.Leased(id.sequence); leased {
		return nil, ErrUnderWay
	}
	record, ok, err := sh.engine.store.Get(nil, qs.machine.Keys().Record(id.lane, id.sequence))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, errNoDelivery
	}
	return record, nil
}

// Remove ends a delivery that Peek has found, without an attempt: in one commit
// it leaves its backlog and m, if that is not nil, enters the queue dest. It is
// durable once wait, which is never nil, returns. Errors: those of Transfer,
// which leave it as it was; NotFound and ErrUnderWay if it does not wait any more.
func (e *backlogEngine) Remove(_ context.Context, d *Delivery, dest arn.ARN, m *message.Message, state DeliveryState, reason string) (wait func(), err error) {
	from, to := d.shard, d.shard
	if m != nil {
		if e.full() {
			return func() {}, fault.New(fault.Unavailable, "The disk has too little free space.")
		}
		to = e.shardOf(dest)
	}
	var g *journal.Commit
	if m != nil && e.twoStep {
		g, err = e.transferTwoStep(from.transferShard, to.transferShard, d.queue, d.lease, dest, freshOf(dest, m, state), e.newArrival(d, dest, m, state), func() error { return from.evictable(d) })
	} else {
		g, err = runAll(true, func(tx *Tx) error { return from.evict(tx, to, d, dest, m, state) }, from.core(), to.core())
	}
	if err != nil {
		g.Wait() // the refusal may rest on it
		return func() {}, err
	}
	e.finish(d, Attempt{}, state, reason)
	if m != nil {
		e.sinkOf(dest).arrived(dest, m)
	}
	return g.Wait, nil
}

// evictable refuses a delivery that does not wait any more.
func (sh *backlogShard) evictable(d *Delivery) error {
	if d.queue.ended() {
		return topic.ErrNoSubscription
	}
	sh.readable()
	_, err := sh.waitingRecord(d.queue, deliveryID{d.lease.Lane, d.lease.Sequence})
	return err
}

func (sh *backlogShard) evict(tx *Tx, to *backlogShard, d *Delivery, dest arn.ARN, m *message.Message, state DeliveryState) error {
	if err := sh.evictable(d); err != nil {
		return err
	}
	qs, lane, seq := d.queue, d.lease.Lane, d.lease.Sequence
	if m != nil {
		if err := to.take(dest, freshOf(dest, m, state), sh.engine.newArrival(d, dest, m, state)); err != nil {
			tx.restOn(to.lastCatalogCommit)
			return err
		}
	}
	if _, err := sh.doAtOnce(qs, sh.now(), queue.Remove{Lane: lane, Sequence: seq}); err != nil {
		return err
	}
	sh.touch(qs)
	return nil
}
