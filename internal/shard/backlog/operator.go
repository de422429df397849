package backlog

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// What an operator can do about a subscription's backlog. Each command is
// durable when it returns, and may be repeated.

// ErrUnderWay refuses a command on a delivery that is in flight.
var ErrUnderWay = errors.New("backlog: an attempt at the delivery is under way")

// ErrNoDelivery refuses a command on a delivery that does not exist.
var ErrNoDelivery = fault.NewRule(fault.NotFound, "backlog: no such delivery")

// DeliveryID names a message of a backlog: its lane and sequence.
type DeliveryID struct {
	Lane     layout.Lane
	Sequence uint64
}

func (id DeliveryID) String() string {
	return strconv.FormatUint(uint64(id.Lane), 10) + "-" + strconv.FormatUint(id.Sequence, 10)
}

func parseDeliveryID(s string) (id DeliveryID, err error) {
	lane, sequence, _ := strings.Cut(s, "-")
	l, err := strconv.ParseUint(lane, 10, 64)
	if err == nil {
		id.Sequence, err = strconv.ParseUint(sequence, 10, 64)
	}
	if id.Lane = layout.Lane(l); err != nil || id.String() != s {
		return DeliveryID{}, ErrNoDelivery
	}
	return id, nil
}

// Pause stops the deliveries of a subscription: present and future messages stay in its
// backlog. Attempts under way continue, and the consumer releases the leases of those that it
// has not begun. Errors: NotFound.
func (b *Backlogs) Pause(ctx context.Context, sub arn.ARN) error {
	return b.setPaused(ctx, sub, (*topic.State).Pause, (*Recipient).pause)
}

// Resume ends a Pause. Errors: NotFound.
func (b *Backlogs) Resume(ctx context.Context, sub arn.ARN) error {
	return b.setPaused(ctx, sub, (*topic.State).Resume, (*Recipient).resume)
}

func (b *Backlogs) setPaused(
	ctx context.Context, name arn.ARN,
	set func(*topic.State, time.Time, arn.ARN, *mutation.Batch) (*topic.Subscription, error), setDirect func(*Recipient, int64),
) error {
	return b.WithSubscription(ctx, name, func(sh *Shard) (err error) {
		var sub *topic.Subscription
		if r := sh.recipients[name]; r != nil {
			setDirect(r, sh.Now())
			sub = r.Subscription
		} else if sub, err = set(sh.Topics, clock.Time(sh.Now()), name, &sh.Batch); err != nil {
			return err
		}
		if qs := sh.BacklogOf(sub); qs != nil {
			qs.Consumption.Paused, qs.Consumption.Notified = sub.PausedAt != 0, false
			sh.Touch(qs) // so that the consumer is notified
		}
		return nil
	})
}

// Backlog counts the deliveries in the backlog of a subscription. Errors: NotFound.
func (b *Backlogs) Backlog(ctx context.Context, sub arn.ARN) (info BacklogInfo, err error) {
	var low uint64
	var leased int64
	var qs *queues.Queue
	sh := b.ShardOf(topicOf(sub))
	err = b.ReadSubscription(ctx, sub, func(sh *Shard) error {
		s, ok := sh.subscription(sub)
		if !ok {
			return topic.ErrNoSubscription
		}
		info.Subscription, info.Now = *s, clock.Time(sh.Now())
		if qs = sh.BacklogOf(s); qs == nil {
			return nil
		}
		c := sh.Counts(qs, sh.Now())
		info.Due, info.Waiting, info.InFlight = c.Visible, c.Delayed, c.InFlight
		sh.FlushAppended()
		low = qs.Consumption.Low
		if ofFIFOTopic(qs.ARN) {
			for _, l := range qs.Machine.Leases() {
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
	info.Oldest, err = b.OldestOf(sh, qs, low, leased)
	return info, err
}

// OldestOf is when the oldest message of a backlog was accepted; zero: it is empty. low is a
// lower bound of its sequences. leased is when the oldest of the messages was accepted that the
// search does not find; 0: there is none.
func (b *Backlogs) OldestOf(sh *Shard, qs *queues.Queue, low uint64, leased int64) (at time.Time, err error) {
	oldest, low, err := b.oldest(sh, qs, low)
	if err != nil {
		b.Fatal(err)
		return at, err
	}
	dependsOn, _ := sh.Run(journal.Lazy, func(tx *kernel.Tx) error {
		qs.Consumption.Low = max(qs.Consumption.Low, low)
		tx.DependOn(sh.Stream.Last())
		return nil
	})
	if leased != 0 && (oldest == 0 || leased < oldest) {
		oldest = leased
	}
	if oldest != 0 {
		at = clock.Time(oldest)
	}
	dependsOn.Wait()
	return at, nil
}

// oldest finds when the oldest message of a backlog was published; 0: it is empty. It does not
// find those of blocked groups. In the main lane it begins at low; next is where the next
// search may begin.
func (b *Backlogs) oldest(sh *Shard, qs *queues.Queue, low uint64) (sent int64, next uint64, err error) {
	next = low
	keys := layout.NewKeys(sh.ID, qs.Incarnation)
	for _, lane := range []layout.Lane{layout.MainLane, layout.DelayedLane, layout.MovedLane} {
		from := uint64(0)
		if lane == layout.MainLane {
			from = low
		}
		err := store.Each(b.Store, keys.Lane(lane, from), func(key, value []byte) error {
			at, ok := message.RecordSent(value)
			if ok && (sent == 0 || at < sent) {
				sent = at
			}
			if lane == layout.MainLane {
				next = layout.KeySequence(key)
			}
			return store.ErrStop
		})
		if err != nil {
			return 0, low, err
		}
	}
	err = store.Each(b.Store, keys.ListedFrom(0), func(key, value []byte) error {
		listing, err := layout.DecodeListing(value)
		if err != nil {
			return err
		}
		record, _, err := b.Store.Get(nil, keys.Record(listing.Lane, layout.KeySequence(key)))
		if err != nil {
			return err
		}
		if at, ok := message.RecordSent(record); ok && (sent == 0 || at < sent) {
			sent = at
		}
		return store.ErrStop
	})
	return sent, next, err
}

// withBacklog runs f under the lock of a subscription's shard, and returns once everything that
// f saw and did is durable. If there is no backlog, f is not run. Errors: NotFound, f's.
func (b *Backlogs) withBacklog(name arn.ARN, f func(sh *Shard, sub *topic.Subscription, qs *queues.Queue) error) error {
	sh := b.ShardOf(topicOf(name))
	return sh.RunDurableReads(func(*kernel.Tx) error {
		sub, ok := sh.subscription(name)
		if !ok {
			return topic.ErrNoSubscription
		}
		qs := sh.BacklogOf(sub)
		if qs == nil {
			return nil
		}
		sh.FlushAppended()
		return f(sh, sub, qs)
	})
}

// RetryNow makes a delivery that waits for its next attempt due now; changed is false if it is
// already due or in flight. Errors: NotFound.
func (b *Backlogs) RetryNow(ctx context.Context, sub arn.ARN, id string) (changed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	name, err := parseDeliveryID(id)
	if err != nil {
		return false, err
	}
	found := false
	err = b.withBacklog(sub, func(sh *Shard, _ *topic.Subscription, qs *queues.Queue) error {
		found = true
		r, err := sh.Do(qs, sh.Now(), queue.MakeDueNow{Lane: name.Lane, Sequence: name.Sequence})
		changed = r.Changed
		return err
	})
	if errors.Is(err, queue.ErrGone) || err == nil && !found {
		return false, ErrNoDelivery
	}
	return changed, err
}

// operatorStep bounds the deliveries that one commit of an operator's command changes, and
// those that one scan lists.
const operatorStep = 512

// RetryAllNow makes every delivery that waits for its next attempt due now, and returns how many
// these were. It makes a commit for each 512 of them; if it fails, or ctx ends, some of them are
// due and the others unchanged. Errors: NotFound.
func (b *Backlogs) RetryAllNow(ctx context.Context, sub arn.ARN) (n int, err error) {
	c := retryCursor{more: true}
	for c.more && err == nil {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		c.more = false // where there is no backlog, too
		err = b.withBacklog(sub, func(sh *Shard, _ *topic.Subscription, qs *queues.Queue) error {
			now := sh.Now()
			found, err := c.next(b.Store, qs, now)
			if err != nil {
				return err
			}
			for _, cmd := range found {
				r, err := sh.Do(qs, now, cmd)
				if err != nil {
					return err
				}
				if r.Changed {
					n++
				}
			}
			return nil
		})
	}
	return n, err
}

// retryCursor is how far RetryAllNow has come.
type retryCursor struct {
	began int64 // when its first step was
	last  layout.State
	more  bool // deliveries follow
}

// next scans a part of a backlog, and returns the commands that make due what waits at now and was
// not attempted since the first step.
func (c *retryCursor) next(r store.Reader, qs *queues.Queue, now int64) (found []queue.MakeDueNow, err error) {
	if c.began == 0 {
		c.began, c.last.Due = now, now+1
	}
	keys, grouped := qs.Machine.Keys(), ofFIFOTopic(qs.ARN)
	span := keys.DueFrom(c.last.Due, c.last.Sequence)
	if grouped {
		span = keys.HeldFrom(c.last.Lane, c.last.Sequence)
	}
	seen := 0
	err = store.Each(r, span, func(key, value []byte) error {
		p, err := layout.DecodeState(key, value)
		if err != nil {
			return err
		}
		if seen++; seen > operatorStep {
			c.more = true
			return store.ErrStop
		}
		if p.Due > now && p.Received <= c.began { // else it was attempted since
			cmd := queue.MakeDueNow{Lane: p.Lane, Sequence: p.Sequence}
			if !grouped { // the machine reads the state of a grouped message itself
				cmd.State = bytes.Clone(value)
			}
			found = append(found, cmd)
		}
		p.Sequence++
		c.last = p
		return nil
	})
	return found, err
}

// Waiting is a cursor over the pending deliveries of a subscription that were published before
// its first step. To begin, only Subscription is set.
type Waiting struct {
	Subscription arn.ARN

	begun bool
	fresh bool // the scheduled deliveries were listed, or are not apart from the others
	below uint64
	last  layout.State // how far it has come
}

// Next lists the next deliveries, up to 512; none: it is at the end. Errors: NotFound.
func (b *Backlogs) Next(ctx context.Context, w *Waiting) (ids []string, err error) {
	for more := true; more && len(ids) == 0 && err == nil; {
		more = false
		err = b.withBacklog(w.Subscription, func(_ *Shard, _ *topic.Subscription, qs *queues.Queue) error {
			fifo := ofFIFOTopic(qs.ARN) // its deliveries are listed by group
			if !w.begun {
				w.begun, w.below, w.fresh = true, qs.Machine.NextSequence(), fifo
			}
			span, peek := w.span(&qs.Machine, fifo), freshState
			if !w.fresh {
				peek = layout.DecodeState
			}
			seen := 0
			err := store.Each(b.Store, span, func(key, value []byte) error {
				p, err := peek(key, value)
				if err != nil {
					return err
				}
				if w.fresh && !fifo && p.Sequence >= w.below {
					return store.ErrStop
				}
				if seen++; seen > operatorStep {
					more = true
					return store.ErrStop
				}
				if _, leased := qs.Machine.Leased(p.Sequence); !leased && p.Sequence < w.below {
					ids = append(ids, DeliveryID{p.Lane, p.Sequence}.String())
				}
				p.Sequence++
				w.last = p
				return nil
			})
			if !more && !w.fresh {
				more, w.fresh, w.last = true, true, layout.State{}
			}
			return err
		})
		if err == nil {
			err = ctx.Err()
		}
	}
	return ids, err
}

// span is the rest of the records to scan.
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

// Peek reads a pending delivery without a lease; Attempt is how many attempts were made.
// Errors: NotFound, ErrUnderWay.
func (b *Backlogs) Peek(ctx context.Context, sub arn.ARN, id string) (*Delivery, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, err := parseDeliveryID(id)
	if err != nil {
		return nil, err
	}
	var d *Delivery
	err = b.withBacklog(sub, func(sh *Shard, s *topic.Subscription, qs *queues.Queue) error {
		d = &Delivery{Subscription: *s, Lease: Lease{Shard: sh, Queue: qs, Queued: queue.Lease{Lane: name.Lane, Sequence: name.Sequence}}}
		d.Feedback = s.Topic().Feedback(s.Protocol)
		record, err := sh.waitingRecord(qs, name)
		if err != nil {
			return err
		}
		if d.Message, err = message.DecodeRecord(record); err != nil {
			return err
		}
		value, _, err := b.Store.Get(nil, qs.Machine.Keys().History(name.Sequence))
		if err != nil {
			return err
		}
		d.History, _ = DecodeHistory(value)
		d.Attempt, d.Cause = d.History.Total, d.History.cause
		return nil
	})
	if err == nil && d == nil {
		err = ErrNoDelivery
	}
	if err == nil {
		if err := b.OpenWaiting(d.Message); err != nil && !fault.Is(err) { // it can be dropped even if its key was deleted
			return nil, err
		}
		if d.Direct() && d.Message.Notice != nil {
			d.Subscription.Endpoint = d.Message.Notice.Token
		}
	}
	return d, err
}

// waitingRecord reads the record of a message that is not leased.
func (sh *Shard) waitingRecord(qs *queues.Queue, id DeliveryID) ([]byte, error) {
	if _, leased := qs.Machine.Leased(id.Sequence); leased {
		return nil, ErrUnderWay
	}
	record, ok, err := sh.module.Store.Get(nil, qs.Machine.Keys().Record(id.Lane, id.Sequence))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, ErrNoDelivery
	}
	return record, nil
}

// Remove ends a delivery that Peek has found, without an attempt: one commit removes it from
// its backlog and adds m, if that is not nil, to the queue dest. It is durable once wait, which
// is never nil, returns. Errors: those of Transfer, which change nothing; NotFound and
// ErrUnderWay if it is not pending any more.
func (b *Backlogs) Remove(ctx context.Context, d *Delivery, dest arn.ARN, m *message.Message, state DeliveryState, reason string) (wait func(), err error) {
	if err := ctx.Err(); err != nil {
		return func() {}, err
	}
	if m != nil {
		if err := b.encryptFor(dest, d, m); err != nil {
			return func() {}, err
		}
	}
	from := d.Shard
	if d.Cause.IsZero() {
		d.Cause = Cause{Reason: reason, Attempt: d.Attempt}
	}
	var c *journal.Commit
	if m != nil {
		outgoing := transfer.Outgoing{Shard: from.Shard, Queue: d.Queue, Lease: d.Queued, Check: func() error { return from.removable(d) }}
		c, err = b.Move(outgoing, b.incoming(d, dest, m, state))
	} else {
		c, err = from.Run(journal.Eager, func(*kernel.Tx) error {
			if err := from.removable(d); err != nil {
				return err
			}
			_, err := from.DoAtomic(d.Queue, from.Now(), queue.Remove{Lane: d.Queued.Lane, Sequence: d.Queued.Sequence})
			if err != nil {
				return err
			}
			if r := from.recipients[d.Subscription.ARN]; r != nil {
				r.Failed(d, d.Attempt, reason)
			}
			b.Removed(d.Queue)
			return nil
		})
	}
	if err != nil {
		c.Wait() // the refusal may depend on it
		return func() {}, err
	}
	b.Finish(d, Ending{State: state, Reason: reason})
	if m != nil {
		b.SinkOf(dest).Arrived(dest, m)
	}
	return c.Wait, nil
}

// removable refuses a delivery that is not pending any more.
func (sh *Shard) removable(d *Delivery) error {
	if d.Queue.Ended() {
		return topic.ErrNoSubscription
	}
	sh.FlushAppended()
	_, err := sh.waitingRecord(d.Queue, DeliveryID{d.Queued.Lane, d.Queued.Sequence})
	return err
}
