package kernel

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
)

// Shard owns a part of the state. Its commands run one after the other, under its lock, in
// their callers' goroutines. A command reads and changes the parts' state in memory, collects
// its writes in a batch, and appends the batch to the shard's stream of the journal before it
// releases the lock: so the stream has the order of the commands.
type Shard struct {
	ID         uint16
	kernel     *Kernel
	lifecycles []Lifecycle

	mu                sync.Mutex
	poisoned          bool            // a command has panicked half-way
	Closed            bool            // no further command changes anything
	Log               *journal.Stream // the stream that its commands write to
	Meta              journal.State   // the state of Log, as of the current command
	LastCatalogCommit *journal.Commit // the latest that changed the set of queues, topics and functions
	// Generation counts the changes of the catalog; caches of the catalog compare it. It
	// changes only under the lock.
	Generation atomic.Uint64

	// CommandCount counts the commands that have had the lock. It identifies the current one.
	CommandCount uint64

	// State of the current command.
	timed bool // Meta.Now is its time
	Batch mutation.Batch
	dirty []Dirty
	Emits []Emitter // its events
	// Logger is for commands: it writes after the command, so that the lock does not wait for
	// the log. It must not be used without the lock.
	Logger *slog.Logger

	timer timer
}

func newShard(id uint16, k *Kernel) *Shard {
	sh := &Shard{ID: id, kernel: k}
	sh.Logger = slog.New(deferredLog{sh, k.Logger.Handler()})
	sh.timer.call = sh.Tick // a method value allocates: it is made once
	return sh
}

// Base implements Part.
func (sh *Shard) Base() *Shard { return sh }

// Add adds the lifecycle of a part.
func (sh *Shard) Add(l Lifecycle) { sh.lifecycles = append(sh.lifecycles, l) }
