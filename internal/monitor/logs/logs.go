// Package logs has the log groups: streams of events, as CloudWatch Logs has them.
//
// Invariants: events acknowledged by Put are durable, and so are those in any answer; events of
// a group are ordered by (time, arrival); the cost of a read is that of the events returned and
// examined, which are bounded in one call. Only the events in the sink are in memory.
package logs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/monitor/logs/recent"
	"godwit.dev/godwit/internal/monitor/metrics"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// Options configure Logs.
type Options struct {
	// MaxBytes bounds the approximate size of events on disk, before compression: beyond it the
	// oldest are removed. 0: no bound.
	MaxBytes int64
	// Record takes the values that metric filters make of events, and those embedded in events, and waits
	// until they are durable; nil: nobody does.
	Record func(data ...metrics.Datapoint) error
}

// Logs are the log groups of a node. They are a module of the kernel, with its own shard.
// Changes are transactions; reads use the store without them.
type Logs struct {
	kernel.NopLifecycle
	kernel  *kernel.Kernel
	options Options
	shard   *kernel.Shard
	reader  journal.Reader // sees what the shard has appended
	disk    atomic.Int64   // approximate size of events, in bytes
	sink    sink

	defaults recent.Minutes
	found    recent.Found

	// Under the shard's lock.
	sequence, ceiling  uint64                  // the last number used, and the end of the reserved ones
	due                uint64                  // the hour of the next expiry; 0: there is none
	trimming, sweeping bool                    // running in the background
	subscribers        map[uint64][]subscriber // by group; none of a group without
	notify             func(Subscriber)        // nil: nobody hands over
}

// New adds the module to a kernel.
func New(k *kernel.Kernel, o Options) *Logs {
	l := &Logs{kernel: k, options: o, shard: k.OwnShard(keyspace.LogStream)}
	l.sink.logs, l.sink.writing = l, make(chan struct{}, 1)
	l.shard.Add(l)
	return l
}

// Load implements kernel.Lifecycle: it reads the sizes, and the next expiry.
func (l *Logs) Load() error {
	l.reader = l.shard.Stream.Reader()
	if err := l.load(); err != nil {
		return fmt.Errorf("log groups cannot be read: %w", err)
	}
	return nil
}

func (l *Logs) load() (err error) {
	if l.ceiling, err = l.number(key(tagSequence)); err != nil {
		return err
	}
	latest, err := l.number(key(tagClock)) // by versions whose stream did not have it
	if err != nil {
		return err
	}
	l.shard.AdvanceTo(int64(latest))
	err = l.each(key(tagTotals), behind(key(tagTotals)), func(_, v []byte) error {
		t, _ := decodeTotals(v)
		l.disk.Add(t.disk())
		return nil
	})
	if err != nil {
		return err
	}
	if l.ceiling == 0 {
		used, err := l.used()
		if err != nil {
			return err
		}
		if used { // a repair has lost it
			l.ceiling = kernel.Unreached(max(l.shard.LatestTime(), l.kernel.Clock.Now().UnixMilli()))
		}
	}
	l.sequence = l.ceiling
	if err := l.loadSubscribers(); err != nil {
		return err
	}
	l.due, err = l.earliest()
	return err
}

// used reports that there is something with an id. It may be events alone, where a repair has lost
// the groups.
func (l *Logs) used() (bool, error) {
	found := errors.New("found")
	err := l.each([]byte{keyspace.LogSpace}, behind([]byte{keyspace.LogSpace}), func(k, _ []byte) error {
		if k[1] == tagClock {
			return nil
		}
		return found
	})
	if errors.Is(err, found) {
		return true, nil
	}
	return false, err
}

// Resume implements kernel.Lifecycle.
func (l *Logs) Resume() {
	l.sweep()
	l.trim()
}

// Close implements kernel.Lifecycle: it writes the events in the sink.
func (l *Logs) Close() {
	if l.reader != nil { // it was loaded
		l.sink.close()
	}
}

// Save writes the events in the sink, and goes on. They are durable on return.
func (l *Logs) Save() { l.sink.flush() }

// DiskBytes is the approximate size of events on disk, before compression.
func (l *Logs) DiskBytes() int64 { return l.disk.Load() }

// now is the current time in epoch milliseconds, in a transaction.
func (l *Logs) now() uint64 { return uint64(max(l.shard.Now(), 0)) }

// number reads a number with a record of its own; 0 if there is none.
func (l *Logs) number(k []byte) (uint64, error) {
	v, ok, err := l.reader.Get(nil, k)
	if err != nil || !ok || len(v) != 8 {
		return 0, err
	}
	return binary.BigEndian.Uint64(v), nil
}

// run runs a command, and returns once all that it read and changed is durable. A command
// writes only when it cannot fail any more.
func (l *Logs) run(command func() error) error {
	return l.shard.RunDurableReads(func(*kernel.Tx) error { return command() })
}

// apply adds a batch to the transaction.
func (l *Logs) apply(b *mutation.Batch) { l.shard.Batch.Append(b) }

// reserveMany is how many ids and sequences are reserved in one write.
const reserveMany = 1 << 20

// take assigns n numbers that were never used before, and returns the first.
func (l *Logs) take(n int) (first uint64) {
	first = l.sequence + 1
	l.sequence += uint64(n)
	if l.sequence > l.ceiling {
		l.ceiling = l.sequence + reserveMany
		l.shard.Batch.Set(key(tagSequence), numbers(l.ceiling))
	}
	return first
}

// find reads a group by its name.
func (l *Logs) find(group arn.ARN) (g groupRecord, err error) {
	v, _, err := l.reader.Get(nil, groupKey(group))
	if err != nil {
		return g, err
	}
	g, ok := decodeGroup(v)
	if !ok {
		return g, ErrNoGroup
	}
	return g, nil
}

// totals reads the totals of a group; it fails with ResourceNotFound.
func (l *Logs) totals(group uint64) (t totals, err error) {
	v, _, err := l.reader.Get(nil, key(tagTotals, group))
	if err != nil {
		return t, err
	}
	t, ok := decodeTotals(v)
	if !ok {
		return t, ErrNoGroup
	}
	return t, nil
}

func (l *Logs) stream(group uint64, name string) (s streamRecord, err error) {
	v, _, err := l.reader.Get(nil, streamKey(group, name))
	if err != nil {
		return s, err
	}
	s, ok := decodeStream(v)
	if !ok {
		return s, ErrNoStream
	}
	return s, nil
}

// each calls f with the keys of a range, until f returns an error; it is store.Each.
func (l *Logs) each(lower, upper []byte, f func(k, v []byte) error) error {
	return store.Each(l.reader, keyspace.Span{Lower: lower, Upper: upper}, f)
}

// eachDown is each in descending order.
func (l *Logs) eachDown(lower, upper []byte, f func(k, v []byte) error) error {
	return store.EachDown(l.reader, keyspace.Span{Lower: lower, Upper: upper}, f)
}
