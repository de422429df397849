package shard

import (
	"bytes"
	"cmp"
	"container/heap"
	"sync/atomic"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// queueOptions are what the module is made of.
type queueOptions struct {
	// Cooldowns refuses to create a queue within 60 s of its deletion, and to
	// purge one within 60 s of its last purge.
	Cooldowns bool
	// Events is told what happens to the messages of SQS queues, once it has been
	// committed. It may be called concurrently, and must be quick. May be nil.
	Events func(QueueEvent)
	// Sign puts into the body of a message that is Unsigned what it lacks. It is
	// called without any lock. Needed where messages are rendered so.
	Sign func(body []byte, u *message.Unsigned) error
}

// queueEngine is the module of queues: SQS's, and those that other modules have for
// what waits for somebody else.
type queueEngine struct {
	*core
	parts[*queueShard]
	options queueOptions
	handles *handleSealer
	faultSet
	hooks           queueHooks
	creationWatcher atomic.Pointer[func(arn.ARN)]
}

// queueHooks are what others do when something becomes of queues. They are called
// under the lock of the queue's shard. All are set.
type queueHooks struct {
	// deadLetters is called with messages that were received often enough, which are
	// leased for their way to the dead-letter queue.
	deadLetters func(qs *queueState, moves []queue.Lease)
	// purged and deleted are called as part of the command that does that.
	purged, deleted func(a arn.ARN)
	// ready is called with a queue of another module that has something due.
	ready func(qs *queueState)
}

// queueShard is the module's part in a shard.
type queueShard struct {
	*coreShard
	engine   *queueEngine
	queues   map[arn.ARN]*queueState
	backlogs map[layout.Incarnation]*queueState
	counters map[layout.Incarnation][]byte // while the shard is loaded: those that nobody has claimed
	timers   timerHeap

	deletions map[arn.ARN]int64    // when queues were deleted, for the cool-down
	sources   map[arn.ARN][]string // by dead-letter queue: the names of this shard's queues that have it, in order

	emptied     [emptiedKept]*queueState // those that became empty last, which are likely to be used again
	nextEmptied int

	running   *queueState // whose machine runs a command
	dedupFrom int64       // deduplication buckets before this minute have been dropped
	sizes     []int       // room for those of the messages of a send
}

func newQueueEngine(k *core, o queueOptions) *queueEngine {
	e := &queueEngine{core: k, options: o}
	for id, sh := range k.all {
		s := &queueShard{coreShard: sh, engine: e, queues: map[arn.ARN]*queueState{}, backlogs: map[layout.Incarnation]*queueState{}}
		e.parts.shards[id] = s
		sh.add(queueModule{sh: s})
	}
	return e
}

// queueModule is the module of a shard.
type queueModule struct {
	nothing
	sh *queueShard
}

func (m queueModule) load() error {
	sh := m.sh
	if sh.id == 0 {
		if err := sh.engine.loadSecret(); err != nil {
			return err
		}
	}
	sh.counters = map[layout.Incarnation][]byte{}
	err := each(sh.engine.store, layout.AllCounters(sh.id), func(key, value []byte) bool {
		sh.counters[layout.CountersIncarnation(key)] = bytes.Clone(value)
		return true
	})
	return cmp.Or(err, sh.loadQueues())
}

func (m queueModule) resume() {
	sh := m.sh
	for _, qs := range sh.queues {
		if !qs.machine.Empty() {
			sh.touch(qs)
			sh.commitMuch()
		}
	}
}

func (m queueModule) nextDue() int64 {
	sh := m.sh
	if len(sh.timers) == 0 {
		return 0
	}
	return sh.timers[0].timerAt
}

// tickQueues bounds how many queues one tick looks after before it lets other
// commands in.
const tickQueues = 256

func (m queueModule) tick(now int64) {
	sh := m.sh
	for range tickQueues {
		if len(sh.timers) == 0 || sh.timers[0].timerAt > now {
			break
		}
		qs := sh.timers[0]
		sh.setTimer(qs, 0)
		if qs.ended() {
			continue
		}
		sh.sweep(qs, now)
		_, _ = sh.do(qs, now, queue.Expire{})
		sh.commit(false)
	}
}

// queueState is a machine with what its shard keeps around it.
type queueState struct {
	machine     queue.Machine
	shard       *queueShard
	incarnation layout.Incarnation
	arn         arn.ARN // the queue's, or the subscription's or function's whose backlog it is
	owner       owner   // of what it is the backlog; nil: it goes when it is dropped
	record      *queueRecord
	policy      *policy.Policy // of record; nil: none
	backlog     bool
	gone        bool
	dirty       bool
	emptied     bool   // among the shard's emptied ones
	readied     bool   // the consumer was told, and has not come yet
	paused      bool   // the consumer is told nothing
	low         uint64 // no message of a backlog has a lower sequence; a memory of searches
	timerAt     int64
	waiters     waiterList
	newest      uint64       // the last message that the command under way added
	dead        *deadLetters // on their way to the dead-letter queue; nil: none are
	pending     []pendingAppend
	dedup       *dedup.Window // FIFO: of messages accepted of late
	slot        Slot

	saved      queue.Saved
	timerIndex int32 // in the heap of timers
}

// owner is of what a queue is the backlog.
type owner interface{ Gone() bool }

// deadLetters are the messages of a queue that somebody carries to its
// dead-letter queue, oldest first.
type deadLetters struct{ moves []queue.Lease }

// pendingAppend says with which commit the messages up to a sequence become durable.
type pendingAppend struct {
	sequence uint64
	commit   *journal.Commit
}

// touch marks a queue as changed by the command under way.
func (sh *queueShard) touch(qs *queueState) {
	if !qs.dirty {
		qs.dirty = true
		sh.dirty = append(sh.dirty, qs)
	}
}

// accept adds a message to a queue of this shard, as part of the command under way.
func (sh *queueShard) accept(qs *queueState, now int64, a queue.Arrival) uint64 {
	r, _ := sh.doAtOnce(qs, now, queue.Accept{Arrival: a}) // it refuses nothing
	qs.newest = r.Sequence
	return qs.newest
}

// committed does what a change of the queue asks for.
func (qs *queueState) committed() { qs.shard.reconcile(qs) }

// clean implements touched.
func (qs *queueState) clean() { qs.dirty = false }

// appended implements touched.
func (qs *queueState) appended(c *journal.Commit) {
	if qs.newest != 0 {
		qs.await(qs.newest, c)
		qs.newest = 0
	}
}

// reconcile does what a changed queue asks for: who waits is served, the consumer is
// told, the timer is set. It runs between commands.
func (sh *queueShard) reconcile(qs *queueState) {
	if qs.ended() {
		sh.setTimer(qs, 0)
		return
	}
	if qs.machine.Empty() && !qs.emptied {
		sh.rest(qs)
	}
	now := sh.now()
	if qs.waiters.first != nil {
		sh.serve(qs, now)
	}
	if qs.backlog && !qs.readied && !qs.paused {
		sh.engine.hooks.ready(qs)
	}
	at := qs.machine.NextTimer(now)
	if at == now { // perhaps only because the next due time is on disk
		_, _ = sh.ask(qs, now, queue.Prefetch{Max: 1})
		at = qs.machine.NextTimer(now)
	}
	if at != 0 {
		at = max(at, now+1) // what one command left undone gives way to others first
	}
	sh.timerBy(qs, at)
}

// emptiedKept is how many empty queues of a shard keep their memory.
const emptiedKept = 32

// rest notes that a queue is empty, and takes the memory of the one that has been
// so for longest.
func (sh *queueShard) rest(qs *queueState) {
	last := &sh.emptied[sh.nextEmptied]
	sh.nextEmptied = (sh.nextEmptied + 1) % emptiedKept
	if old := *last; old != nil {
		old.emptied = false
		old.machine.Hibernate()
		old.forgetDurable()
	}
	*last, qs.emptied = qs, true
}

// timerBy makes qs due at a moment, unless it is due before that; 0 is never.
func (sh *queueShard) timerBy(qs *queueState, at int64) {
	if at != 0 && (qs.timerAt == 0 || at < qs.timerAt) {
		sh.setTimer(qs, at)
	}
}

// available reports whether a receive would find something.
func (sh *queueShard) available(qs *queueState, now int64) bool {
	r, _ := sh.ask(qs, now, queue.Probe{})
	return r.Found
}

// timerHeap orders the queues that wait for a moment.
type timerHeap []*queueState

func (h timerHeap) Len() int           { return len(h) }
func (h timerHeap) Less(i, j int) bool { return h[i].timerAt < h[j].timerAt }
func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timerIndex, h[j].timerIndex = int32(i), int32(j)
}

func (h *timerHeap) Push(x any) {
	qs := x.(*queueState)
	qs.timerIndex = int32(len(*h))
	*h = append(*h, qs)
}

func (h *timerHeap) Pop() any {
	old := *h
	qs := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return qs
}

// setTimer makes qs due at a moment; 0 for never.
func (sh *queueShard) setTimer(qs *queueState, at int64) {
	switch {
	case qs.timerAt == 0 && at != 0:
		qs.timerAt = at
		heap.Push(&sh.timers, qs)
	case at == 0 && qs.timerAt != 0:
		heap.Remove(&sh.timers, int(qs.timerIndex))
		qs.timerAt = 0
	case at != 0:
		qs.timerAt = at
		heap.Fix(&sh.timers, int(qs.timerIndex))
	}
}

// sweep drops the messages of a queue that are past their retention.
func (sh *queueShard) sweep(qs *queueState, now int64) {
	if r, _ := sh.do(qs, now, queue.Sweep{}); r.Removed > 0 {
		sh.happened(qs, MessagesExpired, now, r.Removed)
	}
}

// lookup finds a queue. The error is a refusal for the caller; it may rest on a
// deletion that is not durable yet, so wait for the returned commit before
// answering it.
func (sh *queueShard) lookup(a arn.ARN) (*queueState, error) {
	qs, ok := sh.queues[a]
	if !ok {
		return nil, fault.New(fault.QueueDoesNotExist, "The specified queue does not exist.")
	}
	if err := sh.engine.injected(a); err != nil {
		return nil, err
	}
	return qs, nil
}

// inconsistent reports counters that disagreed with the records: a fault in
// this program, which has been mended for this queue.
func (e *queueEngine) inconsistent(qs *queueState) {
	e.logger.Error("a queue's counters disagreed with its records and were set right", "queue", qs.arn.String())
}

// ofQueues is the part of what leans on it.
func (sh *queueShard) ofQueues() *queueShard { return sh }
