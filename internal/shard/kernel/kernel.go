// Package kernel runs the shards of a node: the state is cut into them, each runs its
// commands one after the other in transactions, and many callers' commands share one
// commit. What the state is, the modules know that are added to the shards.
//
// Invariants:
//   - What an answer reports is durable when it is given: the change itself, and
//     every commit that the command read from.
//   - A command's changes are one atomic unit in the journal, over all of its shards.
//   - A failed commit ends the process, and so does a command that panics; the store is
//     the truth at the next start.
package kernel

import (
	"context"
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

// Options are what a Kernel is made of.
type Options struct {
	Journal *journal.Journal
	Clock   clock.Clock
	Logger  *slog.Logger // nil: nothing is logged
	// Full reports that the disk is short of space. Nil means never.
	Full func() bool
	// Fatal ends the process after a failure of the store. It must not return
	// to a caller that could answer a request.
	Fatal func(error)
}

// Kernel is all shards of a node, and what runs in their background.
type Kernel struct {
	Store   store.Reader
	Clock   clock.Clock
	Logger  *slog.Logger
	Config  Options
	Journal *journal.Journal
	All     [Shards]*Shard
	beside  []*Shard // of modules whose state is not split

	beginning  sync.Mutex // held while something begins in the background, or nothing may any more
	background sync.WaitGroup
	Draining   chan struct{}
	drainOnce  sync.Once
	Stopping   chan struct{}
	stopOnce   sync.Once
}

// New makes the shards of a node, which have no modules yet.
func New(o Options) *Kernel {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Kernel{
		Store: o.Journal.Reader(), Clock: o.Clock, Logger: o.Logger, Config: o, Journal: o.Journal,
		Draining: make(chan struct{}), Stopping: make(chan struct{}),
	}
	for id := range e.All {
		e.All[id] = newShard(uint16(id), e)
	}
	return e
}

// OwnShard is the shard of modules whose state is not split by the names of queues, topics
// and functions: it has a stream of the journal and a lock of its own, behind the others
// in the order of both. It is made on the first call, which is before Load.
func (e *Kernel) OwnShard(stream uint16) *Shard {
	for _, sh := range e.beside {
		if sh.ID == stream {
			return sh
		}
	}
	sh := newShard(stream, e)
	e.beside = append(e.beside, sh)
	slices.SortFunc(e.beside, func(a, b *Shard) int { return int(a.ID) - int(b.ID) })
	return sh
}

// every is all shards, in the order of their ids.
func (e *Kernel) every() []*Shard { return append(e.All[:len(e.All):len(e.All)], e.beside...) }

// Drain answers the receives that wait, and lets no further one wait.
func (e *Kernel) Drain() { e.drainOnce.Do(func() { close(e.Draining) }) }

// Latest is the latest time that a command has seen. A virtual clock must not
// start before it.
func (e *Kernel) Latest() time.Time {
	var latest int64
	for _, sh := range e.every() {
		sh.View(func() { latest = max(latest, sh.Meta.Now) })
	}
	return clock.Time(latest)
}

// Close refuses further commands, makes everything durable and stops what runs in the
// background. Waiting receivers get an empty answer. It fails with
// poison.ErrPoisoned where a command has panicked: what only memory had is not written.
func (e *Kernel) Close() (err error) {
	e.Drain()
	e.stopOnce.Do(func() {
		e.beginning.Lock()
		close(e.Stopping)
		e.beginning.Unlock()
		e.AwaitIdle()
		for _, sh := range e.every() {
			if !sh.close() {
				err = poison.ErrPoisoned
			}
		}
		e.Journal.Sync()
	})
	return err
}

// Fatal logs a failure of the store and ends the process.
func (e *Kernel) Fatal(err error) {
	if s, ok := e.Store.(store.Damaged); ok && s.DamageIn(nil, nil) != nil {
		e.Logger.Error("the process ends, as it cannot go around damage in the store; to see what is lost run: godwit check",
			"error", err, "damage", s.DamageIn(nil, nil))
	} else {
		e.Logger.Error("the store failed; ending the process, a restart recovers everything acknowledged", "error", err)
	}
	e.Config.Fatal(err)
}

// ShardNumber finds the shard that a queue, topic or function belongs to: FNV-1a
// over its name.
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

// GoBackground runs f in the background, holding the clock, unless the kernel is stopping.
func (e *Kernel) GoBackground(f func()) {
	e.beginning.Lock()
	defer e.beginning.Unlock()
	select {
	case <-e.Stopping:
		return
	default:
	}
	release := e.Clock.Hold()
	e.background.Go(func() {
		defer release()
		defer func() {
			if cause := recover(); cause != nil && cause != poison.ErrPoisoned { //nolint:errorlint // the very value
				panic(cause)
			} // else the process is ending already
		}()
		f()
	})
}

// AwaitIdle returns once nothing runs in the background any more.
func (e *Kernel) AwaitIdle() { e.background.Wait() }

// InSteps calls step in the background until it returns false or the kernel is stopping.
func (e *Kernel) InSteps(step func() bool) {
	e.GoBackground(func() {
		for step() {
			select {
			case <-e.Stopping:
				return
			default:
			}
		}
	})
}

// change runs f for commands that read or change which queues, topics and functions
// there are. It returns once all that f saw and did is durable.
func (sh *Shard) change(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return sh.RunDurable(func(tx *Tx) error {
		err := f()
		changed := sh.Batch.Len() > 0
		if c := tx.Commit(); c != nil && changed {
			sh.CatalogChanged(c)
		}
		tx.DependOn(sh.LastCatalogCommit)
		return err
	})
}

// CatalogChanged notes that the catalog has changed with a commit.
func (sh *Shard) CatalogChanged(c *journal.Commit) {
	sh.LastCatalogCommit = c
	sh.Generation.Add(1)
}

// close refuses further changes, once the modules have written what only memory has;
// false: memory may be ahead of the disk.
func (sh *Shard) close() bool {
	sh.mu.Lock()
	poisoned := sh.poisoned
	sh.mu.Unlock()
	if poisoned {
		return false
	}
	_, _ = sh.Run(false, func(*Tx) error {
		for _, m := range sh.modules {
			m.Close()
		}
		sh.Closed = true
		sh.timer.stop()
		return nil
	})
	return true
}

// ErrFull refuses what would take space on a disk that is short of it.
var ErrFull = fault.NewRule(fault.InsufficientStorage, "kernel: the disk is short of space")

// Now is the present in epoch milliseconds, which is one moment for as long as a command
// has the lock. It never goes back.
func (sh *Shard) Now() int64 {
	if !sh.timed {
		sh.timed = true
		sh.Meta.Now = max(sh.Meta.Now, sh.engine.Clock.Now().UnixMilli())
	}
	return sh.Meta.Now
}

// Arm sets the shard's one timer to the earliest moment.
func (sh *Shard) Arm() {
	if at := sh.nextTimer(); at != 0 {
		sh.CallBy(at)
	}
}

// CallBy has the modules' Tick called at a moment, in epoch milliseconds, if none is to be
// called before: for a module that has something to do since. It may be called under any
// lock, also the shard's.
func (sh *Shard) CallBy(at int64) { sh.timer.set(sh.engine.Clock, at) }

// Tick runs what has become due.
func (sh *Shard) Tick() {
	_, _ = sh.Run(false, func(*Tx) error {
		if !sh.Closed {
			sh.runDue()
		}
		return nil
	})
}

func (sh *Shard) runDue() {
	sh.timer.fired()
	now := sh.Now()
	for _, m := range sh.modules {
		m.Tick(now)
	}
	sh.Arm()
}

// timer is the one of a shard. Its lock is a leaf.
type timer struct {
	call    func() // what is called
	mu      sync.Mutex
	pending clock.Timer // nil: not set
	at      int64
	stopped bool
}

// set has call called at a moment, unless it is set to an earlier one.
func (t *timer) set(c clock.Clock, at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped {
		return
	}
	if t.pending != nil {
		if t.at <= at {
			return
		}
		t.pending.Stop()
	}
	t.at = at
	d := time.UnixMilli(at).Sub(c.Now()) // to the very moment, not to within a millisecond
	t.pending = c.AfterFunc(max(d, 0), t.call)
}

// fired notes that call is under way, and what is due is about to be done. What was set
// since is not needed, and is stopped: each call sets the next, so that one more timer
// would be one more for good.
func (t *timer) fired() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending != nil {
		t.pending.Stop()
		t.pending = nil
	}
}

// stop cancels what is set, and refuses what would be.
func (t *timer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	if t.pending != nil {
		t.pending.Stop()
	}
}

// nextTimer is when the shard has something to do, in epoch milliseconds; 0 is never.
func (sh *Shard) nextTimer() (at int64) {
	for _, m := range sh.modules {
		if due := m.NextDue(); due != 0 && (at == 0 || due < at) {
			at = due
		}
	}
	return at
}

// MergePages makes one page out of a page of each shard. What it returns is durable.
func MergePages[T any, S Part](ctx context.Context, shards *[Shards]S, limit int, compare func(a, b T) int, page func(sh S) ([]T, bool)) ([]T, bool, error) {
	var all []T
	more := false
	for _, s := range shards {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		sh := s.Base()
		sh.View(func() {
			items, rest := page(s)
			all = append(all, items...)
			more = more || rest
		})
		sh.AwaitCatalog()
	}
	slices.SortFunc(all, compare)
	if len(all) > limit {
		all, more = all[:limit], true
	}
	return all, more, nil
}

// Full reports that the disk is short of space.
func (e *Kernel) Full() bool { return e.Config.Full != nil && e.Config.Full() }

// Readable makes what the shard has appended so far visible in the store. It
// must not be called while a command has unappended changes.
func (sh *Shard) Readable() {
	if !sh.Log.Last().Applied() {
		sh.engine.Journal.Flush()
	}
}

// ReadRecord reads a record that an earlier command of the shard has written.
func (e *Kernel) ReadRecord(key []byte) ([]byte, bool, error) {
	if value, ok, err := e.Store.Get(nil, key); err != nil || ok {
		return value, ok, err
	}
	e.Journal.Flush()
	return e.Store.Get(nil, key)
}

// ReadRecords reads records that earlier commands of the shard have written. A record is
// nil where there is none.
func (e *Kernel) ReadRecords(keys [][]byte) (records [][]byte, err error) {
	records = make([][]byte, len(keys))
	read := func() (found int, err error) {
		err = store.GetEach(e.Store, keys, func(i int, record []byte) error {
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
	e.Journal.Flush()
	_, err = read()
	return records, err
}
