// Package kernel runs the shards of a node. Each shard owns a part of the state and runs its
// commands one after the other in transactions; the commands of many callers share one commit.
// The modules that are added to the shards define the state. Invariants:
//   - What an answer reports is durable when it is given: the change itself, and
//     every commit that the command read from. A module may answer before its own commit,
//     as queues do for some commands of standard queues; see package shard.
//   - A command's changes are one atomic unit in the journal, over all of its shards.
//   - A failed commit ends the process, and so does a command that panics; the store is
//     the truth at the next start.
package kernel

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/poison"
	"godwit.dev/godwit/internal/store"
)

// Shards is how many shards the state is split into.
const Shards = keyspace.Shards

// Options configure a Kernel.
type Options struct {
	Journal *journal.Journal
	Clock   clock.Clock
	Logger  *slog.Logger // nil: nothing is logged
	// Full reports that the disk is short of space. Nil means never.
	Full func() bool
	// Fatal ends the process after a failure of the store. It must not return to a caller that
	// could answer a request.
	Fatal func(error)
}

// Kernel has all shards of a node and their background goroutines.
type Kernel struct {
	Store     store.Reader
	Clock     clock.Clock
	Logger    *slog.Logger
	Options   Options // that it was made with
	Journal   *journal.Journal
	All       [Shards]*Shard // those that the state is split into by name: not ownShards
	ownShards []*Shard       // of modules whose state is not split; see OwnShard

	Draining <-chan struct{}
	drain    func()          // closes Draining; may be called again
	Running  context.Context // ends when Stopping is closed
	Stopping <-chan struct{}
	stop     context.CancelFunc
	stopOnce sync.Once

	startMu    sync.Mutex // guards the closing of Stopping, and what follows
	background int        // goroutines in the background
	idle       *sync.Cond // none is any more
}

// New makes the shards of a node, without modules.
func New(o Options) *Kernel {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	draining := make(chan struct{})
	k := &Kernel{
		Store: o.Journal.Reader(), Clock: o.Clock, Logger: o.Logger, Options: o, Journal: o.Journal,
		Draining: draining, drain: sync.OnceFunc(func() { close(draining) }),
	}
	k.Running, k.stop = context.WithCancel(context.Background())
	k.Stopping = k.Running.Done()
	k.idle = sync.NewCond(&k.startMu)
	for id := range k.All {
		k.All[id] = newShard(uint16(id), k)
	}
	return k
}

// OwnShard is the shard of modules whose state is not split by the names of queues, topics and
// functions. It has its own stream of the journal and its own lock, which follow the others in
// the order of both. It is made by the first call, which must precede Load.
func (k *Kernel) OwnShard(stream uint16) *Shard {
	for _, sh := range k.ownShards {
		if sh.ID == stream {
			return sh
		}
	}
	sh := newShard(stream, k)
	k.ownShards = append(k.ownShards, sh)
	slices.SortFunc(k.ownShards, func(a, b *Shard) int { return int(a.ID) - int(b.ID) })
	return sh
}

// allShards is all shards, in the order of their ids.
func (k *Kernel) allShards() []*Shard { return append(k.All[:len(k.All):len(k.All)], k.ownShards...) }

// Drain ends all long polls with an empty answer, and lets no further receive wait. It closes
// Draining, and may be called again.
func (k *Kernel) Drain() { k.drain() }

// Latest is the latest time that a command has seen. A virtual clock must not
// start before it.
func (k *Kernel) Latest() time.Time {
	var latest int64
	for _, sh := range k.allShards() {
		sh.View(func() { latest = max(latest, sh.LatestTime()) })
	}
	return clock.Time(latest)
}

// Close stops the background goroutines, refuses further commands and makes everything durable.
// Long polls get an empty answer. It fails with poison.ErrPoisoned if a command has panicked:
// then the state that the shard's parts have only in memory is not written.
func (k *Kernel) Close() (err error) {
	k.Drain()
	k.stopOnce.Do(func() {
		k.startMu.Lock()
		k.stop()
		k.startMu.Unlock()
		k.AwaitIdle()
		for _, sh := range k.allShards() {
			if !sh.close() {
				err = poison.ErrPoisoned
			}
		}
		k.Journal.Sync()
	})
	return err
}

// Fatal logs a failure of the store and ends the process. It returns where the store was closed
// and the state is abandoned: what still runs then changes nothing, and its answer reaches nobody.
func (k *Kernel) Fatal(err error) {
	if errors.Is(err, store.ErrClosed) && k.Journal.Abandoned() {
		return
	}
	if s, ok := k.Store.(store.Damaged); ok && s.DamageIn(nil, nil) != nil {
		k.Logger.Error("the process ends, as it cannot go around damage in the store; to see what is lost run: godwit check",
			"error", err, "damage", s.DamageIn(nil, nil))
	} else {
		k.Logger.Error("the store failed; ending the process, a restart recovers everything acknowledged", "error", err)
	}
	k.Options.Fatal(err)
}

// ShardNumber is the shard that a queue, topic or function belongs to, in [0, Shards): the
// FNV-1a hash of its ARN. Stored state depends on it: it must not change.
func ShardNumber(a arn.ARN) uint16 {
	h := uint64(14695981039346656037)
	for _, part := range [...]string{a.Service, a.Region, a.Account, a.Resource} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		h = (h ^ ':') * 1099511628211
	}
	return uint16((h ^ h>>32) % Shards)
}

// GoBackground runs f in a goroutine that Close waits for, unless the kernel is stopping. What
// may take long in f is given Running. It holds the clock, so that virtual time stands still
// meanwhile.
func (k *Kernel) GoBackground(f func()) {
	k.startMu.Lock()
	defer k.startMu.Unlock()
	select {
	case <-k.Stopping:
		return
	default:
	}
	release := k.Clock.Hold()
	k.background++
	go func() {
		defer k.ended()
		defer release()
		defer func() {
			if cause := recover(); cause != nil && cause != poison.ErrPoisoned { //nolint:errorlint // the very value
				panic(cause)
			} // else another command has panicked, and the process is ending already
		}()
		f()
	}()
}

func (k *Kernel) ended() {
	k.startMu.Lock()
	defer k.startMu.Unlock()
	if k.background--; k.background == 0 {
		k.idle.Broadcast()
	}
}

// AwaitIdle returns once nothing runs in the background. Unlike the Wait of a sync.WaitGroup it
// may run while the first goroutine begins.
func (k *Kernel) AwaitIdle() {
	k.startMu.Lock()
	defer k.startMu.Unlock()
	for k.background > 0 {
		k.idle.Wait()
	}
}

// InSteps calls step in the background until it returns false or the kernel is stopping.
func (k *Kernel) InSteps(step func() bool) {
	k.GoBackground(func() {
		for step() {
			select {
			case <-k.Stopping:
				return
			default:
			}
		}
	})
}

// ErrFull refuses commands that need disk space while the disk is short of it.
var ErrFull = fault.NewRule(fault.InsufficientStorage, "kernel: the disk is short of space")

// Full reports that the disk is short of space.
func (k *Kernel) Full() bool { return k.Options.Full != nil && k.Options.Full() }

// Lost describes the damage that has hidden a key which the store does not find; nil: there is
// none known, and the key was deleted or never there.
func (k *Kernel) Lost(key []byte) error {
	s, ok := k.Store.(store.Damaged)
	if !ok {
		return nil
	}
	return s.DamageIn(key, append(bytes.Clone(key), 0))
}

// ReadRecord reads a record that an earlier command of the shard has written; ok is false if
// there is none. It flushes the journal only if the store does not have the record yet.
func (k *Kernel) ReadRecord(key []byte) (value []byte, ok bool, err error) {
	if value, ok, err := k.Store.Get(nil, key); err != nil || ok {
		return value, ok, err
	}
	k.Journal.Flush()
	return k.Store.Get(nil, key)
}

// ReadRecords is ReadRecord for several keys, in one pass. A record that does not exist is
// nil.
func (k *Kernel) ReadRecords(keys [][]byte) (records [][]byte, err error) {
	records = make([][]byte, len(keys))
	read := func() (found int, err error) {
		err = store.GetEach(k.Store, keys, func(i int, record []byte) error {
			found++
			if records[i] = record; len(keys) > 1 || record == nil { // else it is a copy already
				records[i] = append([]byte{}, record...)
			}
			return nil
		})
		return found, err
	}
	if found, err := read(); err != nil || found == len(keys) {
		return records, err
	}
	k.Journal.Flush()
	_, err = read()
	return records, err
}
