package backlog

import (
	"cmp"
	"context"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/transfer"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// Attempt is one try to deliver a message to a subscription's endpoint.
type Attempt struct {
	At      time.Time     `json:"at"`      // when it began
	Outcome string        `json:"outcome"` // "success", "client-error", "server-error", "expired"
	Status  int           `json:"status"`  // HTTP status; 0 where there is none
	Detail  string        `json:"detail"`  // why it failed, in a few words; no body, no secret
	Latency time.Duration `json:"latency"`
}

// DeliveryState says where a delivery stands.
type DeliveryState string

// The states of a delivery.
const (
	DeliveryPending    DeliveryState = "pending"     // waiting for its next attempt
	DeliveryInFlight   DeliveryState = "in-flight"   // an attempt is under way
	DeliveryDelivered  DeliveryState = "delivered"   // done
	DeliveryDeadLetter DeliveryState = "dead-letter" // moved to the dead-letter queue
	DeliveryDropped    DeliveryState = "dropped"     // failed for good, and there is no dead-letter queue that takes it
)

// BacklogInfo is an operator's view of what a subscription is owed.
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
	// ID names the delivery among those of its subscription while it waits or is
	// under way; empty afterwards.
	ID            string
	MessageID     string
	Subscription  arn.ARN
	State         DeliveryState
	Attempts      int       // made so far
	NextAttemptAt time.Time // zero when there is none
	PublishedAt   time.Time
	FinishedAt    time.Time // zero while it goes on
	History       []Attempt // oldest first: the first 20 and the last 80
	// Reason is why, for dead-letter and dropped, and for what waits for its
	// dead-letter queue.
	Reason string
}

// Deliveries lists what waits in a subscription's backlog, next due first, and
// then what was finished recently, latest first: at most limit in all. Errors: NotFound.
func (e *Backlogs) Deliveries(ctx context.Context, sub arn.ARN, limit int) ([]DeliveryInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	var infos []DeliveryInfo
	ok := false
	sh := e.shardOfSubscription(sub)
	err := sh.RunDurable(func(tx *kernel.Tx) (err error) {
		tx.DependOn(sh.Log.Last())
		s, found := sh.deliverable(sub)
		if ok = found; ok {
			if qs := sh.BacklogOf(s); qs != nil {
				infos, err = e.pendingDeliveries(sh, qs, limit)
			}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	infos = append(infos, e.Finished.Of(e.Clock.Now(), sub, limit-len(infos))...)
	if !ok && len(infos) == 0 {
		return nil, transfer.ErrNoSubscription
	}
	return infos, nil
}

func (e *Backlogs) pendingDeliveries(sh *Shard, qs *queues.Queue, limit int) ([]DeliveryInfo, error) {
	sh.Readable()
	keys := layout.NewKeys(sh.ID, qs.Incarnation)
	var infos []DeliveryInfo
	add := func(p layout.State, leased bool) error {
		record, ok, err := e.Store.Get(nil, keys.Record(p.Lane, p.Sequence))
		if err != nil || !ok {
			return err
		}
		m, err := message.DecodeRecord(record)
		if err != nil {
			return err
		}
		value, _, err := e.Store.Get(nil, keys.History(p.Sequence))
		if err != nil {
			return err
		}
		h, _ := DecodeHistory(value)
		info := DeliveryInfo{
			ID: DeliveryID{p.Lane, p.Sequence}.String(), MessageID: m.ID.String(), Subscription: qs.ARN, State: DeliveryPending,
			Attempts: h.Total, PublishedAt: clock.Time(m.Sent), History: h.attempts(),
			Reason: h.cause.Reason,
		}
		if leased {
			info.State = DeliveryInFlight
		} else {
			info.NextAttemptAt = clock.Time(max(p.Due, m.Sent))
		}
		infos = append(infos, info)
		return nil
	}
	leases := qs.Machine.Leases()
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
		err := store.Each(e.Store, span, func(key, value []byte) bool {
			p, err := peek(key, value)
			if _, leased := qs.Machine.Leased(p.Sequence); err == nil && !leased {
				err = add(p, false)
			}
			failed = err
			return err == nil && len(infos) < limit
		})
		failed = cmp.Or(failed, err)
	}
	walk(qs.Machine.Keys().Of(layout.KindDue), layout.DecodeState)
	walk(qs.Machine.HeadSpan(), freshState)
	if topicFIFO(qs) { // group by group
		walk(qs.Machine.Keys().Of(layout.KindRecord), func(key, _ []byte) (layout.State, error) { return e.peekGrouped(&keys, key) })
	}
	return infos, failed
}

// freshState is that of a message that was never received, by the key of its record.
func freshState(key, _ []byte) (layout.State, error) {
	return layout.State{Sequence: layout.KeySequence(key), Lane: layout.KeyLane(key)}, nil
}

// peekGrouped reads what waits of a FIFO topic's message at the key of its record.
func (e *Backlogs) peekGrouped(keys *layout.Keys, key []byte) (layout.State, error) {
	p, _ := freshState(key, nil)
	state, returned, err := e.Store.Get(nil, keys.HeldState(p.Lane, p.Sequence))
	if err != nil || !returned {
		return p, err
	}
	return layout.DecodeState(keys.HeldState(p.Lane, p.Sequence), state)
}
