package metrics

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/poison"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Options configure a Store.
type Options struct {
	// Wake is called when Flush has something to write; it is called under locks, and must not
	// call the store. May be nil.
	Wake func()
	// MaxPending bounds the unwritten minutes of series in memory, and the series of clients;
	// beyond it the clients' are written early and released. 0 means 100,000.
	MaxPending int
	// Layouts are the layouts of steady samples.
	Layouts []Layout
}

// Store stores metrics. It is a module of the kernel: writes are transactions of its own shard.
// Values in memory are guarded by a lock for each resource.
type Store struct {
	kernel.NopLifecycle
	kernel  *kernel.Kernel
	options Options
	shard   *kernel.Shard
	reader  journal.Reader // sees what the shard has appended
	stripes [16]stripe
	seed    maphash.Seed
	slots   atomic.Int64
	series  atomic.Int64 // those of clients in memory
	fresh   atomic.Bool  // there may be series that are not listed yet
	// uncertain is the last minute of which the store may have values that memory lacks: that
	// in which the process began, or forgot a series.
	uncertain atomic.Int64
	furthest  atomic.Int64 // the latest minute with values
	latest    atomic.Int64 // time of the last write, in epoch milliseconds
	steady    steady
	guard     *poison.Guard

	// Under the shard's lock.
	checkedAt int64 // the minute of the last check for resources to release
	maintain  int64 // the minute of the last check for expired points
	unlisted  int64 // the minute of the last check for series without points
}

// stripe has a part of the resources under a lock of its own, so that what is counted at the same time
// seldom waits.
type stripe struct {
	resources sync.Map // about → *Resource
	mu        sync.Mutex
	dirty     []*Resource
	// waiting are the resources without unwritten values, by the minute of their next check.
	// Checking all each minute would cost as much as checking all queues.
	waiting map[int64][]*Resource
}

// New adds the module to a kernel.
func New(k *kernel.Kernel, o Options) *Store {
	if o.Wake == nil {
		o.Wake = func() {}
	}
	if o.MaxPending == 0 {
		o.MaxPending = 100_000
	}
	s := &Store{kernel: k, shard: k.OwnShard(keyspace.MetricStream), options: o, seed: maphash.MakeSeed(), guard: poison.New(k.Logger, k.Options.Fatal)}
	s.shard.Add(s)
	return s
}

// Load implements kernel.Lifecycle.
func (s *Store) Load() error {
	s.reader = s.shard.Stream.Reader()
	v, _, err := s.reader.Get(nil, latestKey)
	if err != nil {
		return fmt.Errorf("metrics cannot be read: %w", err)
	}
	s.uncertain.Store(Minute(s.kernel.Clock.Now()))
	if latest, furthest, ok := decodeLatest(v); ok {
		s.latest.Store(latest)
		s.furthest.Store(furthest)
		s.uncertain.Store(max(s.uncertain.Load(), furthest))
	}
	return nil
}

// Latest is the time of the last write. A virtual clock must not start before it.
func (s *Store) Latest() time.Time { return clock.Time(s.latest.Load()) }

// Now is the current time.
func (s *Store) Now() time.Time { return s.kernel.Clock.Now() }

// Minute is the minute of a time, counted from 1970.
func Minute(at time.Time) int64 { return at.Unix() / perMinute }

const perMinute = 60 // seconds

func (s *Store) wake() { s.options.Wake() }

// Resource finds or makes a resource. It is forgotten some time after its last value.
func (s *Store) Resource(scope Scope, namespace, dimensions string) *Resource {
	a := about{scope, namespace, dimensions}
	st := s.stripeOf(a)
	if found, ok := st.resources.Load(a); ok {
		return found.(*Resource)
	}
	a = a.own()
	found, _ := st.resources.LoadOrStore(a, &Resource{store: s, stripe: st, about: a})
	return found.(*Resource)
}

func (s *Store) stripeOf(a about) *stripe {
	return &s.stripes[maphash.Comparable(s.seed, a)%uint64(len(s.stripes))]
}

// Datapoint is a value put by a client.
type Datapoint struct {
	Metric
	Unit   string
	Second int64 // epoch seconds
	// Fine stores it by the second, too, while seconds are kept.
	Fine bool
	// Add adds the values to a set. It is called for the set of the minute and, with Fine,
	// again for that of the second.
	Add func(*Set)
}

// maxPut bounds the datapoints of a command, which holds the shard's lock: as many as PutMetricData takes.
const maxPut = 1000

// Put adds clients' values, a part of them after the other. They are durable on return; on an error some
// may be. Errors: kernel.ErrFull, the store's.
func (s *Store) Put(data ...Datapoint) error {
	if s.kernel.Full() {
		return kernel.ErrFull
	}
	for part := range slices.Chunk(data, maxPut) {
		if _, err := s.shard.Run(journal.Lazy, func(*kernel.Tx) error { return s.put(part) }); err != nil {
			return err
		}
		if max(s.slots.Load(), s.series.Load()) >= int64(s.options.MaxPending) {
			if _, err := s.flush(squeeze); err != nil {
				return err
			}
		}
	}
	s.Sync()
	return nil
}

func (s *Store) put(data []Datapoint) error {
	w := s.writer(all)
	fineFrom := w.at.Unix() - keepSeconds
	for i := range data {
		d := &data[i]
		fine := d.Fine && d.Second >= fineFrom
		for {
			r := s.Resource(d.Scope, d.Namespace, d.Dimensions)
			if ok, err := w.put(r, d, fine); err != nil {
				return err
			} else if ok {
				break
			}
		}
	}
	w.apply()
	return nil
}

// Flush writes the completed minutes to the store; they are durable within 10 ms. more says
// that it must be called again after the next minute. It also removes expired points.
func (s *Store) Flush() (more bool, err error) {
	more, err = s.flush(due)
	if err != nil {
		return more, err
	}
	return more, s.age(Minute(s.kernel.Clock.Now()))
}

// Save writes everything that memory holds, as Close does, and goes on. It is durable on return.
func (s *Store) Save() error {
	_, err := s.flush(squeeze)
	s.Sync()
	return err
}

// Sync makes all writes durable.
func (s *Store) Sync() { s.shard.Stream.Sync() }

// Close implements kernel.Lifecycle: it writes everything that memory holds.
func (s *Store) Close() {
	if s.reader == nil { // it was not loaded
		return
	}
	if _, err := s.write(squeeze, nil); err != nil {
		s.shard.Logger.Error("the metrics of the last minute could not be written", "error", err)
	}
}

// extent selects what a flush writes.
type extent byte

const (
	due     extent = iota // completed minutes
	all                   // everything; the current minutes stay in memory
	squeeze               // everything; nothing stays in memory, not even the series
)

const (
	// flushBytes bounds a batch, and putBytes the batch of one Put.
	flushBytes = 1 << 20
	putBytes   = 3 << 20
	// relist is the interval in minutes at which the list entry of a live series is rewritten.
	relist = 15
	// forget is how many minutes without a value a series stays in memory.
	forget = 2
)

func (s *Store) flush(what extent) (more bool, err error) {
	_, err = s.shard.Run(journal.Lazy, func(tx *kernel.Tx) error {
		more, err = s.write(what, tx)
		return err
	})
	return more, err
}

// write is flush in a transaction, which it yields now and then; nil: it must not.
func (s *Store) write(what extent, tx *kernel.Tx) (more bool, err error) {
	fresh := s.fresh.Swap(false)
	defer func() {
		if err != nil && fresh {
			s.fresh.Store(true)
		}
	}()
	w := s.writer(what)
	w.steady()
	w.moment()
	check := what == squeeze || s.checkedAt != w.now
	s.checkedAt = w.now
	for i := range s.stripes {
		st := &s.stripes[i]
		st.mu.Lock()
		dirty := st.dirty
		st.dirty = nil
		var due [][]*Resource
		if check {
			due = st.takeDue(w)
		}
		st.mu.Unlock()
		for _, r := range slices.Concat(due...) {
			if r.awake() {
				dirty = append(dirty, r)
			}
		}
		for _, r := range dirty {
			if err := w.resource(r); err != nil {
				return true, err
			}
			if w.batch.Size() > flushBytes {
				w.apply()
				if tx != nil {
					tx.Yield(func() {})
				}
			}
		}
	}
	w.apply()
	for i := range s.stripes {
		s.stripes[i].mu.Lock()
		more = more || len(s.stripes[i].dirty)+len(s.stripes[i].waiting) > 0
		s.stripes[i].mu.Unlock()
	}
	return more, nil
}

// takeDue takes the resources whose waiting time is over, under mu.
func (st *stripe) takeDue(w *writer) (due [][]*Resource) {
	for at, waiting := range st.waiting {
		if at <= w.now || w.what == squeeze {
			due = append(due, waiting)
			delete(st.waiting, at)
		}
	}
	return due
}

// moment writes the time with each flush of a new minute, and with the last, even if nothing
// else is written: a run continues without writes, and reads show it. A start with a virtual
// clock, and EndAllSteady, need to know how far it continued.
func (w *writer) moment() {
	s := w.s
	if s.latest.Load() == 0 { // nothing was ever written
		return
	}
	if last := s.Latest(); w.what == squeeze && w.at.After(last) || w.what == due && w.now > Minute(last) {
		w.stamp()
	}
}

// stamp writes the time of this write, and the latest minute with points.
func (w *writer) stamp() {
	w.batch.Set(latestKey, encodeLatest(w.at.UnixMilli(), max(w.s.furthest.Load(), w.s.uncertain.Load())))
}

// writer collects the writes of a flush, in a transaction.
type writer struct {
	s       *Store
	at      time.Time
	now     int64
	what    extent
	batch   *mutation.Batch // of the shard
	written []*Resource
}

func (s *Store) writer(what extent) *writer {
	s.shard.Now()
	at := s.kernel.Clock.Now()
	return &writer{s: s, at: at, now: Minute(at), what: what, batch: &s.shard.Batch}
}

// resource writes the due slots of a resource. They stay in memory until they are in the store.
func (w *writer) resource(r *Resource) error {
	r.mu.Lock()
	rest, latest := false, int64(0)
	for i := range r.metrics {
		m := &r.metrics[i]
		latest = max(latest, m.latest)
		more, err := w.metric(r, m)
		if err != nil {
			r.mu.Unlock()
			return err
		}
		rest = rest || more
	}
	// It stays until there was no value for a while.
	idle := latest < w.now-forget
	waits := !r.waiting && !rest && !idle && w.what != squeeze
	r.dirty, r.waiting = rest, r.waiting || waits
	at := min(latest+forget+1, r.keptUntil(w.now))
	r.mu.Unlock()
	w.written = append(w.written, r)
	if rest || waits {
		r.stripe.mu.Lock()
		if rest {
			r.stripe.dirty = append(r.stripe.dirty, r)
		} else {
			if r.stripe.waiting == nil {
				r.stripe.waiting = map[int64][]*Resource{}
			}
			r.stripe.waiting[at] = append(r.stripe.waiting[at], r)
		}
		r.stripe.mu.Unlock()
	}
	return nil
}

// metric writes the due slots of a metric; the resource's lock is held. rest says that there
// are others.
func (w *writer) metric(r *Resource, m *metric) (rest bool, err error) {
	var key []byte
	var series id
	for j := range m.slots {
		sl := &m.slots[j]
		if !sl.dirty {
			continue
		}
		if w.what == due && m.minuteOf(sl.at) >= w.now {
			rest = true
			continue
		}
		if key == nil {
			name := r.metricOf(m.name)
			key = seriesKey(&name, m.unit)
			series = idOf(key)
		}
		at := m.key(series, sl.at)
		damage, err := w.s.complete(at, sl)
		if damage != nil {
			logLeftOut(w.s.shard.Logger, damage)
		}
		if err != nil {
			return rest, err
		}
		w.batch.Set(at, sl.set.encode())
		sl.dirty = false
	}
	if m.fine {
		return rest, nil // the series by the minute is listed
	}
	if m.listed != 0 && m.latest < m.listed+relist {
		return rest, nil
	}
	if key == nil {
		name := r.metricOf(m.name)
		key = seriesKey(&name, m.unit)
	}
	if m.listed == 0 {
		seen, _, err := w.s.reader.Get(nil, key)
		if err != nil {
			return rest, fmt.Errorf("metrics cannot be read: %w", err)
		}
		m.listed = seenIn(seen)
	}
	if m.listed == 0 || m.latest >= m.listed+relist {
		w.batch.Set(key, binary.BigEndian.AppendUint32(nil, uint32(m.latest)))
		m.listed = m.latest
	}
	return rest, nil
}

// put adds a client's value to a resource, and lists its series. False says that the resource
// has been forgotten: get it again.
func (w *writer) put(r *Resource, d *Datapoint, fine bool) (ok bool, err error) {
	w.s.guard.Lock(&r.mu)
	defer w.s.guard.Unlock(&r.mu)
	if r.gone {
		return false, nil
	}
	r.add(d, fine)
	for _, fine := range [...]bool{false, true} {
		if m := r.metric(d.Name, d.Unit, fine); m != nil {
			if _, err := w.metric(r, m); err != nil {
				return false, err
			}
		}
	}
	if w.batch.Size() > putBytes {
		w.apply()
	}
	return true, nil
}

// apply writes the batch, and then releases what it has.
func (w *writer) apply() {
	if w.batch.Len() > 0 {
		w.stamp()
		w.s.latest.Store(w.at.UnixMilli())
		w.s.shard.AppendPartial(journal.Lazy)
	}
	for _, r := range w.written {
		r.mu.Lock()
		w.release(r)
		r.mu.Unlock()
	}
	w.written = w.written[:0]
}

func (w *writer) release(r *Resource) {
	kept, latest, put := 0, int64(0), int64(0)
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
		m.at = nil // the next one makes it again, if there still are many
		if m.slots = m.slots[:n]; n == 0 {
			m.slots = nil // written slots of many queues are released
		}
		kept += n
		latest = max(latest, m.latest)
	}
	if kept == 0 && !r.dirty && !r.waiting {
		// A new resource does not know which of these minutes have been written.
		w.s.uncertain.Store(max(w.s.uncertain.Load(), latest))
		w.s.series.Add(-put)
		r.gone = true
		r.stripe.resources.Delete(r.about)
	}
}

// complete adds the store's values, at a key, to a partial slot. Values of Fill in either are
// replaced by the other. damage is why the store's values are left out. The lock of the slot's
// resource is held while the store is read: a flush meanwhile could write the slot and release it,
// and its values would count twice, or not at all.
func (s *Store) complete(key []byte, sl *slot) (damage, err error) {
	if !sl.partial {
		return nil, nil
	}
	value, ok, err := s.reader.Get(nil, key)
	if err != nil {
		return nil, fmt.Errorf("metrics cannot be read: %w", err)
	}
	var stored Set
	if ok {
		stored, damage = decodeSet(value)
		ok = damage == nil
	}
	switch {
	case !ok || stored.filled && !sl.set.filled:
	case sl.set.filled:
		sl.set = stored
	default:
		sl.set.Merge(&stored)
	}
	sl.partial = false
	return damage, nil
}
