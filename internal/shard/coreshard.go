package shard

import (
	"sync"
	"sync/atomic"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// coreShard owns a slice of the state. Its commands run one after the other, under
// mu, in the goroutines of their callers; a command reads and changes what the modules
// have in memory, collects what to write in a batch and appends it to the shard's stream
// of the journal before mu is released, so that its order is the order of the commands.
type coreShard struct {
	id      uint16
	engine  *core
	modules []module

	mu                sync.Mutex
	poisoned          bool            // a command has panicked half-way
	closed            bool            // no further command changes anything
	log               *journal.Stream // what its commands write
	meta              journal.State   // what the log remembers
	lastCatalogCommit *journal.Commit // the latest that changed which queues, topics and functions there are
	// generation counts the changes of the catalog. It changes under mu only.
	generation atomic.Uint64

	// Of the command under way.
	batch mutation.Batch
	dirty []touched
	emits []Emitter // what it has to tell

	timer   clock.Timer
	timerAt int64
}

// core implements shardPart.
func (sh *coreShard) core() *coreShard { return sh }

// add adds a module.
func (sh *coreShard) add(m module) { sh.modules = append(sh.modules, m) }
