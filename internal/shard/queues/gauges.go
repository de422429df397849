package queues

import (
	"context"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/shard/kernel"
)

// QueueGauges are the gauges of a queue at a moment.
type QueueGauges struct {
	queue.Counts
	// OldestAge is the age of the oldest message, since its send or since the move that
	// made it a dead letter; 0: there is none. Messages of a standard queue that were
	// received three times do not count. Source: ApproximateAgeOfOldestMessage in the SQS
	// developer guide.
	OldestAge      time.Duration
	GroupsInFlight int // message groups (of a standard queue: tenants) with messages in flight
	NoisyGroups    int // noisy tenants of a fair queue

	// Quiet and QuietOldestAge are Counts and OldestAge without the noisy tenants.
	Quiet          queue.Counts
	QuietOldestAge time.Duration

	Created time.Time
}

// QueueGauges measures a queue, at a cost that does not depend on its length. Errors:
// QueueDoesNotExist.
func (q *Queues) QueueGauges(ctx context.Context, a arn.ARN) (QueueGauges, error) {
	if err := ctx.Err(); err != nil {
		return QueueGauges{}, err
	}
	g, dependsOn, err := q.measure(a)
	dependsOn.Wait()
	return g, err
}

// SampleQueue is QueueGauges for metrics: it does not wait until the values are durable, so that
// there are metrics while the disk hangs.
func (q *Queues) SampleQueue(a arn.ARN) (QueueGauges, error) {
	g, _, err := q.measure(a)
	return g, err
}

// NonEmptyQueues are the queues that have messages.
func (q *Queues) NonEmptyQueues() (all []arn.ARN) {
	for _, sh := range q.Shards {
		sh.View(func() {
			now := sh.Now()
			for a, qs := range sh.loaded { // of the others none has
				if c := qs.Machine.Counts(now); c.Visible+c.InFlight+c.Delayed > 0 {
					all = append(all, a)
				}
			}
		})
	}
	return all
}

// measure is QueueGauges without waiting for dependsOn, the commit that the answer depends on.
func (q *Queues) measure(a arn.ARN) (g QueueGauges, dependsOn *journal.Commit, err error) {
	sh := q.ShardOf(a)
	dependsOn, err = sh.Run(journal.Lazy, func(tx *kernel.Tx) error {
		if created, ok := sh.isParked(a); ok {
			g.Created = time.UnixMilli(created)
			tx.DependOn(sh.Stream.Last())
			return sh.module.Injected(a)
		}
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		now := sh.Now()
		g.Counts, g.Created = sh.Counts(qs, now), time.UnixMilli(qs.Record.Created)
		tx.Append()
		groups := qs.Machine.Groups(now)
		g.GroupsInFlight, g.NoisyGroups, g.Quiet = groups.InFlight, len(groups.Noisy), groups.Quiet
		g.OldestAge = sh.oldestAge(qs, now, nil)
		g.QuietOldestAge = g.OldestAge
		if len(groups.Noisy) > 0 {
			g.QuietOldestAge = sh.oldestAge(qs, now, groups.Noisy)
		}
		tx.DependOn(sh.Stream.Last())
		return nil
	})
	return g, dependsOn, err
}

// Known is how many queues the shard has, empty ones included.
func (sh *Shard) Known() int { return len(sh.loaded) + sh.parked.Len() }

// EachLoaded calls f with the queues that are not parked, which are all with messages and some
// empty ones, in no order, under the shard's lock.
func (sh *Shard) EachLoaded(f func(qs *Queue)) {
	for _, qs := range sh.loaded {
		f(qs)
	}
}

// EachSource calls f with each dead-letter queue of the shard's queues, and the names of these,
// in no order, until f returns false, under the shard's lock. f must not keep the names.
func (sh *Shard) EachSource(f func(deadLetter arn.ARN, sources []string) bool) {
	for deadLetter, names := range sh.sources {
		if !f(deadLetter, names) {
			return
		}
	}
}
