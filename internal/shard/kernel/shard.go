package kernel

import (
	"sync"
	"sync/atomic"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// Shard owns a slice of the state. Its commands run one after the other, under Mu, in
// their callers' goroutines. A command reads and changes the modules' state in memory,
// collects its writes in a batch, and appends that to the shard's stream of the journal
// before Mu is released: so the stream has the order of the commands.
type Shard struct {
	ID      uint16
	engine  *Kernel
	modules []Module

	Mu                sync.Mutex
	poisoned          bool            // a command has panicked half-way
	Closed            bool            // no further command changes anything
	Log               *journal.Stream // what its commands write
	Meta              journal.State   // what the log remembers
	LastCatalogCommit *journal.Commit // the latest that changed which queues, topics and functions there are
	// Generation counts the changes of the catalog. It changes under Mu only.
	Generation atomic.Uint64

	// Turn counts the commands that have had Mu.
	Turn uint64

	// Of the command under way.
	timed bool // it has asked for the time
	Batch mutation.Batch
	dirty []Touched
	Emits []Emitter // its events

	timer timer
}

func newShard(id uint16, e *Kernel) *Shard {
	sh := &Shard{ID: id, engine: e}
	sh.timer.call = sh.Tick // made once: each would be an allocation
	return sh
}

// Base implements Part.
func (sh *Shard) Base() *Shard { return sh }

// Add adds a module.
func (sh *Shard) Add(m Module) { sh.modules = append(sh.modules, m) }
