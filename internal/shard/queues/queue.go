// Package queues is the module of queues: SQS queues, and the backlogs of other modules. A
// Queue is a pure state machine (package queue) with its state in the shard: waiting receives,
// the commits that make its messages durable, its timer.
package queues

import (
	"bytes"
	"sync/atomic"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/limit/accounts"
	"godwit.dev/godwit/internal/packed"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues/deduplog"
	"godwit.dev/godwit/internal/shard/queues/encryption"
	"godwit.dev/godwit/internal/shard/queues/faults"
	"godwit.dev/godwit/internal/shard/queues/receipt"
	"godwit.dev/godwit/internal/sorted"
	"godwit.dev/godwit/internal/store"
)

// Options configure the module.
type Options struct {
	// Cooldowns refuses to create a queue within 60 s of its deletion, and to
	// purge one within 60 s of its last purge.
	Cooldowns bool
	// Strict has a queue without a policy refuse topics of its own account, too.
	Strict bool
	// Events is called for what happens to the messages of SQS queues, after the
	// commit. It may be called concurrently, and must be quick. May be nil.
	Events func(QueueEvent)
	// Sign puts the missing signature into the body of a message that is Unsigned. It is
	// called without any lock. Needed if topics render unsigned messages.
	Sign func(body []byte, u *message.Unsigned) error
	// Encryption is for encrypted queues; nil: messages are stored in plaintext, and keys
	// other than AWS managed ones are refused.
	Encryption encryption.Keys
	// Sealer seals the key that receipt handles are authenticated with; nil: it is kept
	// in clear.
	Sealer *seal.Sealer
	// Accounts are the storage quotas of accounts; nil: there are none.
	Accounts *accounts.Accounts
}

// Queues is the module.
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

// Hooks are the callbacks of the modules above, all of which are set. They are called under
// the lock of the queue's shard.
type Hooks struct {
	// DeadLetters is called with messages that have reached maxReceiveCount. They are
	// leased until they have been moved to the dead-letter queue.
	DeadLetters func(qs *Queue, moves []queue.Lease)
	// Purged and Deleted are called in the command that purges or deletes the queue.
	Purged, Deleted func(a arn.ARN)
	// Ready is called with a backlog that has due messages.
	Ready func(qs *Queue)
}

// Shard is the module's part in a shard.
type Shard struct {
	*kernel.Shard
	module   *Queues
	loaded   map[arn.ARN]*Queue
	parked   packed.Map // see park.go
	Backlogs map[layout.Incarnation]*Queue
	Counters map[layout.Incarnation][]byte // only while the shard is loaded: those whose queue is not loaded yet
	Timers   sorted.Heap[*Queue]

	deletions map[arn.ARN]int64    // when queues were deleted, for the cool-down
	sources   map[arn.ARN][]string // by dead-letter queue: the names of this shard's queues that have it, in order

	cachedConfig atomic.Pointer[cachedConfig] // of the queue that was looked up last

	emptied []*Queue // queues and backlogs that became empty last, which are likely to be used again

	Duplicates deduplog.Log // of what FIFO queues and topics accept

	running *Queue // whose machine runs a command, for splittingReader
	sizes   []int  // reused by send
}

// New adds the module to the shards.
func New(k *kernel.Kernel, o Options) *Queues {
	q := &Queues{Kernel: k, options: o, Accounts: o.Accounts, Messages: encryption.Messages{Keys: o.Encryption}}
	if q.Accounts == nil {
		q.Accounts = accounts.New(nil, k.Clock.Now)
	}
	for id, sh := range k.All {
		s := &Shard{Shard: sh, module: q, Duplicates: deduplog.New(k, sh), loaded: map[arn.ARN]*Queue{}, Backlogs: map[layout.Incarnation]*Queue{}}
		q.Shards[id] = s
		sh.Add(lifecycle{sh: s})
	}
	return q
}

// lifecycle is how the kernel runs a Shard of this package.
type lifecycle struct {
	kernel.NopLifecycle
	sh *Shard
}

func (l lifecycle) Load() error {
	sh := l.sh
	if sh.ID == 0 {
		var err error
		if sh.module.handles, err = receipt.Load(sh.module.Store, sh.module.options.Sealer, &sh.Batch); err != nil {
			return err
		}
	}
	sh.Counters = map[layout.Incarnation][]byte{}
	err := store.EachOf(sh.module.Store, keyspace.KindCounters, layout.AllCounters(sh.ID), func(k *keyspace.Key, value []byte) error {
		inc, _ := k.Number(keyspace.PartIncarnation)
		sh.Counters[layout.Incarnation(inc)] = bytes.Clone(value)
		return nil
	})
	if err != nil {
		return err
	}
	return sh.loadQueues()
}

func (l lifecycle) Resume() {
	sh := l.sh
	for _, qs := range sh.Loaded() {
		if qs.Machine.Stale() {
			_, _ = sh.doUntouched(qs, sh.Now(), queue.Prefetch{Max: 1}) // which converts its index
		}
		if !qs.Machine.Empty() || qs.Machine.NextTimer(sh.Now()) != 0 {
			sh.Touch(qs)
			sh.AppendIfLarge()
		}
	}
}

func (l lifecycle) NextDue() int64 {
	sh := l.sh
	due := sh.Duplicates.NextDue()
	if len(sh.Timers) > 0 && (due == 0 || sh.Timers[0].timer.at < due) {
		due = sh.Timers[0].timer.at
	}
	return due
}

// tickQueues bounds how many queues one tick handles before it releases the lock.
const tickQueues = 256

func (l lifecycle) Tick(now int64) {
	sh := l.sh
	sh.Duplicates.Expire(now)
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
		_, _ = sh.Do(qs, now, queue.Recount{})
		_, _ = sh.Do(qs, now, queue.Expire{})
		sh.Append(journal.Lazy)
	}
}

// Queue is a machine with its state in the shard.
type Queue struct {
	Machine     queue.Machine
	Shard       *Shard
	Incarnation layout.Incarnation
	ARN         arn.ARN // the queue's, or the subscription's or function's whose backlog it is
	Topic       Topic   // of a subscription's backlog; nil: it exists until it is dropped
	Record      *QueueRecord
	Policy      *policy.Policy // of record; nil: none
	Backlog     bool
	Consumption Consumption
	Gone        bool   // it was deleted, dropped or parked: the pointer is stale, look the queue up again
	lastCommand uint64 // the command that used it last
	dirty       bool   // among the shard's dirty objects
	Emptied     bool   // among the shard's emptied ones
	timer       queueTimer
	waiters     waiterList
	Dead        *DeadLetters // being moved to the dead-letter queue; nil: none are
	unsynced    unsynced
	dedup       *dedup.Window // FIFO: of messages accepted recently
	slot        Slot

	reported reported
}

// newQueue makes a queue or backlog without messages.
func (sh *Shard) newQueue(a arn.ARN, inc layout.Incarnation, cfg queue.Config, kind queue.Kind) *Queue {
	qs := &Queue{Shard: sh, ARN: a, Incarnation: inc, Backlog: kind.Backlog}
	qs.Machine = *queue.New(layout.NewKeys(sh.ID, inc), cfg, kind)
	return qs
}

// queueOf makes the queue of a record; without its policy if policyRead is false.
func (sh *Shard) queueOf(a arn.ARN, r *QueueRecord, cfg queue.Config) (qs *Queue, policyRead bool) {
	qs = sh.newQueue(a, r.Incarnation, cfg, queue.Kind{FIFO: a.FIFO()})
	qs.Record = r
	return qs, qs.loadPolicy()
}

// AddBacklog makes the backlog of a subscription or function; fifo is that of a FIFO topic.
func (sh *Shard) AddBacklog(of arn.ARN, inc layout.Incarnation, fifo bool) *Queue {
	qs := sh.newQueue(of, inc, queue.Config{}, queue.Kind{Backlog: true, FIFO: fifo})
	sh.Backlogs[inc] = qs
	return qs
}

// reported are the values that were reported last, to report changes only.
type reported struct {
	saved   queue.Saved    // to the store: the counters
	account *accounts.Held // of the owner; nil: the queue was empty so far
	bytes   int64          // to account: the queue's size
}

// Consumption is the state of a backlog towards its consumer.
type Consumption struct {
	Notified bool   // Hooks.Ready was called, and no lease has followed yet
	Paused   bool   // Hooks.Ready is not called
	Low      uint64 // no message has a lower sequence: where searches begin
}

// queueTimer is when a queue is due, in epoch milliseconds, and its place in the heap of
// timers; 0: never.
type queueTimer struct {
	at    int64
	index int32
}

// Topic is the topic of a subscription: its backlogs end with it, before they are dropped.
type Topic interface{ Gone() bool }

// DeadLetters are the messages that are being moved to a queue's dead-letter queue, oldest
// first.
type DeadLetters struct{ Moves []queue.Lease }

// Touch marks a queue as changed by the command.
func (sh *Shard) Touch(qs *Queue) {
	qs.lastCommand = sh.CommandCount
	if !qs.dirty {
		qs.dirty = true
		sh.MarkDirty(qs)
	}
}

// Accept adds a message to a queue of this shard, as part of the command.
func (sh *Shard) Accept(qs *Queue, now int64, a queue.Arrival) uint64 {
	r, _ := sh.DoAtomic(qs, now, queue.Accept{Arrival: a}) // Accept has no errors
	qs.unsynced.newest = r.Sequence
	return qs.unsynced.newest
}

// CheckQuota refuses, with Throttled, a message from another account if the queue's account has
// used up its storage quota. A transfer within an account needs no additional storage.
func (qs *Queue) CheckQuota(source arn.ARN) error {
	if source.Account == qs.ARN.Account {
		return nil
	}
	return qs.Shard.module.Accounts.CheckStorage(qs.ARN.Account, 1)
}

// Committed implements kernel.Dirty.
func (qs *Queue) Committed() { qs.Shard.AfterCommit(qs) }

// Clean implements kernel.Dirty.
func (qs *Queue) Clean() {
	qs.dirty = false
	qs.count()
}

// count reports a change of the queue's size to its account.
func (qs *Queue) count() {
	now := qs.Machine.Bytes()
	if qs.Gone {
		now = 0
	}
	if now == qs.reported.bytes {
		return
	}
	if qs.reported.account == nil {
		qs.reported.account = qs.Shard.module.Accounts.Of(qs.ARN.Account)
	}
	qs.reported.account.AddBytes(now - qs.reported.bytes)
	qs.reported.bytes = now
}

// AfterCommit reacts to a change of a queue: it serves waiting receives, notifies the consumer
// and sets the timer.
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
	if qs.Backlog && !qs.Consumption.Notified && !qs.Consumption.Paused {
		sh.module.Hooks.Ready(qs)
	}
	at := qs.Machine.NextTimer(now)
	if at == now { // perhaps only because the next due time is on disk
		_, _ = sh.doUntouched(qs, now, queue.Prefetch{Max: 1})
		at = qs.Machine.NextTimer(now)
	}
	if at != 0 {
		at = max(at, now+1) // other commands first: one Recount, Expire or Sweep is bounded
	}
	sh.timerBy(qs, at)
}

// timerBy sets the queue's timer to a time, in epoch milliseconds, unless it is set to an earlier
// one; 0 changes nothing.
func (sh *Shard) timerBy(qs *Queue, at int64) {
	if at != 0 && (qs.timer.at == 0 || at < qs.timer.at) {
		sh.setTimer(qs, at)
	}
}

// Available reports whether a receive would find a message.
func (sh *Shard) Available(qs *Queue, now int64) bool {
	r, _ := sh.doUntouched(qs, now, queue.Probe{})
	return r.Found
}

// Before implements the order of the heap of timers.
func (qs *Queue) Before(o *Queue) bool { return qs.timer.at < o.timer.at }

// Place is where the heap of timers keeps the queue's index.
func (qs *Queue) Place() *int32 { return &qs.timer.index }

// setTimer sets the queue's timer, in epoch milliseconds; 0 stops it.
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

// sweep removes the expired messages of a queue.
func (sh *Shard) sweep(qs *Queue, now int64) {
	if r, _ := sh.Do(qs, now, queue.Sweep{}); r.Removed > 0 {
		sh.EmitMessages(qs, MessagesExpired, now, r.Removed)
	}
}

// Lookup finds a queue for a client's command. Errors: QueueDoesNotExist, and those of
// injected faults. The deletion of a queue may not be durable yet: the caller waits for the
// commit that Run returns before it answers.
func (sh *Shard) Lookup(a arn.ARN) (*Queue, error) {
	qs, ok := sh.Queue(a)
	if !ok {
		return nil, ErrNoQueue
	}
	if err := sh.module.Injected(a); err != nil {
		return nil, err
	}
	return qs, nil
}

// inconsistent logs counters that disagreed with the records: a bug, whose effect on this
// queue has been corrected.
func (sh *Shard) inconsistent(qs *Queue) {
	sh.Logger.Error("a queue's counters disagreed with its records and were set right", "queue", qs.ARN.String())
}

// OfQueues is the shard itself, for the modules above that embed it.
func (sh *Shard) OfQueues() *Shard { return sh }
