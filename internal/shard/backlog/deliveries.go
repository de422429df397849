package backlog

import (
	"bytes"
	"context"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// Attempt is one try to deliver a message to a subscription's endpoint.
type Attempt struct {
	At      time.Time     `json:"at"`      // when it began
	Outcome string        `json:"outcome"` // "success", "client-error", "server-error"
	Status  int           `json:"status"`  // HTTP status; 0 where there is none
	Detail  string        `json:"detail"`  // why it failed, in a few words; no body, no secret
	Latency time.Duration `json:"latency"`
}

// Ending is how a delivery ends.
type Ending struct {
	Attempt Attempt // the last one; without an Outcome: it ends without an attempt
	State   DeliveryState
	Reason  string // why it was not delivered; empty: it was
}

// DeliveryState is the state of a delivery.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending    DeliveryState = "pending"     // waiting for its next attempt
	DeliveryInFlight   DeliveryState = "in-flight"   // an attempt is under way
	DeliveryDelivered  DeliveryState = "delivered"   // done
	DeliveryDeadLetter DeliveryState = "dead-letter" // moved to the dead-letter queue
	DeliveryDropped    DeliveryState = "dropped"     // failed for good, and no dead-letter queue took it
)

// BacklogInfo is an operator's view of the backlog of a subscription.
type BacklogInfo struct {
	Subscription topic.Subscription
	Due          int64     // deliveries that could be attempted now
	Waiting      int64     // for their next attempt's time
	InFlight     int64     // given to the consumer
	Oldest       time.Time // publish of the oldest message; zero: there is none
	Now          time.Time // by the server's clock
}

// DeliveryInfo is an operator's view of one delivery.
type DeliveryInfo struct {
	// ID names the delivery among those of its subscription while it is pending or in
	// flight; empty afterwards.
	ID            string
	MessageID     string
	State         DeliveryState
	Attempts      int       // made so far
	NextAttemptAt time.Time // zero when there is none
	PublishedAt   time.Time
	FinishedAt    time.Time // zero while it continues
	History       []Attempt // oldest first: the first 20 and the last 80
	// Reason is why the delivery failed, of one that is a dead letter, dropped, or waiting
	// for its dead-letter queue.
	Reason string
	Size   int // of one that is pending or in flight, in bytes; an upper bound
}

// Deliveries lists the deliveries in a subscription's backlog, next due first, and then those
// that finished recently, latest first: at most limit in all. Errors: NotFound.
func (b *Backlogs) Deliveries(ctx context.Context, sub arn.ARN, limit int) ([]DeliveryInfo, error) {
	infos, _, err := b.DeliveriesFrom(ctx, sub, DeliveryPlace{}, StageFinished, limit)
	return infos, err
}

// DeliveryStage is a part of the list of a subscription's deliveries.
type DeliveryStage uint8

// The parts, in their order.
const (
	StageInFlight DeliveryStage = iota // in flight
	StageDue                           // scheduled: delayed, or attempted and to be retried
	StageFresh                         // not attempted yet; of a FIFO topic all that are pending, by group
	StageFinished
)

// DeliveryPlace is a position in the list of a subscription's deliveries. The zero value is its
// beginning. As deliveries go on between two pages, some may be left out, or listed twice.
type DeliveryPlace struct {
	Stage DeliveryStage
	A, B  uint64
}

// DeliveriesFrom is Deliveries from a place on, up to the end of a stage. more is where the next
// page begins; nil: this is the last one.
func (b *Backlogs) DeliveriesFrom(ctx context.Context, sub arn.ARN, from DeliveryPlace, until DeliveryStage, limit int) (infos []DeliveryInfo, more *DeliveryPlace, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	ok := false
	sh := b.ShardOf(topicOf(sub))
	err = sh.RunDurableReads(func(*kernel.Tx) (err error) {
		s, found := sh.deliverable(sub)
		if ok = found; ok {
			if qs := sh.BacklogOf(s); qs != nil && from.Stage < StageFinished {
				infos, more, err = b.pendingDeliveries(sh, qs, from, min(until, StageFresh), limit)
			}
		}
		return err
	})
	if err != nil || more != nil {
		return infos, more, err
	}
	if until >= StageFinished {
		skipped := 0
		if from.Stage == StageFinished {
			skipped = int(min(from.A, finishedPerSubscription)) // a caller may send any number
		}
		ended := b.Finished.Of(b.Clock.Now(), sub, finishedPerSubscription)
		ok = ok || len(ended) > 0
		for _, info := range ended[min(skipped, len(ended)):] {
			if len(infos) == limit {
				more = &DeliveryPlace{Stage: StageFinished, A: uint64(skipped)}
				break
			}
			skipped++
			infos = append(infos, info)
		}
	}
	if !ok && len(infos) == 0 {
		return nil, nil, topic.ErrNoSubscription
	}
	return infos, more, nil
}

// Delivery reports one delivery that is pending or in flight. Errors: NotFound.
func (b *Backlogs) Delivery(ctx context.Context, sub arn.ARN, id string) (info DeliveryInfo, err error) {
	if err := ctx.Err(); err != nil {
		return info, err
	}
	name, err := parseDeliveryID(id)
	if err != nil {
		return info, err
	}
	found := false
	err = b.withBacklog(sub, func(_ *Shard, _ *topic.Subscription, qs *queues.Queue) (err error) {
		p, leased, err := b.stateOf(qs, name)
		if err == nil {
			info, found, err = b.deliveryAt(qs, p, leased)
		}
		return err
	})
	if err == nil && !found {
		err = ErrNoDelivery
	}
	return info, err
}

// stateOf finds the state of a message of a backlog.
func (b *Backlogs) stateOf(qs *queues.Queue, name DeliveryID) (p layout.State, leased bool, err error) {
	p = layout.State{Sequence: name.Sequence, Lane: name.Lane}
	if _, leased = qs.Machine.Leased(name.Sequence); leased {
		return p, true, nil
	}
	keys := qs.Machine.Keys()
	if ofFIFOTopic(qs.ARN) {
		p, err = b.peekGrouped(keys, bytes.Clone(keys.Record(name.Lane, name.Sequence)))
		return p, false, err
	}
	due, scheduled, err := b.Store.Get(nil, keys.DueOf(name.Sequence))
	if err == nil && scheduled {
		p.Due = int64(layout.Number(due))
	}
	return p, false, err
}

// deliveryAt reads a delivery; found is false if it has ended.
func (b *Backlogs) deliveryAt(qs *queues.Queue, p layout.State, leased bool) (info DeliveryInfo, found bool, err error) {
	keys := layout.NewKeys(qs.Shard.ID, qs.Incarnation)
	record, found, err := b.Store.Get(nil, keys.Record(p.Lane, p.Sequence))
	if err != nil || !found {
		return info, false, err
	}
	m, err := message.DecodeRecord(record)
	if err != nil {
		return info, false, err
	}
	value, _, err := b.Store.Get(nil, keys.History(p.Sequence))
	if err != nil {
		return info, false, err
	}
	h, _ := DecodeHistory(value)
	info = DeliveryInfo{
		ID: DeliveryID{p.Lane, p.Sequence}.String(), MessageID: m.ID.String(), State: DeliveryPending,
		Attempts: h.Total, PublishedAt: clock.Time(m.Sent), History: h.attempts(),
		Reason: h.cause.Reason, Size: m.Size(),
	}
	if leased {
		info.State = DeliveryInFlight
	} else {
		info.NextAttemptAt = clock.Time(max(p.Due, m.Sent))
	}
	return info, true, nil
}

func (b *Backlogs) pendingDeliveries(sh *Shard, qs *queues.Queue, from DeliveryPlace, until DeliveryStage, limit int) (infos []DeliveryInfo, more *DeliveryPlace, err error) {
	sh.FlushAppended()
	keys, fifo := qs.Machine.Keys(), ofFIFOTopic(qs.ARN)
	add := func(p layout.State, leased bool) error {
		info, found, err := b.deliveryAt(qs, p, leased)
		if found {
			infos = append(infos, info)
		}
		return err
	}
	if from.Stage == StageInFlight {
		leases := qs.Machine.Leases()
		for _, l := range leases {
			if l.Sequence < from.A {
				continue
			}
			if len(infos) == limit {
				return infos, &DeliveryPlace{StageInFlight, l.Sequence, 0}, nil
			}
			if err := add(layout.State{Sequence: l.Sequence, Lane: l.Lane}, true); err != nil {
				return nil, nil, err
			}
		}
	}
	// walk adds the pending deliveries of a span; place is the position of one.
	walk := func(stage DeliveryStage, span layout.Span, peek func(key, value []byte) (layout.State, error), place func(p layout.State) (first, second uint64)) {
		if from.Stage > stage || until < stage || err != nil || more != nil {
			return
		}
		err = store.Each(b.Store, span, func(key, value []byte) error {
			p, err := peek(key, value)
			if _, leased := qs.Machine.Leased(p.Sequence); err != nil || leased {
				return err
			}
			if len(infos) == limit {
				first, second := place(p)
				more = &DeliveryPlace{stage, first, second}
				return store.ErrStop
			}
			return add(p, false)
		})
	}
	// at is where to begin in a stage: at its first delivery, or where the last page ended.
	at := func(stage DeliveryStage) (first, second uint64) {
		if from.Stage == stage {
			return from.A, from.B
		}
		return 0, 0
	}
	first, second := at(StageDue)
	walk(StageDue, keys.DueFrom(int64(first), second), layout.DecodeState, func(p layout.State) (uint64, uint64) { return uint64(p.Due), p.Sequence })
	first, second = at(StageFresh)
	byLane := func(p layout.State) (uint64, uint64) { return uint64(p.Lane), p.Sequence }
	if fifo { // group by group
		walk(StageFresh, keys.RecordsFrom(layout.Lane(first), second), func(key, _ []byte) (layout.State, error) { return b.peekGrouped(keys, key) }, byLane)
		return infos, more, err
	}
	span := qs.Machine.HeadSpan()
	if behind := keys.Lane(layout.MainLane, second); bytes.Compare(behind.Lower, span.Lower) > 0 {
		span = behind
	}
	walk(StageFresh, span, freshState, byLane)
	return infos, more, err
}

// freshState is the state of a message that was never received, by the key of its record.
func freshState(key, _ []byte) (layout.State, error) {
	return layout.State{Sequence: layout.KeySequence(key), Lane: layout.KeyLane(key)}, nil
}

// peekGrouped reads the state of a pending message of a FIFO topic, by the key of its record.
func (b *Backlogs) peekGrouped(keys *layout.Keys, key []byte) (layout.State, error) {
	p, _ := freshState(key, nil)
	state, returned, err := b.Store.Get(nil, keys.HeldState(p.Lane, p.Sequence))
	if err != nil || !returned {
		return p, err
	}
	return layout.DecodeState(keys.HeldState(p.Lane, p.Sequence), state)
}
