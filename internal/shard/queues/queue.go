// Package queues is the module of queues: SQS's own, and those in which other modules
// keep what waits for somebody. A queue is a pure machine with what its shard keeps
// around it: who waits, which commits its messages become durable with, when it is due.
package queues

import (
	"bytes"
	"cmp"
	"sync/atomic"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/limit/accounts"
	"godwit.dev/godwit/internal/packed"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues/accepted"
	"godwit.dev/godwit/internal/shard/queues/encryption"
	"godwit.dev/godwit/internal/shard/queues/faults"
	"godwit.dev/godwit/internal/shard/queues/receipt"
	"godwit.dev/godwit/internal/sorted"
	"godwit.dev/godwit/internal/store"
)

// Options are what the module is made of.
type Options struct {
	// Cooldowns refuses to create a queue within 60 s of its deletion, and to
	// purge one within 60 s of its last purge.
	Cooldowns bool
	// Strict has topics send to queues only whose policy lets them, also within an account.
	Strict bool
	// Events is told what happens to the messages of SQS queues, once it has been
	// committed. It may be called concurrently, and must be quick. May be nil.
	Events func(QueueEvent)
	// Sign puts into the body of a message that is Unsigned what it lacks. It is
	// called without any lock. Needed where messages are rendered so.
	Sign func(body []byte, u *message.Unsigned) error
	// Encryption is for encrypted queues; nil: messages are kept in clear, and what is
	// to be encrypted under a key other than AWS's own is refused.
	Encryption encryption.Keys
	// Sealer seals the key that receipt handles are authenticated with; nil: it is kept
	// in clear.
	Sealer *seal.Sealer
	// Accounts bound what accounts hold; nil: they hold any amount.
	Accounts *accounts.Accounts
}

// Queues is the module of queues: SQS's, and those that other modules have for
// what waits for somebody else.
type Queues struct {
	*kernel.Kernel
	kernel.Parts[*Shard]
	options Options
	handles *receipt.Handles
	faults.Faults
	encryption.Messages
	Accounts        *accounts.Accounts
	Hooks           Hooks
	creationWatcher atomic.Pointer[func(arn.ARN)]
}

// Hooks are what others do when something becomes of queues. They are called
// under the lock of the queue's shard. All are set.
type Hooks struct {
	// DeadLetters is called with messages that were received often enough, which are
	// leased for their way to the dead-letter queue.
	DeadLetters func(qs *Queue, moves []queue.Lease)
	// Purged and deleted are called as part of the command that does that.
	Purged, Deleted func(a arn.ARN)
	// Ready is called with a queue of another module that has something due.
	Ready func(qs *Queue)
}

// Shard is the module's part in a shard.
type Shard struct {
	*kernel.Shard
	engine   *Queues
	loaded   map[arn.ARN]*Queue
	parked   packed.Map // see park.go
	Backlogs map[layout.Incarnation]*Queue
	Counters map[layout.Incarnation][]byte // while the shard is loaded: those without an owner yet
	Timers   sorted.Heap[*Queue]

	deletions map[arn.ARN]int64    // when queues were deleted, for the cool-down
	sources   map[arn.ARN][]string // by dead-letter queue: the names of this shard's queues that have it, in order

	configured atomic.Pointer[configured] // of the queue that was asked for last

	emptied []*Queue // queues and backlogs that became empty last, which are likely to be used again

	Duplicates accepted.Log // of what FIFO queues and topics accept

	running *Queue // whose machine runs a command
	sizes   []int  // room for those of the messages of a send
}

// New adds the module to the shards.
func New(k *kernel.Kernel, o Options) *Queues {
	e := &Queues{Kernel: k, options: o, Accounts: o.Accounts, Messages: encryption.Messages{Keys: o.Encryption}}
	if e.Accounts == nil {
		e.Accounts = accounts.New(nil, k.Clock.Now)
	}
	for id, sh := range k.All {
		s := &Shard{Shard: sh, engine: e, Duplicates: accepted.New(k, sh), loaded: map[arn.ARN]*Queue{}, Backlogs: map[layout.Incarnation]*Queue{}}
		e.Shards[id] = s
		sh.Add(module{sh: s})
	}
	return e
}

// module is the module of a shard.
type module struct {
	kernel.NopModule
	sh *Shard
}

func (m module) Load() error {
	sh := m.sh
	if sh.ID == 0 {
		var err error
		if sh.engine.handles, err = receipt.Load(sh.engine.Store, sh.engine.options.Sealer, &sh.Batch); err != nil {
			return err
		}
	}
	sh.Counters = map[layout.Incarnation][]byte{}
	err := store.Each(sh.engine.Store, layout.AllCounters(sh.ID), func(key, value []byte) bool {
		sh.Counters[layout.CountersIncarnation(key)] = bytes.Clone(value)
		return true
	})
	return cmp.Or(err, sh.loadQueues())
}

func (m module) Resume() {
	sh := m.sh
	for _, qs := range sh.Loaded() {
		if qs.Machine.Stale() {
			_, _ = sh.ask(qs, sh.Now(), queue.Prefetch{Max: 1}) // which rebuilds its orders
		}
		if !qs.Machine.Empty() {
			sh.Touch(qs)
			sh.CommitMuch()
		}
	}
}

func (m module) NextDue() int64 {
	sh := m.sh
	if len(sh.Timers) == 0 {
		return 0
	}
	return sh.Timers[0].timer.at
}

// tickQueues bounds how many queues one tick looks after before it lets other
// commands in.
const tickQueues = 256

func (m module) Tick(now int64) {
	sh := m.sh
	for range tickQueues {
		if len(sh.Timers) == 0 || sh.Timers[0].timer.at > now {
			break
		}
		qs := sh.Timers[0]
		sh.setTimer(qs, 0)
		if qs.Ended() {
			continue
		}
		sh.sweep(qs, now)
		_, _ = sh.Do(qs, now, queue.Expire{})
		sh.Commit(false)
	}
}

// Queue is a machine with what its shard keeps around it.
type Queue struct {
	Machine     queue.Machine
	Shard       *Shard
	Incarnation layout.Incarnation
	ARN         arn.ARN // the queue's, or the subscription's or function's whose backlog it is
	Owner       Owner   // of what it is the backlog; nil: it goes when it is dropped
	Record      *QueueRecord
	Policy      *policy.Policy // of record; nil: none
	Backlog     bool
	Consumption Consumption
	Gone        bool   // it is deleted, or dropped, or was parked: whoever has it from before has to look again
	turn        uint64 // the command that used it last
	dirty       bool
	Emptied     bool // among the shard's emptied ones
	timer       queueTimer
	waiters     waiterList
	Dead        *DeadLetters // on their way to the dead-letter queue; nil: none are
	unsynced    unsynced
	dedup       *dedup.Window // FIFO: of messages accepted recently
	slot        Slot

	told told
}

// told is what others were told last of a queue.
type told struct {
	saved   queue.Saved    // the store, of its counters
	account *accounts.Held // whose it is; nil: nothing was in it yet
	bytes   int64          // account, of the bytes in it
}

// Consumption is what is kept of a backlog's consumer.
type Consumption struct {
	Readied bool   // it was told, and has not come yet
	Paused  bool   // it is told nothing
	Low     uint64 // no message has a lower sequence; a memory of searches
}

// queueTimer is when a queue is due, in epoch milliseconds, and its place in the heap of
// timers; 0: never.
type queueTimer struct {
	at    int64
	index int32
}

// unsynced are the messages that are perhaps not durable.
type unsynced struct {
	newest  uint64 // the last one that the command under way added
	durable uint64 // all up to this one are; 0: it is not known of any
	pending []pendingAppend
}

// Owner is of what a queue is the backlog.
type Owner interface{ Gone() bool }

// DeadLetters are the messages of a queue that somebody carries to its
// dead-letter queue, oldest first.
type DeadLetters struct{ Moves []queue.Lease }

// pendingAppend says with which commit the messages up to a sequence become durable.
type pendingAppend struct {
	sequence uint64
	commit   *journal.Commit
}

// Touch marks a queue as changed by the command under way.
func (sh *Shard) Touch(qs *Queue) {
	qs.turn = sh.Turn
	if !qs.dirty {
		qs.dirty = true
		sh.MarkDirty(qs)
	}
}

// Accept adds a message to a queue of this shard, as part of the command under way.
func (sh *Shard) Accept(qs *Queue, now int64, a queue.Arrival) uint64 {
	r, _ := sh.DoAtOnce(qs, now, queue.Accept{Arrival: a}) // it refuses nothing
	qs.unsynced.newest = r.Sequence
	return qs.unsynced.newest
}

// NoRoomFrom refuses what another account's resource would put into a queue whose account
// holds as much as it may. What stays within an account takes no more than before.
func (qs *Queue) NoRoomFrom(source arn.ARN) error {
	if source.Account == qs.ARN.Account {
		return nil
	}
	return qs.Shard.engine.Accounts.Room(qs.ARN.Account, 1)
}

// Committed does what a change of the queue asks for.
func (qs *Queue) Committed() { qs.Shard.AfterCommit(qs) }

// Clean implements touched.
func (qs *Queue) Clean() {
	qs.dirty = false
	qs.count()
}

// count tells what has become of the bytes in the queue to whose account holds them.
func (qs *Queue) count() {
	now := qs.Machine.Bytes()
	if qs.Gone {
		now = 0
	}
	if now == qs.told.bytes {
		return
	}
	if qs.told.account == nil {
		qs.told.account = qs.Shard.engine.Accounts.Of(qs.ARN.Account)
	}
	qs.told.account.AddBytes(now - qs.told.bytes)
	qs.told.bytes = now
}

// Appended implements touched.
func (qs *Queue) Appended(c *journal.Commit) {
	if qs.unsynced.newest != 0 {
		qs.noteCommit(qs.unsynced.newest, c)
		qs.unsynced.newest = 0
	}
}

// AfterCommit does what a changed queue asks for: who waits is served, the consumer is
// told, the timer is set. It runs between commands.
func (sh *Shard) AfterCommit(qs *Queue) {
	if qs.Ended() {
		sh.setTimer(qs, 0)
		return
	}
	sh.noteEmpty(qs)
	now := sh.Now()
	if qs.waiters.first != nil {
		sh.serve(qs, now)
	}
	if qs.Backlog && !qs.Consumption.Readied && !qs.Consumption.Paused {
		sh.engine.Hooks.Ready(qs)
	}
	at := qs.Machine.NextTimer(now)
	if at == now { // perhaps only because the next due time is on disk
		_, _ = sh.ask(qs, now, queue.Prefetch{Max: 1})
		at = qs.Machine.NextTimer(now)
	}
	if at != 0 {
		at = max(at, now+1) // what one command left undone gives way to others first
	}
	sh.timerBy(qs, at)
}

// timerBy makes qs due at a moment, unless it is due before that; 0 is never.
func (sh *Shard) timerBy(qs *Queue, at int64) {
	if at != 0 && (qs.timer.at == 0 || at < qs.timer.at) {
		sh.setTimer(qs, at)
	}
}

// Available reports whether a receive would find something.
func (sh *Shard) Available(qs *Queue, now int64) bool {
	r, _ := sh.ask(qs, now, queue.Probe{})
	return r.Found
}

// Before orders the queues that wait for a moment.
func (qs *Queue) Before(o *Queue) bool { return qs.timer.at < o.timer.at }

// Place is where the queue is among them.
func (qs *Queue) Place() *int32 { return &qs.timer.index }

// setTimer makes qs due at a moment; 0 for never.
func (sh *Shard) setTimer(qs *Queue, at int64) {
	switch {
	case qs.timer.at == 0 && at != 0:
		qs.timer.at = at
		sh.Timers.Push(qs)
	case at == 0 && qs.timer.at != 0:
		sh.Timers.Remove(qs)
		qs.timer.at = 0
	case at != 0:
		qs.timer.at = at
		sh.Timers.Fix(qs)
	}
}

// sweep drops the messages of a queue that are past their retention.
func (sh *Shard) sweep(qs *Queue, now int64) {
	if r, _ := sh.Do(qs, now, queue.Sweep{}); r.Removed > 0 {
		sh.EmitMessages(qs, MessagesExpired, now, r.Removed)
	}
}

// Lookup finds a queue. The error is a refusal for the caller; it may depend on a
// deletion that is not durable yet, so wait for the returned commit before
// answering it.
func (sh *Shard) Lookup(a arn.ARN) (*Queue, error) {
	qs, ok := sh.Queue(a)
	if !ok {
		return nil, ErrNoQueue
	}
	if err := sh.engine.Injected(a); err != nil {
		return nil, err
	}
	return qs, nil
}

// inconsistent reports counters that disagreed with the records: a fault in
// this program, which has been mended for this queue.
func (sh *Shard) inconsistent(qs *Queue) {
	sh.Logger.Error("a queue's counters disagreed with its records and were set right", "queue", qs.ARN.String())
}

// OfQueues is the part of what depends on it.
func (sh *Shard) OfQueues() *Shard { return sh }
