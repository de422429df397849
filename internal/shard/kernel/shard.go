package kernel

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

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
	Stream            *journal.Stream // the stream that its commands write to
	state             journal.State   // of Stream, as of the current command
	LastCatalogCommit *journal.Commit // the latest that changed the set of queues, topics and functions
	// Generation counts the changes of the catalog; caches of the catalog compare it. It
	// changes only under the lock.
	Generation atomic.Uint64

	// CommandCount counts the commands that have had the lock. It identifies the current one.
	CommandCount uint64

	// State of the current command.
	timed bool // state.Now is its time
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

// Now is the time in epoch milliseconds. It stays the same while a command has the lock, and
// never goes back, even if the clock does or the process restarts.
func (sh *Shard) Now() int64 {
	if !sh.timed {
		sh.timed = true
		sh.AdvanceTo(sh.kernel.Clock.Now().UnixMilli())
	}
	return sh.state.Now
}

// LatestTime is the latest time of a command, in epoch milliseconds: Now without a look at the clock.
func (sh *Shard) LatestTime() int64 { return sh.state.Now }

// AdvanceTo moves the shard's time forward, so that no later command is before now.
func (sh *Shard) AdvanceTo(now int64) { sh.state.Now = max(sh.state.Now, now) }

// Epoch is how often the shard's owner has started.
func (sh *Shard) Epoch() uint32 { return sh.state.Epoch }

// LatestIncarnation is the last number that NextIncarnation has given; 0: none yet.
func (sh *Shard) LatestIncarnation() uint64 { return sh.state.Incarnation }

// NextIncarnation gives a number that it never gives again. Like all that a command changes it
// becomes durable with the command.
func (sh *Shard) NextIncarnation() uint64 {
	sh.state.Incarnation++
	return sh.state.Incarnation
}

// At is a moment of the clock in the shard's time, in epoch milliseconds. Where the clock was set
// back, the shard's time is ahead of it: what waits for the moment waits as long from there, as it
// would be due at once otherwise.
func (sh *Shard) At(moment time.Time) int64 {
	now := sh.Now()
	return moment.UnixMilli() + max(now-sh.kernel.Clock.Now().UnixMilli(), 0)
}

// FlushAppended makes what the shard has appended so far visible in the store: not what a
// command in progress has changed, which is appended at its end.
func (sh *Shard) FlushAppended() {
	if !sh.Stream.Last().Applied() {
		sh.kernel.Journal.Flush()
	}
}

// close has the parts write the state that they have only in memory, and refuses further
// changes. It returns false if the shard is poisoned: memory may be ahead of the disk then.
func (sh *Shard) close() bool {
	sh.mu.Lock()
	poisoned := sh.poisoned
	sh.mu.Unlock()
	if poisoned {
		return false
	}
	sh.RunLazy(func() {
		for _, l := range sh.lifecycles {
			l.Close()
		}
		sh.Closed = true
		sh.timer.stop()
	})
	return true
}
