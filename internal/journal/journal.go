// Package journal is the only writer of the store: every change, of all modules, is appended
// to a stream here, and the journal applies it and makes it durable.
//
// A stream is an ordered sequence of changes with one owner: one of the 64 shards, or a module
// whose state is not split, such as metrics or identities. What callers of all streams append
// while the previous commit is being made durable becomes one commit: it is visible as a whole or
// not at all, survives a crash as a whole or not at all, and costs one sync. Within it each
// stream's changes are one framed batch, with a checksum, the stream's number, its epoch and a
// sequence without gaps. The framed batches of all streams, applied in order to an empty store,
// give the same store: that is what a standby does.
//
// A failure to apply or to sync ends the process, because the state of the disk is unknown
// then; recovery is a restart.
package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/poison"
	"godwit.dev/godwit/internal/store"
)

// LazyDelay bounds the delay of a commit that no caller waits for, so that it is durable
// within 10 ms, including its sync. A replicated one takes what commitDelay adds, and the
// round trip, on top.
const LazyDelay = 4 * time.Millisecond

// awaitedDelay bounds the delay of a lazy commit once a caller waits for it, because the disk
// is slow or the store is replicated: long enough for a few others to join, but not so long
// that all callers wait.
const awaitedDelay = 250 * time.Microsecond

// commitOverhead is the part of mutation.MaxFramedBatch that is reserved for a framed batch's
// header and the stream's state, in bytes.
const commitOverhead = 4096

// RetainedBatchBytes bounds the buffer that a stream's owner keeps for its next batch, in
// bytes: 16 MiB for all shards. A larger buffer is given away with the commit.
const RetainedBatchBytes = 256 << 10

// errClosed reports an Append after Close.
var errClosed = errors.New("journal: closed")

// Options are the dependencies and settings of a Journal.
type Options struct {
	Store store.Store
	// Observe sees every framed batch, in order, before it is applied; may be nil.
	Observe func(framed []byte)
	Logger  *slog.Logger // may be nil
	// Synced is called with the duration of each sync; may be nil.
	Synced func(took time.Duration)
	// Replicated makes every caller wait for its commit, even a lazy one on a fast store:
	// another node may take over without what is not durable yet.
	Replicated bool
	// Closed is called before Close returns, once everything is durable; may be nil. It must
	// neither append nor wait for an append.
	Closed func()
	// Abandoned reports that nobody is answered any more, as another process owns the state, or
	// may own it, or as all connections are closed: what is appended after Close is dropped
	// then. Nil: it never is.
	Abandoned func() bool
	// Fatal ends the process after a failure of the store. It must not return to a
	// caller that could answer a request. Without one a failure panics.
	Fatal func(error)
}

// Journal is the group commit of all streams of a store.
type Journal struct {
	options Options
	store   store.Store

	mu        sync.Mutex // guards what follows
	open      *Commit    // takes what is appended
	flushing  *Commit    // is being applied; nil: none is
	unsynced  []*Commit  // applied, and not durable yet
	lazyTimer bool       // the timer of syncDue is set
	syncer    syncer     // who syncs now
	signalled bool       // the journal's goroutine was, while a leader synced
	closed    bool

	latency syncLatency // of the syncs

	applying sync.Mutex // held while a commit is applied, so that they are in order
	syncing  sync.Mutex // held while commits are synced
	spare    sync.Pool  // of *mutation.Batch
	guard    *poison.Guard

	delay commitDelay

	wake    chan struct{}
	stop    chan struct{}
	stopped chan struct{}
}

// Open starts a journal, which Close ends. Nothing else may write to the store meanwhile.
func Open(o Options) *Journal {
	if o.Fatal == nil {
		o.Fatal = func(err error) { panic(fmt.Sprintf("godwit: the store failed: %v", err)) }
	}
	j := &Journal{
		options: o, store: o.Store, guard: poison.New(o.Logger, o.Fatal),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), stopped: make(chan struct{}),
	}
	j.open = j.newCommit(1)
	j.delay.replicated = o.Replicated
	j.spare.New = func() any { return new(mutation.Batch) }
	go j.run()
	return j
}

// Reader reads the store. It sees applied changes; Stream.Reader sees appended ones.
func (j *Journal) Reader() Reader { return j.store }

// Abandoned reports that nothing depends on the state in this process any more: see Options.
func (j *Journal) Abandoned() bool { return j.options.Abandoned != nil && j.options.Abandoned() }

// Append adds the changes, as one atomic unit, to the open commit, and returns that. It waits
// for nothing but the end of a Close. The changes' batches are empty afterwards. The order
// within a stream is the order of the calls. After Close it calls Options.Fatal, unless the
// state is abandoned.
func (j *Journal) Append(when Durability, changes ...Change) *Commit {
	j.mu.Lock()
	for _, ch := range changes { // if one would make its stream's share too large, all go into the next commit
		if i := j.open.index[ch.Stream.id]; i > 0 && j.open.shares[i-1].batch.Size()+ch.Batch.Size()+ch.FinishBytes > mutation.MaxFramedBatch-commitOverhead {
			j.mu.Unlock()
			j.Flush()
			j.mu.Lock()
			break
		}
	}
	if j.closed {
		j.mu.Unlock()
		return j.appendClosed(changes)
	}
	c := j.open
	for i := range changes {
		j.add(c, &changes[i])
	}
	wake := false
	if when > c.sync {
		wake = j.mustSignal(c, when)
		c.sync = when
	}
	arm := false
	if when == Lazy && (c.sync == Lazy || c.unled.Load()) && c.due.IsZero() {
		c.due = clock.System.Now().Add(LazyDelay)
		arm, j.lazyTimer = !j.lazyTimer, true
	}
	j.mu.Unlock()
	if wake {
		j.signal()
	} else if arm {
		clock.System.AfterFunc(LazyDelay, j.syncDue)
	}
	return c
}

// appendClosed is Append after Close.
func (j *Journal) appendClosed(changes []Change) *Commit {
	for _, ch := range changes {
		ch.Batch.Reset()
	}
	<-j.stopped
	if !j.Abandoned() {
		j.options.Fatal(errClosed)
		return j.newCommit(0)
	}
	return j.dropped()
}

// syncDue, called by the timer, makes due commits durable. Mostly they are durable already,
// with a commit that a caller waited for; then it only sets the timer for the next.
func (j *Journal) syncDue() {
	j.mu.Lock()
	due := j.open.due
	sooner := func(c *Commit) {
		if c != nil && !c.due.IsZero() && (due.IsZero() || c.due.Before(due)) {
			due = c.due
		}
	}
	sooner(j.flushing)
	for _, c := range j.unsynced { // commits that are being synced are no longer in it
		sooner(c)
	}
	wait := due.Sub(clock.System.Now())
	j.lazyTimer = !due.IsZero() && wait > 0
	again := j.lazyTimer
	j.mu.Unlock()
	switch {
	case again:
		clock.System.AfterFunc(wait, j.syncDue)
	case due.IsZero():
	case j.delay.expectedWaiters.Load() >= delayMinWaiters || !j.lead():
		j.signal()
	}
}

// add moves a change into a commit; j.mu is held.
func (j *Journal) add(c *Commit, ch *Change) {
	i := c.index[ch.Stream.id]
	if i == 0 {
		spare := j.spare.Get().(*mutation.Batch)
		if spare.Available() <= RetainedBatchBytes { // otherwise the owner would retain too much
			*spare, *ch.Batch = *ch.Batch, *spare // no copy: the owner gets the spare one
		}
		c.shares = append(c.shares, share{stream: ch.Stream, batch: spare})
		i = uint8(len(c.shares))
		c.index[ch.Stream.id] = i
	}
	own := &c.shares[i-1]
	own.batch.Append(ch.Batch)
	if ch.Batch.Reset(); ch.Batch.Available() > RetainedBatchBytes {
		*ch.Batch = mutation.Batch{}
	}
	if ch.Stream.finish != nil {
		ch.Stream.finish(c.number, own.batch)
	}
	own.state = ch.Stream.advance(ch.State)
	ch.Stream.last.Store(c)
}

// AwaitIfSlow returns when the caller of a lazy commit may be answered: at once while the
// disk is fast, else when the commit is durable, whose sync then begins within awaitedDelay.
// With Options.Replicated it always waits.
func (j *Journal) AwaitIfSlow(c *Commit) {
	if c == nil {
		return
	}
	if j.options.Replicated {
		j.Await(c)
		return
	}
	if !j.latency.fast(clock.System.Now()) {
		j.Await(c)
	}
}

// AwaitReplicated returns when a lazy commit is durable with Options.Replicated, and at once
// without: only another owner could continue without the commit.
func (j *Journal) AwaitReplicated(c *Commit) {
	if c != nil && j.options.Replicated {
		j.Await(c)
	}
}

// Await returns when a commit is durable. The sync of a lazy one begins within awaitedDelay.
// With few callers it begins at once: in a closed loop they would soon all wait for the
// timer, with disk and CPU idle. With many, others trigger the sync while the timer runs.
func (j *Journal) Await(c *Commit) {
	if c.Durable() {
		return
	}
	j.mu.Lock()
	arm := c.sync == Lazy && !c.awaited
	c.awaited = true
	j.mu.Unlock()
	switch {
	case arm && j.delay.expectedWaiters.Load() <= delayManyWaiters:
		j.signal()
	case arm:
		clock.System.AfterFunc(awaitedDelay, func() {
			if !c.Durable() {
				j.signal()
			}
		})
	}
	c.Wait()
}

// Flush makes everything appended so far visible in the store.
func (j *Journal) Flush() {
	j.flush(func(batches ...*mutation.Batch) error { return j.store.Apply(store.NoSync, batches...) }, func() {})
}

// flushSyncing is Flush that also begins to sync what it applies, and all that was applied
// before: durable waits for that, which makes these commits durable.
func (j *Journal) flushSyncing() (durable func() error, commits []*Commit) {
	take := func() { commits, j.unsynced = append(commits, j.unsynced...), nil }
	if s, ok := j.store.(store.Committer); ok {
		j.flush(func(batches ...*mutation.Batch) (err error) {
			durable, err = s.Commit(batches...)
			return err
		}, take) // before a reader applies another one, which durable does not cover
	} else {
		j.Flush()
	}
	if durable == nil { // the sync is still to begin, and covers what is applied until then
		durable = j.store.Sync
		j.mu.Lock()
		take()
		j.mu.Unlock()
	}
	return durable, commits
}

// flush seals the open commit and applies it with apply; the next one is open meanwhile. Then
// it calls applied, with j.mu held.
func (j *Journal) flush(apply func(batches ...*mutation.Batch) error, applied func()) {
	j.guard.Lock(&j.applying)
	defer j.guard.Unlock(&j.applying)
	j.mu.Lock()
	c := j.open
	if len(c.shares) == 0 {
		j.mu.Unlock()
		return
	}
	j.open, j.flushing = j.newCommit(c.number+1), c
	if c.want.Load() > 0 { // nobody joins it any more
		c.stopWaiting()
	}
	j.mu.Unlock()

	batches := make([]*mutation.Batch, len(c.shares))
	for i := range c.shares {
		c.shares[i].frame(j.options.Observe)
		batches[i] = c.shares[i].batch
	}
	if err := apply(batches...); err != nil {
		j.options.Fatal(err)
		return
	}
	c.applied.Store(true)
	for i := range c.shares {
		c.shares[i].batch.Reset()
		j.spare.Put(c.shares[i].batch)
		c.shares[i].batch = nil
	}
	j.mu.Lock()
	j.unsynced, j.flushing = append(j.unsynced, c), nil
	applied()
	j.mu.Unlock()
}

// Commits counts the commits since Open that were applied, or are being applied. If it is
// unchanged, so is the store.
func (j *Journal) Commits() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return int64(j.open.number - 1) //nolint:gosec // it counts commits
}

// Sync returns once everything appended so far is durable.
func (j *Journal) Sync() {
	j.guard.Lock(&j.syncing)
	defer j.guard.Unlock(&j.syncing)
	durable, commits := j.flushSyncing()
	if len(commits) == 0 {
		return
	}
	began := clock.System.Now()
	j.latency.started(began)
	err := durable()
	if err != nil {
		j.options.Fatal(err)
		return
	}
	now := clock.System.Now()
	took := now.Sub(began)
	j.latency.finished(now, took)
	j.delay.lastSync.Store(int64(took))
	if j.options.Synced != nil {
		j.options.Synced(took)
	}
	j.mu.Lock()
	waiters := j.open.waiting.Load()
	j.mu.Unlock()
	for _, c := range commits {
		waiters += c.waiting.Load()
	}
	j.delay.expectedWaiters.Store(waiters)
	j.mu.Lock()
	for _, c := range commits {
		c.durable.Store(true)
	}
	j.mu.Unlock()
	for _, c := range commits {
		close(c.done)
		for _, f := range c.then { // complete, as the commit is durable
			f()
		}
		c.then = nil
	}
}

// Close makes everything durable and ends the journal. The caller closes the store. A second
// Close waits for the first.
func (j *Journal) Close() {
	j.mu.Lock()
	closed := j.closed
	j.closed = true
	j.mu.Unlock()
	if !closed {
		close(j.stop)
	}
	<-j.stopped
}
