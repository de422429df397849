package shard

import (
	"context"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// module is the part of a module in one shard. It owns some kinds of records, and what
// is in memory of them, guarded by the shard's lock. The modules of a shard are called
// in the order in which they were added, of which each may lean on those before.
type module interface {
	// load reads its state: what exists, but not what is in it. Nothing else runs yet.
	load() error
	// recover brings to an end what a crash has interrupted between two shards, before
	// anything else goes on. All shards are loaded. It takes the locks that it needs.
	recover() error
	// resume goes on where the process before left off. It is called in a transaction.
	resume()
	// nextDue is when it has something to do, in epoch milliseconds; 0: never.
	nextDue() int64
	// tick does what is due, within bounds: what it leaves is due in the next moment. It
	// is called in a transaction.
	tick(now int64)
	// close ends its timers. It is called with the shard's lock held.
	close()
}

// nothing is a module that has nothing to do; for embedding.
type nothing struct{}

func (nothing) load() error    { return nil }
func (nothing) recover() error { return nil }
func (nothing) resume()        {}
func (nothing) nextDue() int64 { return 0 }
func (nothing) tick(int64)     {}
func (nothing) close()         {}

// touched is what a command has changed, and which has to do something for it when the
// command is committed.
type touched interface {
	// room bounds what finish writes, in bytes.
	room() int
	// finish writes what a commit tells once, however many of its commands have changed
	// it. Its caller is the journal, with the shard's lock held.
	finish(commit uint64, b *mutation.Batch)
	// appended notes with which commit the command becomes durable.
	appended(c *journal.Commit)
	// clean notes that the command is over: the next may touch it again.
	clean()
	// committed does what the change asks for. It runs between commands.
	committed()
}

// shardPart is a module's part in a shard.
type shardPart interface{ core() *coreShard }

// parts are the parts of a module in all shards.
type parts[S shardPart] struct{ shards [Shards]S }

// shardOf is the part in the shard of a queue, topic or function.
func (p *parts[S]) shardOf(a arn.ARN) S { return p.shards[shardIndex(a)] }

// withCatalog runs f under the lock of a's shard, for commands that read or
// change which queues, topics and functions there are. It returns once all
// that f saw and did is durable.
func (p *parts[S]) withCatalog(ctx context.Context, a arn.ARN, f func(sh S) error) error {
	s := p.shardOf(a)
	return s.core().change(ctx, func() error { return f(s) })
}
