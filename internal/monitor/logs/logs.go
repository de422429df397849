// Package logs keeps log groups: streams of events, as CloudWatch Logs has them.
//
// Invariants: what Put answered is durable, and so is what any answer tells;
// events of a group are in the order of (time, arrival); a read costs what it
// returns and what it looks at, and looks at a bounded part in one call. Nothing
// but locks and what the sink holds is in memory.
package logs

import (
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/poison"
)

// Options are what Logs are made of. Journal and Clock are required.
type Options struct {
	Journal *journal.Journal
	Clock   clock.Clock
	Logger  *slog.Logger
	// Full reports that the disk is short of space: events are refused. Nil
	// means never.
	Full func() bool
	// MaxBytes bounds what events take on the disk, about and before compression:
	// beyond it the oldest go. 0: no bound.
	MaxBytes int64
	// Fatal ends the process after a panic that leaves something half done; may be nil.
	Fatal func(error)
}

// Logs are the log groups of a node.
type Logs struct {
	Options
	log     *journal.Stream // what is written
	reader  journal.Reader  // of that, too
	guard   *poison.Guard
	catalog sync.Mutex // held while groups come, go or change their details
	groups  [64]sync.Mutex

	sequence, ceiling atomic.Uint64
	reserving         sync.Mutex
	latest            atomic.Uint64 // epoch milliseconds

	disk   atomic.Int64 // about, in bytes
	expiry expiry
	sink   sink

	stopping   context.Context
	stop       context.CancelFunc
	background sync.WaitGroup
	trimming   atomic.Bool
	sweeping   atomic.Bool
	doomed     atomic.Bool // a stream was removed since the last sweep began
}

// Open reads what is needed of the state: how much there is, and what expires
// next.
func Open(o Options) (*Logs, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Logs{Options: o, guard: poison.New(o.Logger, o.Fatal)}
	var err error
	if l.log, _, err = o.Journal.Stream(keyspace.LogStream, nil); err != nil {
		return nil, err
	}
	l.log.Begin()
	l.reader = l.log.Reader()
	l.stopping, l.stop = context.WithCancel(context.Background())
	l.sink.logs = l
	ceiling, err := l.number(key(kindSequence))
	if err != nil {
		return nil, err
	}
	l.sequence.Store(ceiling)
	l.ceiling.Store(ceiling)
	latest, err := l.number(key(kindClock))
	if err != nil {
		return nil, err
	}
	l.latest.Store(latest)
	err = l.each(key(kindTotals), behind(key(kindTotals)), func(_, v []byte) bool {
		t, _ := decodeTotals(v)
		l.disk.Add(t.disk())
		return true
	})
	if err != nil {
		return nil, err
	}
	if err := l.expireNext(); err != nil {
		return nil, err
	}
	l.sweep()
	l.trim()
	return l, nil
}

// Close writes what the sink holds, makes it durable and ends what runs in the
// background.
func (l *Logs) Close() {
	l.sink.close()
	l.stop()
	l.expiry.close()
	l.background.Wait()
	l.log.Sync()
}

// DiskBytes is about what events take on the disk, before compression.
func (l *Logs) DiskBytes() int64 { return l.disk.Load() }

func (l *Logs) goBackground(f func()) { l.background.Go(f) }

func (l *Logs) now() uint64 { return uint64(max(l.Clock.Now().UnixMilli(), 0)) }

// number reads one that is kept by itself; 0 if there is none.
func (l *Logs) number(k []byte) (uint64, error) {
	v, ok, err := l.reader.Get(nil, k)
	if err != nil || !ok || len(v) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

// Latest is the time of the latest commit. A virtual clock must not start before
// it.
func (l *Logs) Latest() time.Time { return time.UnixMilli(int64(l.latest.Load())).UTC() }

// apply writes a batch, and keeps the time of it. A caller that answers of it waits for the
// log's Sync, without a lock.
func (l *Logs) apply(b *mutation.Batch) {
	if b.Len() == 0 {
		return
	}
	now := l.now()
	for before := l.latest.Load(); before < now && !l.latest.CompareAndSwap(before, now); before = l.latest.Load() {
	}
	b.Set(key(kindClock), numbers(l.latest.Load()))
	l.log.Append(true, int64(l.latest.Load()), b)
}

// lock takes the lock of a group, for the guard to unlock.
func (l *Logs) lock(group uint64) *sync.Mutex {
	m := &l.groups[group%uint64(len(l.groups))]
	l.guard.Lock(m)
	return m
}

// reserveMany is how many ids and sequences are reserved at once.
const reserveMany = 1 << 20

// take gives n numbers that were never given before; the first of them.
func (l *Logs) take(n int) (first uint64) {
	behind := l.sequence.Add(uint64(n))
	if behind > l.ceiling.Load() {
		l.reserve(behind)
	}
	return behind - uint64(n) + 1
}

// reserve raises the ceiling of numbers. It is durable before what carries them, since
// the log keeps their order.
func (l *Logs) reserve(least uint64) {
	l.guard.Lock(&l.reserving)
	defer l.guard.Unlock(&l.reserving)
	if least <= l.ceiling.Load() {
		return
	}
	var b mutation.Batch
	b.Set(key(kindSequence), numbers(least+reserveMany))
	l.log.Append(false, 0, &b)
	l.ceiling.Store(least + reserveMany)
}

var (
	errNoGroup  = fault.New(fault.ResourceNotFound, "The specified log group does not exist.")
	errNoStream = fault.New(fault.ResourceNotFound, "The specified log stream does not exist.")
)

// find reads a group by its name.
func (l *Logs) find(group arn.ARN) (g groupRecord, err error) {
	v, _, err := l.reader.Get(nil, groupKey(group))
	if err != nil {
		return g, err
	}
	g, ok := decodeGroup(v)
	if !ok {
		return g, errNoGroup
	}
	return g, nil
}

// totals reads those of a group; it fails with ResourceNotFound.
func (l *Logs) totals(group uint64) (t totals, err error) {
	v, _, err := l.reader.Get(nil, key(kindTotals, group))
	if err != nil {
		return t, err
	}
	t, ok := decodeTotals(v)
	if !ok {
		return t, errNoGroup
	}
	return t, nil
}

func (l *Logs) stream(group uint64, name string) (s streamRecord, err error) {
	v, _, err := l.reader.Get(nil, textKey(kindStream, group, name))
	if err != nil {
		return s, err
	}
	s, ok := decodeStream(v)
	if !ok {
		return s, errNoStream
	}
	return s, nil
}

// each walks the keys of a range until f returns false.
func (l *Logs) each(lower, upper []byte, f func(k, v []byte) bool) error {
	it, err := l.reader.Iter(lower, upper)
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

// eachDown is each from the end.
func (l *Logs) eachDown(lower, upper []byte, f func(k, v []byte) bool) error {
	it, err := l.reader.Iter(lower, upper)
	if err != nil {
		return err
	}
	for it.Prev() {
		if !f(it.Key(), it.Value()) {
			break
		}
	}
	return it.Close()
}

// settle has all that was put so far in the store and durable, so that an answer
// may tell of it.
func (l *Logs) settle() {
	l.sink.flush()
	l.log.Sync()
}
