package kernel

import (
	"slices"
	"sync"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/poison"
)

// Tx is a command on one or several shards: from the moment it holds their locks until its
// changes are appended to the journal, as one atomic unit, and the locks are released. Its
// events are emitted after that. A command that panics leaves memory ahead of the disk: its
// shards are poisoned and accept no further command, and the process ends.
type Tx struct {
	Shards    []*Shard // locked, in the order of their ids; nil: none
	own       [1]*Shard
	when      journal.Durability
	dependsOn *journal.Commit // the commit that the answer waits for if the command changes nothing
	done      bool
}

// Joined is a command on a module's own shard, whose changes are part of the commit of another
// command: of one on shards that are split by name, whose locks are taken before it.
type Joined struct {
	Shard *Shard
	Run   func() // called at most once, with the lock of Shard
}

// Emitter is an event of a command. Emit is called after the commit, without the locks, and so
// concurrently, and not necessarily in the order of the commands.
type Emitter interface{ Emit() }

// Emit schedules an event to be emitted after the current command.
func (sh *Shard) Emit(e Emitter) { sh.Emits = append(sh.Emits, e) }

// Run runs a command on a shard and returns the commit that its answer depends on, which the
// caller waits for: the command's own; if it changed nothing, the one that it passed to
// DependOn; for a refusal, the latest change of the catalog. when says when its own commit is
// synced. The error is the command's; it rolls nothing back: changes made before it are
// committed. Run panics with poison.ErrPoisoned after another command has panicked.
func (sh *Shard) Run(when journal.Durability, command func(tx *Tx) error) (*journal.Commit, error) {
	sh.lock()
	tx := txs.Get().(*Tx)
	tx.own[0] = sh
	tx.Shards, tx.when = tx.own[:], when
	defer tx.end()
	err := command(tx)
	return tx.ended(tx.Append(), err, tx.Shards[0]), err
}

var txs = sync.Pool{New: func() any { return new(Tx) }}

// RunAll is Run for a command on several shards, which may be in any order and contain
// duplicates; it reorders the slice. A refusal is assumed to concern the last shard of the
// slice, and depends on the latest change of its catalog.
func RunAll(when journal.Durability, command func(tx *Tx) error, shards ...*Shard) (*journal.Commit, error) {
	last := shards[len(shards)-1]
	slices.SortFunc(shards, func(a, b *Shard) int { return int(a.ID) - int(b.ID) })
	shards = slices.Compact(shards)
	lockAll(shards)
	tx := txs.Get().(*Tx)
	tx.Shards, tx.when = shards, when
	defer tx.end()
	err := command(tx)
	return tx.ended(tx.Append(), err, last), err
}

// ended notes that the command has not panicked, and returns the commit that its answer depends
// on: its own; else that of DependOn; else, for a refusal, the latest change of a catalog.
func (tx *Tx) ended(own *journal.Commit, err error, refusing *Shard) *journal.Commit {
	tx.done = true
	switch {
	case own != nil:
		return own
	case tx.dependsOn == nil && err != nil:
		return refusing.LastCatalogCommit
	}
	return tx.dependsOn
}

// RunDurable runs a command on a shard and returns once its answer is durable.
func (sh *Shard) RunDurable(command func(tx *Tx) error) error {
	c, err := sh.Run(journal.Awaited, command)
	c.Wait()
	return err
}

// RunDurableReads is RunDurable for a command whose answer may depend on anything in the shard:
// if it changes nothing, or is refused, it waits for the shard's latest commit, as of when the
// command has run. Where a command knows the commit that it depends on it passes that to DependOn.
func (sh *Shard) RunDurableReads(command func(tx *Tx) error) error {
	c, err := sh.Run(journal.Awaited, func(tx *Tx) error {
		err := command(tx)
		tx.DependOn(sh.Stream.Last())
		return err
	})
	sh.kernel.Journal.Await(c)
	return err
}

// AwaitReads is for what was read without the lock, after it was read: it returns once all that
// commands had changed in the shard by then is durable. A change can be seen before it is
// appended, which the lock of its command waits for.
func (sh *Shard) AwaitReads() {
	_ = sh.RunDurableReads(func(*Tx) error { return nil })
}

// RunLazy is Run of a command that neither fails nor is waited for: its commit is Lazy.
func (sh *Shard) RunLazy(command func()) {
	_, _ = sh.Run(journal.Lazy, func(*Tx) error {
		command()
		return nil
	})
}

// View calls look under the shard's lock, to read the state. What reading changes by the way, as
// where it finds a parked queue, is committed like a command of RunLazy.
func (sh *Shard) View(look func()) { sh.RunLazy(look) }

// DependOn sets the commit that the answer waits for if the command changes nothing.
func (tx *Tx) DependOn(c *journal.Commit) { tx.dependsOn = c }

// Append appends the changes of the command so far to the journal, as one atomic unit, and calls
// Committed of the changed objects. They are durable when the commit that it returns is, which
// it does not wait for; nil: nothing was changed.
func (tx *Tx) Append() *journal.Commit {
	changes, changed := make([]journal.Change, 0, 1), make([]*Shard, 0, 1) // most commands are of one shard
	changes, changed = slices.Grow(changes, len(tx.Shards)), slices.Grow(changed, len(tx.Shards))
	for _, sh := range tx.Shards {
		if !sh.Unchanged() {
			changes, changed = append(changes, sh.pending()), append(changed, sh)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	c := changed[0].kernel.Journal.Append(tx.when, changes...)
	for _, sh := range changed {
		sh.appended(c)
	}
	for _, sh := range changed {
		sh.afterCommit()
	}
	return c
}

// Yield appends the changes, releases the locks, runs f, and takes the locks again: the state may
// have changed in between.
func (tx *Tx) Yield(f func()) {
	tx.relock(nil, f)
}

// Widen appends the changes, releases the locks and takes those of shards, which are in the order
// of their ids: the state may have changed in between.
func (tx *Tx) Widen(shards []*Shard) { tx.relock(shards, nil) }

// WidenAfter is Widen that runs f while it has no lock.
func (tx *Tx) WidenAfter(shards []*Shard, f func()) { tx.relock(shards, f) }

// Narrow appends the changes and releases all locks except those of keep, which stay locked
// throughout. The events of the released shards are emitted after those of keep.
func (tx *Tx) Narrow(keep []*Shard) {
	tx.Append()
	all := tx.Shards
	tx.Shards = keep
	for _, sh := range all {
		if !slices.Contains(keep, sh) {
			keep[0].Emits = sh.takeEvents(keep[0].Emits)
			sh.mu.Unlock()
		}
	}
}

func (tx *Tx) relock(shards []*Shard, between func()) {
	tx.Append()
	if shards == nil {
		shards = tx.Shards
	}
	tx.release()
	if between != nil {
		between()
	}
	lockAll(shards)
	tx.Shards = shards
}

// release releases the locks and emits the events.
func (tx *Tx) release() {
	var backing [4]Emitter
	events := backing[:0]
	shards := tx.Shards
	tx.Shards = nil
	for _, sh := range shards {
		events = sh.takeEvents(events)
	}
	for _, sh := range shards {
		sh.mu.Unlock()
	}
	for _, e := range events {
		e.Emit()
	}
}

// takeEvents moves the shard's events to the end of a list.
func (sh *Shard) takeEvents(to []Emitter) []Emitter {
	to = append(to, sh.Emits...)
	clear(sh.Emits)
	sh.Emits = sh.Emits[:0]
	return to
}

// end releases the locks after a command, or poisons them if it has panicked. It is
// deferred.
func (tx *Tx) end() {
	if tx.done {
		tx.release()
		*tx = Tx{}
		txs.Put(tx)
		return
	}
	shards := tx.Shards
	if len(shards) == 0 {
		return // it panicked without locks, in the f of Yield or WidenAfter
	}
	cause := recover() // nil after runtime.Goexit, too
	for _, sh := range shards {
		sh.poisoned = true
	}
	k := shards[0].kernel
	for _, sh := range shards {
		sh.mu.Unlock()
	}
	if cause == nil {
		return
	}
	poison.End(k.Logger, k.Options.Fatal, cause)
	panic(cause)
}

// lock takes the shard's lock. It panics if the shard is poisoned.
func (sh *Shard) lock() {
	sh.mu.Lock()
	if sh.poisoned {
		sh.mu.Unlock()
		panic(poison.ErrPoisoned)
	}
	sh.begin()
}

// begin notes that a new command has the lock.
func (sh *Shard) begin() {
	sh.CommandCount++
	sh.timed = false
}

// lockAll locks shards, which are in the order of their ids.
func lockAll(shards []*Shard) {
	for i, sh := range shards {
		sh.mu.Lock()
		if sh.poisoned {
			for _, locked := range shards[:i+1] {
				locked.mu.Unlock()
			}
			panic(poison.ErrPoisoned)
		}
		sh.begin()
	}
}

// Append is Tx.Append of one shard: it appends the changes of the command to the journal and
// handles their consequences: it serves waiting receivers, notifies the consumer, sets timers.
// It waits for no sync. The commit is nil if the command changed nothing.
func (sh *Shard) Append(when journal.Durability) *journal.Commit {
	if sh.Unchanged() {
		return nil
	}
	c := sh.kernel.Journal.Append(when, sh.pending())
	sh.appended(c)
	sh.afterCommit()
	return c
}

// AppendIfLarge appends the changes of the command so far if they exceed mutation.StepBytes: for
// commands over many queues.
func (sh *Shard) AppendIfLarge() {
	if sh.Batch.Size()+sh.finishBytes() > mutation.StepBytes {
		sh.Append(journal.Lazy)
	}
}

// AppendPartial appends the changes of the command so far, so that the store can show them; the
// command continues, with its objects still dirty. Append handles the consequences of the
// changes.
func (sh *Shard) AppendPartial(when journal.Durability) {
	if sh.Unchanged() {
		return
	}
	sh.appended(sh.kernel.Journal.Append(when, sh.pending()))
}

// appended notes the commit with which the current command becomes durable.
func (sh *Shard) appended(c *journal.Commit) {
	for _, t := range sh.dirty {
		t.Appended(c)
	}
}

func (sh *Shard) afterCommit() {
	touched := sh.dirty
	sh.dirty = nil
	for _, t := range touched {
		t.Clean()
	}
	for _, t := range touched {
		t.Committed()
	}
	if sh.dirty == nil {
		sh.dirty = touched[:0]
	}
	sh.Arm()
}

// MarkDirty adds an object to those that the current command has changed. It must be called
// once per object.
func (sh *Shard) MarkDirty(t Dirty) { sh.dirty = append(sh.dirty, t) }

// Unchanged reports that the current command has nothing to append.
func (sh *Shard) Unchanged() bool { return sh.Batch.Len() == 0 && len(sh.dirty) == 0 }

// pending is what the current command has changed in the shard.
func (sh *Shard) pending() journal.Change {
	return journal.Change{Stream: sh.Stream, Batch: &sh.Batch, State: sh.state, FinishBytes: sh.finishBytes()}
}

// finishBytes bounds what finish writes for the current command, in bytes.
func (sh *Shard) finishBytes() (n int) {
	for _, t := range sh.dirty {
		n += t.FinishBytes()
	}
	return n
}

// finish appends, after the changes of the current command, what is written once per commit.
func (sh *Shard) finish(commit uint64, b *mutation.Batch) {
	for _, t := range sh.dirty {
		t.Finish(commit, b)
	}
}

// ClearDirty ends the changes of all dirty objects without their Committed, after
// AppendPartial.
func (sh *Shard) ClearDirty() {
	for _, t := range sh.dirty {
		t.Clean()
	}
	clear(sh.dirty)
	sh.dirty = sh.dirty[:0]
}
