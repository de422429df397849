package shard

import (
	"cmp"
	"context"
	"encoding/binary"
	"log/slog"
	"slices"
	"sync"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/store"
)

// Shards is how many shards the state is split into.
const Shards = keyspace.Shards

// kernelOptions are what a core is made of.
type kernelOptions struct {
	Journal *journal.Journal
	Clock   clock.Clock
	Logger  *slog.Logger
	// Full reports that the disk is short of space. Nil means never.
	Full func() bool
	// Fatal ends the process after a failure of the store. It must not return
	// to a caller that could answer a request.
	Fatal func(error)
}

// core is all shards of a node, and what runs in their background.
type core struct {
	store   store.Reader
	clock   clock.Clock
	logger  *slog.Logger
	config  kernelOptions
	journal *journal.Journal
	all     [Shards]*coreShard

	beginning  sync.Mutex // held while something begins in the background, or nothing may any more
	background sync.WaitGroup
	draining   chan struct{}
	drainOnce  sync.Once
	stopping   chan struct{}
	stopOnce   sync.Once
}

func newCore(o kernelOptions) *core {
	e := &core{
		store: o.Journal.Reader(), clock: o.Clock, logger: o.Logger, config: o, journal: o.Journal,
		draining: make(chan struct{}), stopping: make(chan struct{}),
	}
	for id := range e.all {
		e.all[id] = &coreShard{id: uint16(id), engine: e}
	}
	return e
}

// Drain answers the receives that wait, and lets no further one wait.
func (e *core) Drain() { e.drainOnce.Do(func() { close(e.draining) }) }

// Latest is the latest time that a command has seen. A virtual clock must not
// start before it.
func (e *core) Latest() time.Time {
	var latest int64
	for _, sh := range e.all {
		sh.view(func() { latest = max(latest, sh.meta.Now) })
	}
	return time.UnixMilli(latest).UTC()
}

// Close lets no further command in, makes everything durable and ends what runs
// in the background. Waiting receivers get an empty answer.
func (e *core) Close() error {
	e.Drain()
	e.stopOnce.Do(func() {
		e.beginning.Lock()
		close(e.stopping)
		e.beginning.Unlock()
		e.background.Wait()
		for _, sh := range e.all {
			sh.close()
		}
		e.journal.Sync()
	})
	return nil
}

func (e *core) fatal(err error) {
	if s, ok := e.store.(store.Damaged); ok && s.DamageIn(nil, nil) != nil {
		e.logger.Error("the process ends, as it cannot go around damage in the store; to see what is lost run: godwit check",
			"error", err, "damage", s.DamageIn(nil, nil))
	} else {
		e.logger.Error("the store failed; ending the process, a restart recovers everything acknowledged", "error", err)
	}
	e.config.Fatal(err)
}

// shardIndex finds the shard that a queue, topic or function belongs to: FNV-1a
// over its name.
func shardIndex(a arn.ARN) uint16 {
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
func (e *core) goBackground(f func()) {
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
func (e *core) inSteps(step func() bool) {
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

// change runs f for commands that read or change which queues, topics and functions
// there are. It returns once all that f saw and did is durable.
func (sh *coreShard) change(ctx context.Context, f func() error) error {
	err := sh.runDurable(func(tx *Tx) error {
		err := f()
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
func (sh *coreShard) catalogChanged(c *journal.Commit) {
	sh.lastCatalogCommit = c
	sh.generation.Add(1)
}

// close lets no further command change anything.
func (sh *coreShard) close() {
	sh.mu.Lock() // also of a shard that is poisoned
	defer sh.mu.Unlock()
	sh.closed = true
	if sh.timer != nil {
		sh.timer.Stop()
	}
	for _, m := range sh.modules {
		m.close()
	}
}

var errFull = fault.New(fault.InsufficientStorage,
	"The disk has too little free space to accept messages. Receives and deletes go on; free space, or move the data directory.")

// now is the present in epoch milliseconds. It never goes back.
func (sh *coreShard) now() int64 {
	sh.meta.Now = max(sh.meta.Now, sh.engine.clock.Now().UnixMilli())
	return sh.meta.Now
}

// arm sets the shard's one timer to the earliest moment.
func (sh *coreShard) arm() {
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

// tick runs what has become due.
func (sh *coreShard) tick() {
	_, _ = sh.run(false, func(*Tx) error {
		if !sh.closed {
			sh.runDue()
		}
		return nil
	})
}

func (sh *coreShard) runDue() {
	sh.timer = nil
	now := sh.now()
	for _, m := range sh.modules {
		m.tick(now)
	}
	sh.arm()
}

// time is now as the topics' machine takes it.
func (sh *coreShard) time() time.Time { return time.UnixMilli(sh.now()).UTC() }

// nextTimer is when the shard has something to do, in epoch milliseconds; 0 is never.
func (sh *coreShard) nextTimer() (at int64) {
	for _, m := range sh.modules {
		if due := m.nextDue(); due != 0 && (at == 0 || due < at) {
			at = due
		}
	}
	return at
}

// mergePages makes one page out of a page of each shard. What it returns is durable.
func mergePages[T any, S shardPart](ctx context.Context, shards *[Shards]S, limit int, compare func(a, b T) int, page func(sh S) ([]T, bool)) ([]T, bool, error) {
	var all []T
	more := false
	for _, s := range shards {
		sh := s.core()
		sh.view(func() {
			items, rest := page(s)
			all = append(all, items...)
			more = more || rest
		})
		sh.awaitCatalog()
	}
	slices.SortFunc(all, compare)
	if len(all) > limit {
		all, more = all[:limit], true
	}
	return all, more, ctx.Err()
}

func (e *core) full() bool { return e.config.Full != nil && e.config.Full() }

// readable makes what the shard has appended so far visible in the store. It
// must not be called while a command has unappended changes.
func (sh *coreShard) readable() {
	if !sh.log.Last().Applied() {
		sh.engine.journal.Flush()
	}
}

// each walks a span until f returns false.
func each(r store.Reader, span layout.Span, f func(key, value []byte) bool) error {
	it, err := r.Iter(span.Lower, span.Upper)
	if err != nil {
		return err
	}
	for it.Next() {
		if !f(it.Key(), it.Value()) {
			break
		}
	}
	return it.Close()
}

// readRecord reads a record that an earlier command of the shard has written.
func (e *core) readRecord(key []byte) ([]byte, bool, error) {
	if value, ok, err := e.store.Get(nil, key); err != nil || ok {
		return value, ok, err
	}
	e.journal.Flush()
	return e.store.Get(nil, key)
}

func appendText(buf []byte, s string) []byte {
	buf = binary.AppendUvarint(buf, uint64(len(s)))
	return append(buf, s...)
}

func takeText(p []byte) (s string, rest []byte, ok bool) {
	n, w := binary.Uvarint(p)
	if w <= 0 || n > uint64(len(p)-w) {
		return "", nil, false
	}
	return string(p[w : w+int(n)]), p[w+int(n):], true
}
