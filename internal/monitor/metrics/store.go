package metrics

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Options are what a Store is made of.
type Options struct {
	Store  store.Store
	Clock  clock.Clock
	Logger *slog.Logger
	// Wake is called when there is something that Flush should write; it is called
	// under locks, and must not call the store. May be nil.
	Wake func()
	// MaxPending is how many minutes of series may wait in memory, and how many
	// series of clients may be there, before what clients put is written early and
	// let go; 0 means 100,000.
	MaxPending int
}

// Store keeps metrics.
type Store struct {
	options Options
	shards  [16]shard
	seed    maphash.Seed
	slots   atomic.Int64
	series  atomic.Int64 // those in memory that clients have put
	fresh   atomic.Bool  // there may be series that are not in the list yet
	// uncertain is the last minute of which the store may have more than memory
	// remembers: that in which the process began, or forgot a series.
	uncertain atomic.Int64
	furthest  atomic.Int64 // the last minute of which there ever was anything
	latest    atomic.Int64 // when anything was last written, epoch milliseconds
	flushing  sync.Mutex   // held by whoever writes
	maintain  int64        // the minute of the last look for what is too old; under flushing
	unlisted  int64        // the minute of the last look for series without points; under flushing

	unsynced atomic.Bool // something is written that is not durable yet; a timer is set
	failed   atomic.Pointer[error]
}

type shard struct {
	resources sync.Map // about → *Resource
	mu        sync.Mutex
	dirty     []*Resource
}

// Open makes a Store of what o.Store holds.
func Open(o Options) (*Store, error) {
	if o.Wake == nil {
		o.Wake = func() {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.MaxPending == 0 {
		o.MaxPending = 100_000
	}
	s := &Store{options: o, seed: maphash.MakeSeed()}
	v, _, err := o.Store.Get(nil, latestKey)
	if err != nil {
		return nil, fmt.Errorf("metrics cannot be read: %w", err)
	}
	s.uncertain.Store(Minute(o.Clock.Now()))
	if latest, furthest, ok := decodeLatest(v); ok {
		s.latest.Store(latest)
		s.furthest.Store(furthest)
		s.uncertain.Store(max(s.uncertain.Load(), furthest))
	}
	return s, nil
}

// Latest is when anything was last written. A virtual clock must not start before
// it.
func (s *Store) Latest() time.Time { return time.UnixMilli(s.latest.Load()).UTC() }

// Minute is the minute of a moment, counted since 1970.
func Minute(at time.Time) int64 { return at.Unix() / perMinute }

const perMinute = 60 // seconds

func (s *Store) wake() { s.options.Wake() }

// Resource finds or makes a resource. It is forgotten some time after nothing is
// recorded for it any more.
func (s *Store) Resource(o Owner, namespace, dimensions string) *Resource {
	a := about{o, namespace, dimensions}
	sh := s.shardOf(a)
	if found, ok := sh.resources.Load(a); ok {
		return found.(*Resource)
	}
	a = a.own()
	found, _ := sh.resources.LoadOrStore(a, &Resource{store: s, shard: sh, about: a})
	return found.(*Resource)
}

func (s *Store) shardOf(a about) *shard {
	return &s.shards[maphash.Comparable(s.seed, a)%uint64(len(s.shards))]
}

// Put adds what f adds to the minute of a second of a metric and, with fine and as
// long as seconds are kept, to the second itself, for which f is called again. Where
// much waits to be written it writes first, so that memory stays bounded. The error is
// of the store.
func (s *Store) Put(m Metric, unit string, second int64, fine bool, f func(*Set)) error {
	fine = fine && second >= s.options.Clock.Now().Unix()-keepSeconds
	for !s.Resource(m.Owner, m.Namespace, m.Dimensions).add(m.Name, unit, second, fine, f) {
	}
	if max(s.slots.Load(), s.series.Load()) >= int64(s.options.MaxPending) {
		_, err := s.flush(squeeze)
		return err
	}
	return nil
}

// syncDelay is after how long at the latest what Flush has written is durable. A
// clock that jumps over weeks flushes far more often.
const syncDelay = 10 * time.Millisecond

// Flush writes the minutes that are over to the store, which makes them durable
// within syncDelay. more says that it is to be called again after the next minute.
// It also lets go of what has become too old.
func (s *Store) Flush() (more bool, err error) {
	if failed := s.failed.Load(); failed != nil {
		return false, *failed
	}
	more, err = s.flush(due)
	if err != nil {
		return more, err
	}
	s.flushing.Lock()
	defer s.flushing.Unlock()
	now := Minute(s.options.Clock.Now())
	if now-s.maintain < hour {
		return more, nil
	}
	s.maintain = now
	return more, s.age(now)
}

// Sync makes durable what has been written.
func (s *Store) Sync() error {
	if !s.unsynced.Swap(false) {
		return nil
	}
	if err := s.options.Store.Apply(true); err != nil {
		return fmt.Errorf("metrics cannot be written: %w", err)
	}
	return nil
}

// syncSoon has Sync called within syncDelay. Its error is that of the next Flush.
func (s *Store) syncSoon() {
	if s.unsynced.Swap(true) {
		return
	}
	clock.System.AfterFunc(syncDelay, func() {
		if err := s.Sync(); err != nil {
			s.failed.Store(&err)
		}
	})
}

// Close writes everything that memory holds.
func (s *Store) Close() error {
	if _, err := s.flush(squeeze); err != nil {
		return err
	}
	return s.Sync()
}

// extent is what a flush writes.
type extent byte

const (
	due     extent = iota // the minutes that are over
	all                   // everything, and keeps the minutes that are not over
	squeeze               // everything, and keeps nothing, not even the series
)

const (
	// flushBytes bounds a batch.
	flushBytes = 1 << 20
	// relist is after how many minutes the list of series is told anew that one
	// is alive.
	relist = 15
	// forget is after how many minutes without a value a series leaves memory.
	forget = 10
)

func (s *Store) flush(what extent) (more bool, err error) {
	s.flushing.Lock()
	defer s.flushing.Unlock()
	at := s.options.Clock.Now()
	now := Minute(at)
	fresh := s.fresh.Swap(false)
	defer func() {
		if err != nil && fresh {
			s.fresh.Store(true)
		}
	}()
	w := writer{s: s, at: at, now: now, what: what}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		dirty := sh.dirty
		sh.dirty = nil
		sh.mu.Unlock()
		for _, r := range dirty {
			if err := w.resource(r); err != nil {
				return true, err
			}
		}
	}
	if err := w.apply(); err != nil {
		return true, err
	}
	if w.wrote {
		s.latest.Store(at.UnixMilli())
		switch what {
		case due:
			s.syncSoon()
		case squeeze:
			if err := s.options.Store.Apply(true); err != nil {
				return true, fmt.Errorf("metrics cannot be written: %w", err)
			}
		case all:
		}
	}
	for i := range s.shards {
		s.shards[i].mu.Lock()
		more = more || len(s.shards[i].dirty) > 0
		s.shards[i].mu.Unlock()
	}
	return more, nil
}

// writer collects a flush.
type writer struct {
	s       *Store
	at      time.Time
	now     int64
	what    extent
	batch   mutation.Batch
	wrote   bool
	written []*Resource
}

// resource writes the slots of a resource that are due. They stay in memory until
// they are in the store.
func (w *writer) resource(r *Resource) error {
	r.mu.Lock()
	r.settle()
	rest, idle := false, true
	for i := range r.metrics {
		m := &r.metrics[i]
		idle = idle && m.latest < w.now-forget
		name := r.metricOf(m.name)
		key := seriesKey(&name, m.unit)
		series := idOf(key)
		for j := range m.slots {
			sl := &m.slots[j]
			if !sl.dirty {
				continue
			}
			if w.what == due && m.minuteOf(sl.at) >= w.now {
				rest = true
				continue
			}
			at := m.key(series, sl.at)
			if err := w.s.complete(at, sl); err != nil {
				r.mu.Unlock()
				return err
			}
			w.batch.Set(at, sl.set.appendTo(nil))
			sl.dirty = false
		}
		if m.fine {
			continue // the one by the minute is listed
		}
		if m.listed == 0 {
			seen, _, err := w.s.options.Store.Get(nil, key)
			if err != nil {
				r.mu.Unlock()
				return fmt.Errorf("metrics cannot be read: %w", err)
			}
			m.listed = seenIn(seen)
		}
		if m.listed == 0 || m.latest >= m.listed+relist {
			w.batch.Set(key, binary.BigEndian.AppendUint32(nil, uint32(m.latest)))
			m.listed = m.latest
		}
	}
	// Until nothing has come for a while the resource is looked at each time.
	again := rest || !idle && w.what != squeeze
	r.dirty = again
	r.mu.Unlock()
	w.written = append(w.written, r)
	if again {
		r.shard.mu.Lock()
		r.shard.dirty = append(r.shard.dirty, r)
		r.shard.mu.Unlock()
	}
	if w.batch.Size() > flushBytes {
		return w.apply()
	}
	return nil
}

// apply writes the batch, and lets go of what is written then.
func (w *writer) apply() error {
	if w.batch.Len() > 0 {
		w.wrote = true
		// The next start must know how far the points go.
		w.batch.Set(latestKey, encodeLatest(w.at.UnixMilli(), max(w.s.furthest.Load(), w.s.uncertain.Load())))
		if err := w.s.options.Store.Apply(false, &w.batch); err != nil {
			return fmt.Errorf("metrics cannot be written: %w", err)
		}
		w.batch.Reset()
	}
	for _, r := range w.written {
		r.mu.Lock()
		w.release(r)
		r.mu.Unlock()
	}
	w.written = w.written[:0]
	return nil
}

func (w *writer) release(r *Resource) {
	kept, latest, put := 0, w.now, int64(0)
	for i := range r.metrics {
		m := &r.metrics[i]
		if m.put {
			put++
		}
		n := 0
		for _, sl := range m.slots {
			if sl.dirty || m.minuteOf(sl.at) >= w.now && w.what != squeeze {
				m.slots[n] = sl
				n++
			}
		}
		w.s.slots.Add(int64(n - len(m.slots)))
		clear(m.slots[n:])
		m.at = nil // made anew by the next one, if there still are many
		if m.slots = m.slots[:n]; n == 0 {
			m.slots = nil // of many queues, what is written leaves memory
		}
		kept += n
		latest = max(latest, m.latest)
	}
	if kept == 0 && !r.dirty {
		// Whoever gets it anew does not know what has been written until now.
		w.s.uncertain.Store(max(w.s.uncertain.Load(), latest))
		w.s.series.Add(-put)
		r.gone = true
		r.shard.resources.Delete(r.about)
	}
}

// complete adds to a partial slot what the store has of it, under a key. What Fill has
// put into either is replaced by the other.
func (s *Store) complete(key []byte, sl *slot) error {
	if !sl.partial {
		return nil
	}
	value, ok, err := s.options.Store.Get(nil, key)
	if err != nil {
		return fmt.Errorf("metrics cannot be read: %w", err)
	}
	var stored Set
	if ok {
		stored, ok = s.readSet(value)
	}
	switch {
	case !ok || stored.filled && !sl.set.filled:
	case sl.set.filled:
		sl.set = stored
	default:
		sl.set.Merge(&stored)
	}
	sl.partial = false
	return nil
}
