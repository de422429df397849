package metrics

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"unique"
)

// Resource is what metrics are about: a queue, a topic, a function, or whatever
// a client's dimensions mean. Its methods may be called at once from several
// goroutines.
type Resource struct {
	store *Store
	shard *shard
	about about

	mu      sync.Mutex
	gone    bool // the store does not know it any more
	dirty   bool // the shard has it on its list
	waiting bool // the shard has it among those that wait
	metrics []metric
	places  map[seriesName]int  // of the metrics, once there are many
	units   map[string][]string // of those of the metrics that were asked for, those that the store had
}

// seriesName identifies a series of a resource.
type seriesName struct {
	name, unit string
	fine       bool // it is by the second, beside the one by the minute
}

// manyMetrics is how many metrics of a resource are no longer looked through.
const manyMetrics = 16

// about is a Metric without its name.
type about struct {
	Owner
	Namespace, Dimensions string
}

// own copies the texts, which may be pieces of a request, all of which they would
// keep in memory.
func (a about) own() about {
	return about{
		Owner{unique.Make(a.Account).Value(), unique.Make(a.Region).Value()},
		unique.Make(a.Namespace).Value(), strings.Clone(a.Dimensions),
	}
}

// metric is one series of a resource.
type metric struct {
	seriesName
	put    bool  // by a client
	latest int64 // the last minute that has been added to
	listed int64 // the minute in which the list of series was last written; 0: never
	slots  []slot
	at     map[int64]int // where the slots of which times are, once there are many
}

// minuteOf is the minute of one of the metric's times.
func (m *metric) minuteOf(at int64) int64 {
	if m.fine {
		return at / perMinute
	}
	return at
}

// key is where the store has the point of a time.
func (m *metric) key(series id, at int64) []byte {
	if m.fine {
		return secondKey(series, at)
	}
	return pointKey(0, series, at)
}

// slot is a minute, or a second, in memory. Unless partial, it is the whole of it,
// the part included that the store has.
type slot struct {
	at      int64
	set     Set
	dirty   bool // the store does not have it so
	partial bool // the store may have more
}

// Datum is a value of a metric.
type Datum struct {
	Name, Unit string
	Value      float64
	Again      int // how often it came after the first time
}

// Record adds values that came in the present minute or one that is over. It reads
// and writes no disk. False says that the resource has been forgotten: get it again.
func (r *Resource) Record(minute int64, data ...Datum) bool {
	r.store.guard.Lock(&r.mu)
	defer r.store.guard.Unlock(&r.mu)
	if r.gone {
		return false
	}
	for i := range data {
		d := &data[i]
		r.set(d.Name, d.Unit, false, minute, false).Add(d.Value, float64(1+d.Again))
	}
	r.markDirty()
	return true
}

// Fill adds values of which the minute has none yet, under the conditions of
// Record. Where the store turns out to have some, or others come later, they take
// their place.
func (r *Resource) Fill(minute int64, data ...Datum) bool {
	r.store.guard.Lock(&r.mu)
	defer r.store.guard.Unlock(&r.mu)
	if r.gone {
		return false
	}
	for i := range data {
		if s := r.slot(data[i].Name, data[i].Unit, false, minute, false); s.set.Count == 0 {
			s.set.Add(data[i].Value, 1)
			s.set.filled = true
		}
	}
	r.markDirty()
	return true
}

// Forgotten reports that the store has released the resource, to which nothing can
// be added any more.
func (r *Resource) Forgotten() bool {
	r.store.guard.Lock(&r.mu)
	defer r.store.guard.Unlock(&r.mu)
	return r.gone
}

// add adds what a client puts to the set of its minute and, if it is to be kept by the
// second, too, to that of the second; the lock is held.
func (r *Resource) add(d *Datapoint, fine bool) {
	d.Add(r.set(d.Name, d.Unit, false, d.Second/perMinute, true))
	if fine {
		d.Add(r.set(d.Name, d.Unit, true, d.Second, true))
	}
	r.markDirty()
}

// markDirty puts the resource on the list of what is to be written.
func (r *Resource) markDirty() {
	if r.dirty {
		return
	}
	r.dirty = true
	r.shard.mu.Lock()
	r.shard.dirty = append(r.shard.dirty, r)
	r.shard.mu.Unlock()
	r.store.wake()
}

// awake takes the resource off those that wait; it reports whether no other goroutine looks
// at it now.
func (r *Resource) awake() bool {
	r.store.guard.Lock(&r.mu)
	defer r.store.guard.Unlock(&r.mu)
	r.waiting = false
	return !r.dirty
}

// keptUntil is the next minute in which a slot is over that is kept at now, or the end
// of time, under mu.
func (r *Resource) keptUntil(now int64) int64 {
	until := int64(math.MaxInt64)
	for i := range r.metrics {
		m := &r.metrics[i]
		for j := range m.slots {
			if minute := m.minuteOf(m.slots[j].at); minute >= now {
				until = min(until, minute+1)
			}
		}
	}
	return until
}

func (r *Resource) metric(name, unit string, fine bool) *metric {
	if r.places != nil {
		if i, ok := r.places[seriesName{name, unit, fine}]; ok {
			return &r.metrics[i]
		}
		return nil
	}
	for i := range r.metrics {
		if m := &r.metrics[i]; m.name == name && m.unit == unit && m.fine == fine {
			return m
		}
	}
	return nil
}

// newMetric makes a metric, which a client has put or not. A client's names are not
// ours to keep.
func (r *Resource) newMetric(name seriesName, put bool) *metric {
	if put {
		name.name, name.unit = unique.Make(name.name).Value(), unique.Make(name.unit).Value()
	}
	r.metrics = append(r.metrics, metric{seriesName: name, put: put})
	r.places = placed(r.places, len(r.metrics), manyMetrics, func(i int) seriesName { return r.metrics[i].seriesName })
	if put {
		r.store.series.Add(1)
	}
	r.store.fresh.Store(true)
	return &r.metrics[len(r.metrics)-1]
}

// set is that of a slot, to add to.
func (r *Resource) set(name, unit string, fine bool, at int64, put bool) *Set {
	s := r.slot(name, unit, fine, at, put)
	if s.set.filled {
		s.set = Set{}
	}
	return &s.set
}

// slot finds or makes the slot of a minute, or a second, and marks it as changed.
func (r *Resource) slot(name, unit string, fine bool, at int64, put bool) *slot {
	m := r.metric(name, unit, fine)
	if m == nil {
		m = r.newMetric(seriesName{name, unit, fine}, put)
	}
	if s := m.slot(at); s != nil {
		s.dirty = true
		return s
	}
	minute := m.minuteOf(at)
	partial := minute <= max(m.latest, r.store.uncertain.Load())
	m.latest = max(m.latest, minute)
	raise(&r.store.furthest, minute)
	r.store.slots.Add(1)
	return m.newSlot(slot{at: at, dirty: true, partial: partial})
}

// manySlots is how many slots of a metric are no longer looked through.
const manySlots = 32

func (m *metric) slot(at int64) *slot {
	if m.at != nil {
		if i, ok := m.at[at]; ok {
			return &m.slots[i]
		}
		return nil
	}
	for i := len(m.slots) - 1; i >= 0; i-- {
		if m.slots[i].at == at {
			return &m.slots[i]
		}
	}
	return nil
}

func (m *metric) newSlot(s slot) *slot {
	m.slots = append(m.slots, s)
	m.at = placed(m.at, len(m.slots), manySlots, func(i int) int64 { return m.slots[i].at })
	return &m.slots[len(m.slots)-1]
}

// placed notes where the last of n things stands, and where all do once there are
// many: from then on they are found by their places.
func placed[K comparable](places map[K]int, n, many int, name func(i int) K) map[K]int {
	from := n - 1
	if places == nil {
		if n < many {
			return nil
		}
		places, from = make(map[K]int, 2*many), 0
	}
	for i := from; i < n; i++ {
		places[name(i)] = i
	}
	return places
}

// metricOf names one of the resource's metrics.
func (r *Resource) metricOf(name string) Metric {
	return Metric{r.about.Owner, r.about.Namespace, name, r.about.Dimensions}
}

// raise sets a number to at least to.
func raise(number *atomic.Int64, to int64) {
	for now := number.Load(); now < to && !number.CompareAndSwap(now, to); now = number.Load() {
	}
}
