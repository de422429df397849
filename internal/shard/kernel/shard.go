package kernel

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// Shard owns a slice of the state. Its commands run one after the other, under its lock, in
// their callers' goroutines. A command reads and changes the modules' state in memory,
// collects its writes in a batch, and appends that to the shard's stream of the journal
// before the lock is released: so the stream has the order of the commands.
type Shard struct {
	ID      uint16
	engine  *Kernel
	modules []Module

	mu                sync.Mutex
	poisoned          bool            // a command has panicked half-way
	Closed            bool            // no further command changes anything
	Log               *journal.Stream // what its commands write
	Meta              journal.State   // what the log remembers
	LastCatalogCommit *journal.Commit // the latest that changed which queues, topics and functions there are
	// Generation counts the changes of the catalog. It changes under the lock only.
	Generation atomic.Uint64

	// Turn counts the commands that have had the lock.
	Turn uint64

	// Of the command under way.
	timed bool // it has asked for the time
	Batch mutation.Batch
	dirty []Touched
	Emits []Emitter // its events
	// Logger is for what a command logs, which is written once that is over: it must not
	// be used without the lock.
	Logger *slog.Logger

	timer timer
}

func newShard(id uint16, e *Kernel) *Shard {
	sh := &Shard{ID: id, engine: e}
	sh.Logger = slog.New(deferredLog{sh, e.Logger.Handler()})
	sh.timer.call = sh.Tick // made once: each would be an allocation
	return sh
}

// Base implements Part.
func (sh *Shard) Base() *Shard { return sh }

// Add adds a module.
func (sh *Shard) Add(m Module) { sh.modules = append(sh.modules, m) }
