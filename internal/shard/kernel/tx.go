package kernel

import (
	"slices"
	"sync"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/poison"
)

// Tx is a command on one or several shards: from the moment it holds their locks until
// its changes are appended to the journal, as one atomic unit, and the locks are released.
// Its events are emitted after that. A command that panics leaves memory ahead of the
// disk: its shards are poisoned and accept no other, and the process ends.
type Tx struct {
	Shards    []*Shard // locked, in the order of their ids; nil: none is
	own       [1]*Shard
	sync      bool            // the commit is made durable at once; else within 10 ms
	dependsOn *journal.Commit // what an answer depends on that has no commit of its own
	done      bool
}

// Emitter emits an event of what a command did, after its commit and outside of the
// locks. It may be called while other commands run, and before those that came earlier.
type Emitter interface{ Emit() }

// Emit has an event emitted once the command under way is over.
func (sh *Shard) Emit(e Emitter) { sh.Emits = append(sh.Emits, e) }

// Run runs a command on a shard and returns the commit that its answer depends on: its
// own; if it changed nothing, the one that it named with DependOn; for a refusal, the
// latest change of the catalog. With durable its commit is synced at once, else within
// 10 ms. The error is the command's; what it changed before that is committed all the same.
func (sh *Shard) Run(durable bool, command func(tx *Tx) error) (*journal.Commit, error) {
	sh.lock()
	tx := txs.Get().(*Tx)
	tx.own[0] = sh
	tx.Shards, tx.sync = tx.own[:], durable
	defer tx.end()
	return tx.run(command)
}

var txs = sync.Pool{New: func() any { return new(Tx) }}

// RunAll is Run for a command on several shards, in any order and perhaps named twice. A
// refusal is about the last one, and depends on the latest change of its catalog.
func RunAll(durable bool, command func(tx *Tx) error, shards ...*Shard) (*journal.Commit, error) {
	last := shards[len(shards)-1]
	slices.SortFunc(shards, func(a, b *Shard) int { return int(a.ID) - int(b.ID) })
	shards = slices.Compact(shards)
	lockAll(shards)
	tx := txs.Get().(*Tx)
	tx.Shards, tx.sync = shards, durable
	defer tx.end()
	return tx.run(func(tx *Tx) error {
		err := command(tx)
		if err != nil && tx.dependsOn == nil {
			tx.dependsOn = last.LastCatalogCommit
		}
		return err
	})
}

func (tx *Tx) run(command func(tx *Tx) error) (*journal.Commit, error) {
	err := command(tx)
	if err != nil && tx.dependsOn == nil {
		tx.dependsOn = tx.Shards[0].LastCatalogCommit
	}
	c := tx.Commit()
	if c == nil {
		c = tx.dependsOn
	}
	tx.done = true
	return c, err
}

// RunDurable runs a command on a shard and returns once its answer is durable.
func (sh *Shard) RunDurable(command func(tx *Tx) error) error {
	c, err := sh.Run(true, command)
	c.Wait()
	return err
}

// View looks at a shard.
func (sh *Shard) View(look func()) {
	_, _ = sh.Run(false, func(*Tx) error {
		look()
		return nil
	})
}

// AwaitCatalog returns once the catalog is durable as it is.
func (sh *Shard) AwaitCatalog() {
	var c *journal.Commit
	sh.View(func() { c = sh.LastCatalogCommit })
	c.Wait()
}

// DependOn sets the commit that the answer waits for if the command changes nothing.
func (tx *Tx) DependOn(c *journal.Commit) { tx.dependsOn = c }

// Commit appends what the command has changed so far, as one atomic unit, and does what
// follows from it; nil if there is nothing to append.
func (tx *Tx) Commit() *journal.Commit {
	if len(tx.Shards) == 1 {
		return tx.Shards[0].Commit(tx.sync)
	}
	return commitAll(tx.sync, tx.Shards)
}

// Yield commits what there is, runs f while others may have the locks, and continues.
func (tx *Tx) Yield(f func()) {
	tx.relock(nil, f)
}

// Widen commits what there is and continues with the locks of other shards, the first
// one's among them, in the order of their ids. Others may have had the locks in between.
func (tx *Tx) Widen(shards []*Shard) { tx.relock(shards, nil) }

// WidenAfter is Widen that runs f before it has the locks.
func (tx *Tx) WidenAfter(shards []*Shard, f func()) { tx.relock(shards, f) }

// Narrow commits what there is and continues with some of the locks only, which it
// keeps all the while. The events of the others wait until these are released as well.
func (tx *Tx) Narrow(keep []*Shard) {
	tx.Commit()
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
	tx.Commit()
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
	var room [4]Emitter
	events := room[:0]
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
		return // while others could have the locks
	}
	cause := recover() // nil also where the goroutine ends without a panic
	for _, sh := range shards {
		sh.poisoned = true
	}
	e := shards[0].engine
	for _, sh := range shards {
		sh.mu.Unlock()
	}
	if cause == nil {
		return
	}
	poison.End(e.Logger, e.Config.Fatal, cause)
	panic(cause)
}

// lock takes the shard's lock. It panics if that is poisoned.
func (sh *Shard) lock() {
	sh.mu.Lock()
	if sh.poisoned {
		sh.mu.Unlock()
		panic(poison.ErrPoisoned)
	}
	sh.begin()
}

// begin notes that a command has the lock from now on.
func (sh *Shard) begin() {
	sh.Turn++
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

// Commit appends what the command changed to the journal and does what follows from it:
// it serves waiting receivers, notifies the consumer, sets timers. The commit is nil if the
// command changed nothing.
func (sh *Shard) Commit(sync bool) *journal.Commit {
	if sh.Unchanged() {
		return nil
	}
	c := sh.engine.Journal.Append(sync, sh.seal())
	sh.appended(c)
	sh.afterCommit()
	return c
}

// CommitMuch commits what a command over many queues has changed so far, once that is
// large.
func (sh *Shard) CommitMuch() {
	if sh.Batch.Size()+sh.room() > mutation.StepBytes {
		sh.Commit(false)
	}
}

// CommitPart appends what the command changed so far, so that it can be read from the
// store; the command continues.
func (sh *Shard) CommitPart(sync bool) {
	if sh.Unchanged() {
		return
	}
	sh.appended(sh.engine.Journal.Append(sync, sh.seal()))
}

// commitAll is Commit for a command that changed several shards at once.
func commitAll(sync bool, shards []*Shard) *journal.Commit {
	parts := make([]journal.Part, 0, len(shards))
	changed := make([]*Shard, 0, len(shards))
	for _, sh := range shards {
		if !sh.Unchanged() {
			parts, changed = append(parts, sh.seal()), append(changed, sh)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	c := changed[0].engine.Journal.Append(sync, parts...)
	for _, sh := range changed {
		sh.appended(c)
	}
	for _, sh := range changed {
		sh.afterCommit()
	}
	return c
}

// appended notes with which commit the command under way becomes durable.
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

// MarkDirty notes that the command under way has touched t, which it has not before.
func (sh *Shard) MarkDirty(t Touched) { sh.dirty = append(sh.dirty, t) }

// Unchanged reports that the command under way has nothing to commit.
func (sh *Shard) Unchanged() bool { return sh.Batch.Len() == 0 && len(sh.dirty) == 0 }

// seal makes the changes of a command its shard's part of a commit.
func (sh *Shard) seal() journal.Part {
	return journal.Part{Stream: sh.Log, Batch: &sh.Batch, State: sh.Meta, Room: sh.room()}
}

// room bounds what finish writes for the command under way.
func (sh *Shard) room() (n int) {
	for _, t := range sh.dirty {
		n += t.Room()
	}
	return n
}

// finish writes what stands once in a commit behind what the command under way wrote.
func (sh *Shard) finish(commit uint64, b *mutation.Batch) {
	for _, t := range sh.dirty {
		t.Finish(commit, b)
	}
}

// Untouch forgets what was touched, after it was finished.
func (sh *Shard) Untouch() {
	for _, t := range sh.dirty {
		t.Clean()
	}
	clear(sh.dirty)
	sh.dirty = sh.dirty[:0]
}
