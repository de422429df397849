package shard

import (
	"context"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue/layout"
)

const (
	// purgeCooldown is how long after a purge a queue cannot be purged again,
	// in milliseconds.
	purgeCooldown = int64(60 * time.Second / time.Millisecond)
	// formerKept is how many purges a receipt handle outlives: to its holder
	// the message is then gone, and the handle is not a wrong one.
	formerKept = 8
)

// PurgeQueue removes all messages of a queue, those in flight included, at a
// cost that does not depend on how many there are: the queue begins a new
// incarnation and the records of the old one are dropped by range. Receives
// that wait go on waiting. Errors: QueueDoesNotExist, PurgeQueueInProgress.
func (e *queueEngine) PurgeQueue(ctx context.Context, a arn.ARN) error {
	return e.withCatalog(ctx, a, func(sh *queueShard) error {
		old, err := sh.lookup(a)
		if err != nil {
			return err
		}
		now := sh.now()
		if e.options.Cooldowns && old.record.Purged != 0 && now-old.record.Purged < purgeCooldown {
			return fault.Newf(fault.PurgeQueueInProgress, "Only one PurgeQueue operation on %s is allowed every 60 seconds.", a.Resource)
		}
		sh.meta.Incarnation++
		record := *old.record
		if record.First == 0 {
			record.First = record.Incarnation
		}
		record.Incarnation, record.Purged = layout.Incarnation(sh.meta.Incarnation), now
		former := record.Former[max(0, len(record.Former)-formerKept+1):]
		record.Former = append(slices.Clone(former), old.incarnation)

		waiters := old.waiters
		old.waiters = waiterList{}
		sh.drop(old)
		qs := sh.newQueue(a, &record, old.machine.Config())
		qs.machine.ContinueFrom(&old.machine)
		qs.waiters, qs.dedup = waiters, old.dedup
		for w := waiters.first; w != nil; w = w.next {
			w.queue = qs
		}
		e.hooks.purged(a)
		return sh.writeQueue(qs)
	})
}

// purged reports whether a receipt handle is of a message that a purge of the
// queue has removed.
func (sh *queueShard) purged(qs *queueState, handle string) bool {
	return slices.ContainsFunc(qs.record.Former, func(inc layout.Incarnation) bool {
		_, ok := sh.engine.handles.open(handle, sh.id, inc)
		return ok
	})
}
