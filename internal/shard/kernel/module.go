package kernel

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// Module is the part of a module in one shard. It owns some kinds of records, and what
// is in memory of them, guarded by the shard's lock. The modules of a shard are called
// in the order in which they were added, and each may depend on those before.
type Module interface {
	// Load reads its state: what exists, but not what is in it. Nothing else runs yet.
	Load() error
	// Recover completes or undoes what a crash has interrupted between two shards, before
	// anything else continues. All shards are loaded. It takes the locks that it needs.
	Recover() error
	// Resume continues where the last process stopped. It is called in a transaction.
	Resume()
	// NextDue is when it has something to do, in epoch milliseconds; 0: never.
	NextDue() int64
	// Tick does a bounded part of what is due at now, in epoch milliseconds; NextDue then
	// says that there is more. It is called in a transaction.
	Tick(now int64)
	// Close ends its timers, and writes what only memory has. It is called in the last
	// transaction, once nothing runs in the background any more.
	Close()
}

// NopModule is a module that has nothing to do; for embedding.
type NopModule struct{}

// Load implements Module.
func (NopModule) Load() error { return nil }

// Recover implements Module.
func (NopModule) Recover() error { return nil }

// Resume implements Module.
func (NopModule) Resume() {}

// NextDue implements Module.
func (NopModule) NextDue() int64 { return 0 }

// Tick implements Module.
func (NopModule) Tick(int64) {}

// Close implements Module.
func (NopModule) Close() {}

// Dirty is an object that a command has changed (see Shard.MarkDirty), and that takes part
// in the commit: the methods are called in this order.
type Dirty interface {
	// FinishBytes bounds what Finish writes, in bytes.
	FinishBytes() int
	// Finish writes what is written once per commit, such as counters, however many of its
	// commands have changed the object: commit is the commit's number. It is called by
	// journal.Append, with the shard's lock held.
	Finish(commit uint64, b *mutation.Batch)
	// Appended notes with which commit the change becomes durable.
	Appended(c *journal.Commit)
	// Clean ends the change: the next one marks the object dirty again.
	Clean()
	// Committed does what follows from the change, such as serving waiting receives. The
	// commit is appended and may not be durable yet. It may change the shard again.
	Committed()
}

// Part is a module's part in a shard.
type Part interface{ Base() *Shard }

// Parts are the parts of a module in all shards.
type Parts[S Part] struct{ Shards [Shards]S }

// ShardOf is the part in the shard of a queue, topic or function.
func (p *Parts[S]) ShardOf(a arn.ARN) S { return p.Shards[ShardNumber(a)] }

// WithCatalog runs f under the lock of a's shard, for commands that read or
// change which queues, topics and functions there are. It returns once all
// that f saw and did is durable. Nothing is done once ctx has ended.
func (p *Parts[S]) WithCatalog(ctx context.Context, a arn.ARN, f func(sh S) error) error {
	s := p.ShardOf(a)
	return s.Base().change(ctx, func() error { return f(s) })
}
