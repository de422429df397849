package shard

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// QueueGauges are what a queue holds at a moment.
type QueueGauges struct {
	queue.Counts
	OldestAge      time.Duration // of the message that was sent first; 0: there is none
	GroupsInFlight int           // groups that have messages in flight, or tenants that do
	NoisyGroups    int           // tenants that are noisy
}

// QueueGauges measures a queue, at a cost that does not depend on how much is in
// it. Errors: QueueDoesNotExist.
func (e *Engine) QueueGauges(_ context.Context, a arn.ARN) (QueueGauges, error) {
	g, told, err := e.measure(a)
	told.wait()
	return g, err
}

// SampleQueue is QueueGauges for statistics: it does not wait until what it tells
// is durable.
func (e *Engine) SampleQueue(a arn.ARN) (QueueGauges, error) {
	g, _, err := e.measure(a)
	return g, err
}

// HoldingQueues are the queues that have messages.
func (e *Engine) HoldingQueues() (all []arn.ARN) {
	for _, sh := range e.shards {
		sh.mu.Lock()
		now := sh.now()
		for a, qs := range sh.queues {
			if c := qs.machine.Counts(now); c.Visible+c.InFlight+c.Delayed > 0 {
				all = append(all, a)
			}
		}
		sh.mu.Unlock()
	}
	return all
}

// measure is QueueGauges without the wait until what it tells is durable, with
// the group.
func (e *Engine) measure(a arn.ARN) (g QueueGauges, told *group, err error) {
	sh := e.shardOf(a)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	told = sh.catalog
	qs, err := sh.lookup(a)
	if err == nil {
		now := sh.now()
		g.Counts = sh.counts(qs, now)
		sh.commit(false)
		g.GroupsInFlight, g.NoisyGroups = qs.machine.GroupsInFlight()
		if oldest := sh.oldest(qs); oldest != 0 {
			g.OldestAge = time.Duration(now-oldest) * time.Millisecond
		}
		told = sh.last
	}
	return g, told, err
}

// oldest is when the oldest message of a queue was sent, in epoch milliseconds.
func (sh *shard) oldest(qs *queueState) (sent int64) {
	if qs.machine.Empty() {
		return 0
	}
	sh.readable()
	keys := qs.machine.Keys()
	note := func(at int64) {
		if sent == 0 || at < sent {
			sent = at
		}
	}
	first := func(span layout.Span, f func(key, value []byte)) (sequence uint64) {
		sequence = qs.machine.NextSequence() // of those to come
		err := each(sh.engine.store, span, func(key, value []byte) bool {
			sequence = layout.KeySequence(key)
			f(key, value)
			return false
		})
		if err != nil {
			sh.engine.fatal(err)
		}
		return sequence
	}
	record := func(_, value []byte) {
		if at, ok := message.RecordSent(value); ok {
			note(at)
		}
	}
	mainLow, delayedLow := qs.machine.Lows()
	qs.machine.Passed(
		first(keys.Lane(layout.MainLane, mainLow), record),
		first(keys.Lane(layout.DelayedLane, delayedLow), record),
	)
	first(keys.Of(layout.KindExpiry), func(key, _ []byte) { note(layout.KeyTime(key)) })
	return sent
}
