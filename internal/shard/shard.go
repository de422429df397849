package shard

import (
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/sorted"
	"godwit.dev/godwit/internal/topic"
)

// shard owns a slice of the state. Its commands run one after the other, under
// mu, in the goroutines of their callers; a command reads and changes the
// machines, collects what to write in a batch and appends it to the shard's stream
// of the journal before mu is released, so that its order is the order of the commands.
type shard struct {
	id     uint16
	engine *Engine

	mu                sync.Mutex
	log               *journal.Stream // what its commands write
	meta              journal.State   // what the log remembers
	lastCatalogCommit *journal.Commit // the latest that changed which queues, topics and subscriptions there are
	// generation counts the changes of the catalog. It changes under mu only.
	generation atomic.Uint64
	poisoned   bool // a command has panicked half-way
	batch      mutation.Batch
	dirty      []*queueState // touched by the command under way
	emits      []Emitter     // what it has to tell
	queues     map[arn.ARN]*queueState
	backlogs   map[layout.Incarnation]*queueState
	topics     *topic.State
	functions  *function.State
	mappings   *mapping.State
	// topicPolicies are those that were asked for, by topic.
	topicPolicies map[arn.ARN]compiledPolicy
	// functionPolicies are those that were asked for, by function and qualifier.
	functionPolicies map[arn.ARN]map[string]*policy.Policy
	accepted         map[transferID]struct{} // transfers taken in and not yet known to be settled at their source
	timers           sorted.Heap[*queueState]
	timer            clock.Timer
	timerAt          int64
	closed           bool

	fanouts   []pendingFanout // publications that are still being spread, oldest first
	spreading map[arn.ARN]int // how many of them there are of a topic
	fanning   bool
	nextFan   uint64
	line      line                           // of publishers
	planned   int                            // the deliveries of the latest publication
	targets   map[*topic.Subscription]target // of late; see target
	targetsOf uint64                         // the generation that targets is of
	streams   map[layout.Incarnation]*stream // of FIFO topics

	archivesAt int64 // when archives are to be looked at; 0: never
	replays    map[layout.Incarnation]*pendingReplay
	replayLine []*pendingReplay // those whose next step can be made
	replaying  bool
	remains    []*remains // of deleted topics
	reclaiming bool
	reached    map[uint64]topic.Reached // by publications that are being spread, of this process
	deletions  map[arn.ARN]int64        // when queues were deleted, for the cool-down
	sources    map[arn.ARN][]string     // by dead-letter queue: the names of this shard's queues that have it, in order
	moves      map[arn.ARN][]*moveTask  // the latest move tasks of queues, oldest first

	emptied     [emptiedKept]*queueState // those that became empty last, which are likely to be used again
	nextEmptied int

	running   *queueState // whose machine runs a command
	dedupFrom int64       // deduplication buckets before this minute have been dropped
	sizes     []int       // room for those of the messages of a send
}

// queueState is a machine with what its shard keeps around it.
type queueState struct {
	machine     queue.Machine
	incarnation layout.Incarnation
	arn         arn.ARN      // the queue's, or the subscription's or function's whose backlog it is
	topic       *topic.Topic // whose subscription's backlog it is; nil: of none
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

// deadLetters are the messages of a queue that somebody carries to its
// dead-letter queue, oldest first.
type deadLetters struct{ moves []queue.Lease }

// pendingAppend says with which commit the messages up to a sequence become durable.
type pendingAppend struct {
	sequence uint64
	commit   *journal.Commit
}

// now is the present in epoch milliseconds. It never goes back.
func (sh *shard) now() int64 {
	sh.meta.Now = max(sh.meta.Now, sh.engine.clock.Now().UnixMilli())
	return sh.meta.Now
}

// touch marks a queue as changed by the command under way.
func (sh *shard) touch(qs *queueState) {
	if !qs.dirty {
		qs.dirty = true
		sh.dirty = append(sh.dirty, qs)
	}
}

// accept adds a message to a queue of this shard, as part of the command under way.
func (sh *shard) accept(qs *queueState, now int64, a queue.Arrival) uint64 {
	r, _ := sh.step(qs, (*atOnce)(sh), now, queue.Accept{Arrival: a}) // it refuses nothing
	qs.newest = r.Sequence
	sh.touch(qs)
	return qs.newest
}

// settle does what a changed queue asks for. It runs between commands.
func (sh *shard) settle(qs *queueState) {
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
		if consumer := qs.consumer(sh.engine); consumer != nil && sh.available(qs, now) {
			qs.readied = true
			consumer.Ready(qs.arn)
		}
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
func (sh *shard) rest(qs *queueState) {
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
func (sh *shard) timerBy(qs *queueState, at int64) {
	if at != 0 && (qs.timerAt == 0 || at < qs.timerAt) {
		sh.setTimer(qs, at)
	}
}

// available reports whether a receive would find something.
func (sh *shard) available(qs *queueState, now int64) bool {
	r, _ := sh.ask(qs, now, queue.Probe{})
	return r.Found
}

// Before orders the queues that wait for a moment.
func (qs *queueState) Before(o *queueState) bool { return qs.timerAt < o.timerAt }

// Place is where the queue is among them.
func (qs *queueState) Place() *int32 { return &qs.timerIndex }

// setTimer makes qs due at a moment; 0 for never.
func (sh *shard) setTimer(qs *queueState, at int64) {
	switch {
	case qs.timerAt == 0 && at != 0:
		qs.timerAt = at
		sh.timers.Push(qs)
	case at == 0 && qs.timerAt != 0:
		sh.timers.Remove(qs)
		qs.timerAt = 0
	case at != 0:
		qs.timerAt = at
		sh.timers.Fix(qs)
	}
}

// arm sets the shard's one timer to the earliest moment.
func (sh *shard) arm() {
	at := sh.nextTimer()
	if sh.closed || at == 0 {
		return
	}
	if sh.timer != nil {
		if sh.timerAt <= at {
			return
		}
		sh.timer.Stop()
	}
	sh.timerAt = at
	d := time.UnixMilli(at).Sub(sh.engine.clock.Now()) // to the very moment, not to within a millisecond
	sh.timer = sh.engine.clock.AfterFunc(max(d, 0), sh.tick)
}

// tickQueues bounds how many queues one tick looks after before it lets other
// commands in.
const tickQueues = 256

// tick runs what has become due.
func (sh *shard) tick() {
	_, _ = sh.run(false, func(*Tx) error {
		if !sh.closed {
			sh.runDue()
		}
		return nil
	})
}

func (sh *shard) runDue() {
	sh.timer = nil
	now := sh.now()
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
	sh.removeLapsed()
	sh.settleFunctions()
	sh.settleMappings()
	sh.sweepArchives()
	sh.arm()
}

// sweep drops the messages of a queue that are past their retention.
func (sh *shard) sweep(qs *queueState, now int64) {
	if r, _ := sh.do(qs, now, queue.Sweep{}); r.Removed > 0 {
		sh.happened(qs, MessagesExpired, now, r.Removed)
	}
}

// lookup finds a queue. The error is a refusal for the caller; it may rest on a
// deletion that is not durable yet, so wait for the returned commit before
// answering it.
func (sh *shard) lookup(a arn.ARN) (*queueState, error) {
	qs, ok := sh.queues[a]
	if !ok {
		return nil, fault.New(fault.QueueDoesNotExist, "The specified queue does not exist.")
	}
	if err := sh.engine.injected(a); err != nil {
		return nil, err
	}
	return qs, nil
}
