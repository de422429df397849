package queues

import (
	"context"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/layout"
)

const (
	// purgeCooldown is how long after a purge a queue cannot be purged again,
	// in milliseconds.
	purgeCooldown = int64(60 * time.Second / time.Millisecond)
	// formerKept is for how many purges a receipt handle is recognised as that of a removed
	// message. Older ones are invalid.
	formerKept = 8
)

// PurgeQueue removes all messages of a queue, those in flight included, in constant time: the
// queue gets a new incarnation, and a range tombstone deletes the records of the old one.
// Deduplication starts over, sequence numbers continue, and long polls go on waiting. Errors:
// QueueDoesNotExist; PurgeQueueInProgress within 60 s of the last purge, with
// Options.Cooldowns; ctx's.
func (q *Queues) PurgeQueue(ctx context.Context, a arn.ARN) error {
	return q.WithCatalog(ctx, a, func(sh *Shard) error {
		old, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		now := sh.Now()
		if q.options.Cooldowns && old.Record.Purged != 0 && now-old.Record.Purged < purgeCooldown {
			return ErrPurging.With(a.Resource)
		}
		record := *old.Record
		record.First = 0 // deduplication starts over
		record.Incarnation, record.Purged = layout.Incarnation(sh.NextIncarnation()), now
		former := record.Former[max(0, len(record.Former)-formerKept+1):]
		record.Former = append(slices.Clone(former), old.Incarnation)

		waiters := old.waiters
		old.waiters = waiterList{}
		sh.Drop(old)
		qs := sh.addQueue(a, &record, old.Machine.Config())
		qs.Machine.ContinueAt(old.Machine.NextSequence())
		qs.waiters = waiters
		for w := waiters.first; w != nil; w = w.next {
			w.queue = qs
		}
		q.Hooks.Purged(a)
		sh.EmitEvent(QueueEvent{Queue: a, Kind: MessagesChanged, At: now})
		sh.writeQueue(qs)
		return nil
	})
}

// purged reports whether a receipt handle is of a message that a purge of the
// queue has removed.
func (sh *Shard) purged(qs *Queue, handle string) bool {
	return slices.ContainsFunc(qs.Record.Former, func(inc layout.Incarnation) bool {
		_, ok := sh.module.handles.Open(handle, sh.ID, inc)
		return ok
	})
}
