package kernel

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// Lifecycle is how the kernel starts, runs and stops a part: what a module has in one shard, which
// owns some kinds of records and their state in memory, guarded by the shard's lock. The parts of
// a shard are called in the order in which they were added, and each may depend on those before
// it. A module whose state is not split is its own part, in a shard of its own.
type Lifecycle interface {
	// Load reads its state: the catalog, but not the content of queues. Nothing else runs yet.
	Load() error
	// Recover completes or undoes commands between two shards that a crash has interrupted,
	// before anything else continues. All shards are loaded. It takes the locks that it needs.
	Recover() error
	// Resume continues where the last process stopped. It is called in a transaction.
	Resume()
	// NextDue is when it next has work to do, in epoch milliseconds; 0: never.
	NextDue() int64
	// Tick does a bounded part of the work that is due at now, in epoch milliseconds; if work
	// is left, NextDue says so. It is called in a transaction.
	Tick(now int64)
	// Close ends its timers, and writes the state that is only in memory. It is called in the
	// last transaction, when no background goroutine runs any more.
	Close()
}

// NopLifecycle does nothing; for embedding.
type NopLifecycle struct{}

// Load implements Lifecycle.
func (NopLifecycle) Load() error { return nil }

// Recover implements Lifecycle.
func (NopLifecycle) Recover() error { return nil }

// Resume implements Lifecycle.
func (NopLifecycle) Resume() {}

// NextDue implements Lifecycle.
func (NopLifecycle) NextDue() int64 { return 0 }

// Tick implements Lifecycle.
func (NopLifecycle) Tick(int64) {}

// Close implements Lifecycle.
func (NopLifecycle) Close() {}

// Dirty is an object that a command has changed (see Shard.MarkDirty), and that takes part in
// the commit: the methods are called in this order.
type Dirty interface {
	// FinishBytes bounds what Finish writes, in bytes.
	FinishBytes() int
	// Finish writes what is written once per commit, such as counters, no matter how many of
	// its commands have changed the object. commit is the commit's number. It is called by
	// journal.Append, with the shard's lock held.
	Finish(commit uint64, b *mutation.Batch)
	// Appended notes the commit with which the change becomes durable.
	Appended(c *journal.Commit)
	// Clean ends the change: the next one marks the object dirty again.
	Clean()
	// Committed handles the consequences of the change, such as serving waiting receives. The
	// commit is appended, but need not be durable yet. It may change the shard again.
	Committed()
}

// Part is what a module has in one shard.
type Part interface{ Base() *Shard }

// Parts are the parts of a module in all shards.
type Parts[S Part] struct{ Shards [Shards]S }

// ShardOf is the part in the shard of a queue, topic or function.
func (p *Parts[S]) ShardOf(a arn.ARN) S { return p.Shards[ShardNumber(a)] }

// WithCatalog runs f under the lock of a's shard, for commands that change the set of queues,
// topics and functions. It returns once all that f read and changed is durable. It does
// nothing if ctx has ended.
func (p *Parts[S]) WithCatalog(ctx context.Context, a arn.ARN, f func(sh S) error) error {
	s := p.ShardOf(a)
	return s.Base().change(ctx, func() error { return f(s) })
}

// ReadCatalog is WithCatalog for commands that read that set: what they change besides, such as
// counts, is no change of it.
func (p *Parts[S]) ReadCatalog(ctx context.Context, a arn.ARN, f func(sh S) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s := p.ShardOf(a)
	sh := s.Base()
	return sh.RunDurable(func(tx *Tx) error {
		tx.DependOn(sh.LastCatalogCommit)
		return f(s)
	})
}
