// Package shard owns the state. It runs the pure machines of ring 1 over a
// store: commands of one shard run in order, many callers' commands share one
// commit, and a reply waits until all that it rests on is durable.
//
// Invariants:
//   - What an answer tells is durable when it is given: the change itself, and
//     every commit that the command read from. Only leases and deletes of
//     standard queues are answered before their own commit, which follows
//     within 10 ms.
//   - A message that moves between queues is in exactly one of them in every
//     commit; where the two do not share a commit, the receiving shard knows the
//     transfer and takes it once.
//   - A failed commit ends the process; the store is the truth at the next start.
package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/mapping"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// Shards is how many shards the state is split into.
const Shards = keyspace.Shards

// Options are what an Engine is made of.
type Options struct {
	Journal *journal.Journal
	Clock   clock.Clock
	Logger  *slog.Logger
	// Full reports that the disk is short of space: sends are refused. Nil
	// means never.
	Full func() bool
	// Cooldowns refuses to create a queue within 60 s of its deletion, and to
	// purge one within 60 s of its last purge.
	Cooldowns bool
	// History is how long finished deliveries stay visible; default one hour.
	History time.Duration
	// TwoStep makes every transfer between shards take the way it takes where
	// they do not share a commit: accepted there first, removed here after.
	TwoStep bool
	// Render and NewID make what subscribed queues get, for publishes that are
	// delivered by their own commit. Without them none is.
	Render Renderer
	NewID  func() message.ID
	// Events is told what happens to the messages of SQS queues. It is called with
	// locks held: it must be quick, and not call the engine. May be nil.
	Events func(QueueEvent)
	// Sign puts into the body of a message that is Unsigned what it lacks. It is
	// called without any lock. Needed where messages are rendered so.
	Sign func(body []byte, u *message.Unsigned) error
	// Accepted is told of every event that a function is to be run with, if it is
	// not nil. It is called under locks, and must be quick.
	Accepted func(function arn.ARN, qualifier string, at time.Time)
	// Published is told of every publish, if it is not nil. It may be called
	// under locks and concurrently, and must be quick.
	Published func(*Published)
	// TopicLimits are the quotas of every topic.
	TopicLimits topic.Limits
	// MaxTopics is how many topics an account may have in a region; 0: any
	// number.
	MaxTopics int
	// FunctionLimits are the quotas of functions.
	FunctionLimits FunctionLimits
	// FunctionUpdates is how long the creation or an update of a function takes.
	FunctionUpdates time.Duration
	// Draw gives random numbers in [0, 1), which share invocations out between
	// versions. Without it the first version gets all.
	Draw func() float64
	// Fatal ends the process after a failure of the store. It must not return
	// to a caller that could answer a request.
	Fatal func(error)
}

// Engine is all shards of a node.
type Engine struct {
	store    store.Reader
	clock    clock.Clock
	logger   *slog.Logger
	options  Options
	journal  *journal.Journal
	handles  *handleSealer
	shards   [Shards]*shard
	finished *finishedCache

	mappingWatcher  atomic.Pointer[func(arn.ARN, *mapping.Mapping)]
	creationWatcher atomic.Pointer[func(arn.ARN)]

	consumers atomic.Pointer[map[string]Consumer] // by service
	faults    atomic.Pointer[map[arn.ARN]fault.Kind]
	faultMu   sync.Mutex // held while one of the two is replaced
	reserved  sync.Map   // [account, region] → *atomic.Int64: executions of functions that are reserved
	quotas    sync.Mutex // held while what a quota counts may grow

	beginning  sync.Mutex // held while something begins in the background, or nothing may any more
	background sync.WaitGroup
	draining   chan struct{}
	drainOnce  sync.Once
	stopping   chan struct{}
	stopOnce   sync.Once
}

// Consumer takes the messages of backlogs.
type Consumer interface {
	// Ready says that the backlog of a subscription or a function has something
	// due. It is called under a shard's lock and must not block; it is not called
	// again for the same backlog until the consumer has taken from it.
	Ready(owner arn.ARN)
}

// Open reads the state in the store and takes it over.
func Open(o Options) (*Engine, error) {
	o.Fatal = cmpFunc(o.Fatal, func(err error) { panic(fmt.Sprintf("godwit: the store failed: %v", err)) })
	o.History = cmp.Or(o.History, time.Hour)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	e := &Engine{
		journal: o.Journal, store: o.Journal.Reader(), clock: o.Clock, logger: o.Logger, options: o,
		finished: newFinishedCache(o.History), draining: make(chan struct{}), stopping: make(chan struct{}),
	}
	for id := range e.shards {
		e.shards[id] = &shard{
			id: uint16(id), engine: e, topics: topic.New(uint16(id), o.TopicLimits),
			functions: function.New(uint16(id)), mappings: mapping.New(uint16(id)),
			reached: map[uint64]topic.Reached{},
			queues:  map[arn.ARN]*queueState{}, backlogs: map[layout.Incarnation]*queueState{},
			spreading: map[arn.ARN]int{}, streams: map[layout.Incarnation]*stream{},
			replays: map[layout.Incarnation]*pendingReplay{}, targets: map[*topic.Subscription]target{},
		}
		e.shards[id].line.shard = e.shards[id]
	}
	if err := e.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("reading the store: %w", err), e.Close())
	}
	return e, nil
}

func cmpFunc(f, otherwise func(error)) func(error) {
	if f == nil {
		return otherwise
	}
	return f
}

// Drain answers the receives that wait, and lets no further one wait.
func (e *Engine) Drain() { e.drainOnce.Do(func() { close(e.draining) }) }

// Latest is the latest time that a command has seen. A virtual clock must not
// start before it.
func (e *Engine) Latest() time.Time {
	var latest int64
	for _, sh := range e.shards {
		sh.view(func() { latest = max(latest, sh.meta.Now) })
	}
	return time.UnixMilli(latest).UTC()
}

// Close lets no further command in, makes everything durable and ends what runs
// in the background. Waiting receivers get an empty answer.
func (e *Engine) Close() error {
	e.Drain()
	e.stopOnce.Do(func() {
		e.beginning.Lock()
		close(e.stopping)
		e.beginning.Unlock()
		e.background.Wait()
		for _, sh := range e.shards {
			sh.close()
		}
		e.journal.Sync()
	})
	return nil
}

func (e *Engine) fatal(err error) {
	if s, ok := e.store.(store.Damaged); ok && s.DamageIn(nil, nil) != nil {
		e.logger.Error("the process ends, as it cannot go around damage in the store; to see what is lost run: godwit check",
			"error", err, "damage", s.DamageIn(nil, nil))
	} else {
		e.logger.Error("the store failed; ending the process, a restart recovers everything acknowledged", "error", err)
	}
	e.options.Fatal(err)
}

// inconsistent reports counters that disagreed with the records: a fault in
// this program, which has been mended for this queue.
func (e *Engine) inconsistent(qs *queueState) {
	e.logger.Error("a queue's counters disagreed with its records and were set right", "queue", qs.arn.String())
}

// shardOf finds the shard that a queue, topic or function belongs to.
func (e *Engine) shardOf(a arn.ARN) *shard { return e.shards[shardNumber(a)] }

// shardNumber is that of the shard which a name belongs to: FNV-1a over it.
func shardNumber(a arn.ARN) uint16 {
	h := uint64(14695981039346656037)
	for _, part := range [...]string{a.Service, a.Region, a.Account, a.Resource} {
		for i := range len(part) {
			h = (h ^ uint64(part[i])) * 1099511628211
		}
		h = (h ^ ':') * 1099511628211
	}
	return uint16((h ^ h>>32) % Shards)
}

// goBackground runs f in the background, holding the clock, unless the engine
// is stopping.
func (e *Engine) goBackground(f func()) {
	e.beginning.Lock()
	defer e.beginning.Unlock()
	select {
	case <-e.stopping:
		return
	default:
	}
	release := e.clock.Hold()
	e.background.Go(func() {
		defer release()
		f()
	})
}

// inSteps calls step in the background until it returns false or the engine is
// stopping.
func (e *Engine) inSteps(step func() bool) {
	e.goBackground(func() {
		for step() {
			select {
			case <-e.stopping:
				return
			default:
			}
		}
	})
}

// withCatalog runs f under the lock of a's shard, for commands that read or
// change which queues, topics and subscriptions there are. It returns once all
// that f saw and did is durable.
func (e *Engine) withCatalog(ctx context.Context, a arn.ARN, f func(sh *shard) error) error {
	sh := e.shardOf(a)
	err := sh.runDurable(func(tx *Tx) error {
		err := f(sh)
		changed := sh.batch.Len() > 0
		if c := tx.commit(); c != nil && changed {
			sh.catalogChanged(c)
		}
		tx.restOn(sh.lastCatalogCommit)
		return err
	})
	return cmp.Or(err, ctx.Err())
}

// catalogChanged notes that the catalog has changed with a commit.
func (sh *shard) catalogChanged(c *journal.Commit) {
	sh.lastCatalogCommit = c
	sh.generation.Add(1)
}

// close lets no further command change anything.
func (sh *shard) close() {
	sh.mu.Lock() // also of a shard that is poisoned
	defer sh.mu.Unlock()
	sh.closed = true
	if sh.timer != nil {
		sh.timer.Stop()
	}
	sh.stopMoves()
}
