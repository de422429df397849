package shard

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// Tx is a command on one or several shards, from the moment it has their locks until
// what it has changed is appended to the journal, as one atomic unit, and the locks
// are released. What it has to tell is told after that. A command that panics leaves
// memory ahead of the disk: its shards take no other, and the process ends.
type Tx struct {
	shards []*coreShard // locked, in the order of their ids; nil: none is
	own    [1]*coreShard
	sync   bool            // the commit is made durable at once; else within 10 ms
	rest   *journal.Commit // that an answer without a commit of its own rests on
	done   bool
}

// Emitter tells somebody of what a command did, after its commit and outside of the
// locks. It may be called while other commands run, and before those that came earlier.
type Emitter interface{ Emit() }

// emit has something told once the command under way is over.
func (sh *coreShard) emit(e Emitter) { sh.emits = append(sh.emits, e) }

// errPoisoned is why a shard takes no more commands.
var errPoisoned = errors.New("shard: a command has panicked half-way, and memory may be ahead of the disk")

// run runs a command on a shard and returns the commit that its answer rests on:
// its own; if it has changed nothing, what it asked for with restOn, or, for a
// refusal, the latest change of the catalog. With durable its commit is made so at
// once, else within 10 ms. The error is the command's, whose changes count all the same.
func (sh *coreShard) run(durable bool, command func(tx *Tx) error) (*journal.Commit, error) {
	sh.lock()
	tx := txs.Get().(*Tx)
	tx.own[0] = sh
	tx.shards, tx.sync = tx.own[:], durable
	defer tx.end()
	return tx.run(command)
}

var txs = sync.Pool{New: func() any { return new(Tx) }}

// runAll is run for a command on several shards, in any order, which may be the same.
// A refusal rests on what changed the catalog of the last one, which it is about.
func runAll(durable bool, command func(tx *Tx) error, shards ...*coreShard) (*journal.Commit, error) {
	last := shards[len(shards)-1]
	slices.SortFunc(shards, func(a, b *coreShard) int { return int(a.id) - int(b.id) })
	shards = slices.Compact(shards)
	lockAll(shards)
	tx := txs.Get().(*Tx)
	tx.shards, tx.sync = shards, durable
	defer tx.end()
	return tx.run(func(tx *Tx) error {
		err := command(tx)
		if err != nil && tx.rest == nil {
			tx.rest = last.lastCatalogCommit
		}
		return err
	})
}

func (tx *Tx) run(command func(tx *Tx) error) (*journal.Commit, error) {
	err := command(tx)
	if err != nil && tx.rest == nil {
		tx.rest = tx.shards[0].lastCatalogCommit
	}
	c := tx.commit()
	if c == nil {
		c = tx.rest
	}
	tx.done = true
	return c, err
}

// runDurable runs a command on a shard and returns once its answer is durable.
func (sh *coreShard) runDurable(command func(tx *Tx) error) error {
	c, err := sh.run(true, command)
	c.Wait()
	return err
}

// view looks at a shard.
func (sh *coreShard) view(look func()) {
	_, _ = sh.run(false, func(*Tx) error {
		look()
		return nil
	})
}

// awaitCatalog returns once the catalog is durable as it is.
func (sh *coreShard) awaitCatalog() {
	var c *journal.Commit
	sh.view(func() { c = sh.lastCatalogCommit })
	c.Wait()
}

// restOn says what the answer rests on if the command changes nothing.
func (tx *Tx) restOn(c *journal.Commit) { tx.rest = c }

// commit appends what the command has changed so far, as one atomic unit, and sees
// to what follows from it; nil if that is nothing.
func (tx *Tx) commit() *journal.Commit {
	if len(tx.shards) == 1 {
		return tx.shards[0].commit(tx.sync)
	}
	return commitAll(tx.sync, tx.shards)
}

// yield commits what there is, runs f while others may have the locks, and goes on.
func (tx *Tx) yield(f func()) {
	tx.relock(nil, f)
}

// widen commits what there is and goes on with the locks of other shards, the first
// one's among them, in the order of their ids. Others may have had the locks in between.
func (tx *Tx) widen(shards []*coreShard) { tx.relock(shards, nil) }

// narrow commits what there is and goes on with some of the locks only, which it
// keeps all the while.
func (tx *Tx) narrow(keep []*coreShard) {
	tx.commit()
	all := tx.shards
	tx.shards = slices.DeleteFunc(slices.Clone(all), func(sh *coreShard) bool { return slices.Contains(keep, sh) })
	tx.release()
	tx.shards = keep
}

func (tx *Tx) relock(shards []*coreShard, between func()) {
	tx.commit()
	if shards == nil {
		shards = tx.shards
	}
	tx.release()
	if between != nil {
		between()
	}
	lockAll(shards)
	tx.shards = shards
}

// release opens the locks and tells what there is to tell.
func (tx *Tx) release() {
	var room [4]Emitter
	told := room[:0]
	shards := tx.shards
	tx.shards = nil
	for _, sh := range shards {
		if len(sh.emits) > 0 {
			told = append(told, sh.emits...)
			clear(sh.emits)
			sh.emits = sh.emits[:0]
		}
	}
	for _, sh := range shards {
		sh.mu.Unlock()
	}
	for _, e := range told {
		e.Emit()
	}
}

// end releases the locks after a command, or poisons them if it has panicked. To be
// deferred.
func (tx *Tx) end() {
	if tx.done {
		tx.release()
		*tx = Tx{}
		txs.Put(tx)
		return
	}
	shards := tx.shards
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
	e.logger.Error("a command has panicked: godwit ends, and is to be started again", "panic", cause, "stack", string(debug.Stack()))
	e.config.Fatal(fmt.Errorf("%w: %v", errPoisoned, cause))
	panic(cause)
}

// lock waits for the shard's turn. It panics where a command has before.
func (sh *coreShard) lock() {
	sh.mu.Lock()
	if sh.poisoned {
		sh.mu.Unlock()
		panic(errPoisoned)
	}
}

// lockAll locks shards, which are in the order of their ids.
func lockAll(shards []*coreShard) {
	for i, sh := range shards {
		sh.mu.Lock()
		if sh.poisoned {
			for _, locked := range shards[:i+1] {
				locked.mu.Unlock()
			}
			panic(errPoisoned)
		}
	}
}

// commit hands what the command changed to the journal and sees to what follows
// from it: waiting receivers, the consumer, timers. The commit is nil when the
// command changed nothing.
func (sh *coreShard) commit(sync bool) *journal.Commit {
	if sh.batch.Len() == 0 && len(sh.dirty) == 0 {
		return nil
	}
	c := sh.engine.journal.Append(sync, sh.seal())
	sh.appended(c)
	sh.afterCommit()
	return c
}

// commitMuch commits what a command has changed so far of many queues, if that is
// much.
func (sh *coreShard) commitMuch() {
	if sh.batch.Size()+sh.room() > mutation.StepBytes {
		sh.commit(false)
	}
}

// commitPart hands over what the command changed so far, so that the store can
// show it; the command goes on.
func (sh *coreShard) commitPart(sync bool) {
	if sh.batch.Len() == 0 && len(sh.dirty) == 0 {
		return
	}
	sh.appended(sh.engine.journal.Append(sync, sh.seal()))
}

// commitAll is commit for a command that changed several shards at once.
func commitAll(sync bool, shards []*coreShard) *journal.Commit {
	parts := make([]journal.Part, 0, len(shards))
	changed := make([]*coreShard, 0, len(shards))
	for _, sh := range shards {
		if sh.batch.Len() > 0 || len(sh.dirty) > 0 {
			parts, changed = append(parts, sh.seal()), append(changed, sh)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	c := changed[0].engine.journal.Append(sync, parts...)
	for _, sh := range changed {
		sh.appended(c)
	}
	for _, sh := range changed {
		sh.afterCommit()
	}
	return c
}

// appended notes with which commit the command under way becomes durable.
func (sh *coreShard) appended(c *journal.Commit) {
	for _, t := range sh.dirty {
		t.appended(c)
	}
}

func (sh *coreShard) afterCommit() {
	touched := sh.dirty
	sh.dirty = nil
	for _, t := range touched {
		t.clean()
	}
	for _, t := range touched {
		t.committed()
	}
	if sh.dirty == nil {
		sh.dirty = touched[:0]
	}
	sh.arm()
}

// seal ends the writing of a command: what it changed is the part of a commit.
func (sh *coreShard) seal() journal.Part {
	return journal.Part{Stream: sh.log, Batch: &sh.batch, State: sh.meta, Room: sh.room()}
}

// room bounds what finish writes for the command under way.
func (sh *coreShard) room() (n int) {
	for _, t := range sh.dirty {
		n += t.room()
	}
	return n
}

// finish writes what stands once in a commit behind what the command under way wrote.
func (sh *coreShard) finish(commit uint64, b *mutation.Batch) {
	for _, t := range sh.dirty {
		t.finish(commit, b)
	}
}

// untouch forgets what was touched, after it was finished.
func (sh *coreShard) untouch() {
	for _, t := range sh.dirty {
		t.clean()
	}
	clear(sh.dirty)
	sh.dirty = sh.dirty[:0]
}
