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
func (e *Engine) QueueGauges(_ context.Context, a arn.ARN) (g QueueGauges, err error) {
	sh := e.shardOf(a)
	sh.mu.Lock()
	told := sh.catalog
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
	sh.mu.Unlock()
	told.wait()
	return g, err
}

// oldest is when the oldest message of a queue was sent, in epoch milliseconds.
func (sh *shard) oldest(qs *queueState) (sent int64) {
	sh.readable()
	keys := qs.machine.Keys()
	note := func(at int64) {
		if sent == 0 || at < sent {
			sent = at
		}
	}
	first := func(span layout.Span, f func(key, value []byte)) {
		err := each(sh.engine.store, span, func(key, value []byte) bool {
			f(key, value)
			return false
		})
		if err != nil {
			sh.engine.fatal(err)
		}
	}
	record := func(_, value []byte) {
		if at, ok := message.RecordSent(value); ok {
			note(at)
		}
	}
	mainLow, delayedLow := qs.machine.Lows()
	first(keys.Lane(layout.MainLane, mainLow), record)
	first(keys.Lane(layout.DelayedLane, delayedLow), record)
	first(keys.Expiries(), func(key, _ []byte) { note(layout.KeyTime(key)) })
	return sent
}
