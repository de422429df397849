package metrics

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"unique"
)

// Resource is the subject of metrics: a queue, a topic, a function, or whatever a client's
// dimensions mean. Its methods may be called concurrently.
type Resource struct {
	store  *Store
	stripe *stripe
	about  about

	mu      sync.Mutex
	gone    bool // the store has forgotten it
	dirty   bool // it is on the stripe's list of changed resources
	waiting bool // it is among the stripe's waiting resources
	metrics []metric
	places  map[seriesName]int  // of the metrics, once there are many
	units   map[string][]string // the store's units of metrics that were looked up, by name
}

// seriesName identifies a series of a resource.
type seriesName struct {
	name, unit string
	fine       bool // by the second, in addition to the one by the minute
}

// manyMetrics is the number of metrics of a resource up to which they are searched linearly.
const manyMetrics = 16

// about is a Metric without its name.
type about struct {
	Scope
	Namespace, Dimensions string
}

// own copies the texts, which may be parts of a request, and would keep all of it in memory.
func (a about) own() about {
	return about{
		Scope{unique.Make(a.Account).Value(), unique.Make(a.Region).Value()},
		unique.Make(a.Namespace).Value(), strings.Clone(a.Dimensions),
	}
}

// metric is one series of a resource.
type metric struct {
	seriesName
	put    bool  // by a client
	latest int64 // the latest minute with a value
	listed int64 // the minute in which its entry in the list of series was last written; 0: never
	slots  []slot
	at     map[int64]int // index of the slots by time, if there are many
}

// minuteOf is the minute of one of the metric's times.
func (m *metric) minuteOf(at int64) int64 {
	if m.fine {
		return at / perMinute
	}
	return at
}

// key is the store's key of the point of a time.
func (m *metric) key(series id, at int64) []byte {
	if m.fine {
		return secondKey(series, at)
	}
	return pointKey(0, series, at)
}

// slot is a minute, or a second, in memory. Unless partial, it has all values, including those
// in the store.
type slot struct {
	at      int64
	set     Set
	dirty   bool // it differs from the store
	partial bool // the store may have more values
}

// Datum is a value of a metric.
type Datum struct {
	Name, Unit string
	Value      float64
	Again      int // how often it is repeated after the first time
}

// Record adds values of the current minute or an earlier one. It does not access the disk.
// False says that the resource has been forgotten: get it again.
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

// Fill adds values to a minute without any, like Record. Values in the store, and later ones,
// replace them.
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

// Forgotten reports that the store has released the resource: nothing can be added to it.
func (r *Resource) Forgotten() bool {
	r.store.guard.Lock(&r.mu)
	defer r.store.guard.Unlock(&r.mu)
	return r.gone
}

// add adds a client's datapoint to the set of its minute and, if fine, also to that of the
// second; the lock is held.
func (r *Resource) add(d *Datapoint, fine bool) {
	d.Add(r.set(d.Name, d.Unit, false, d.Second/perMinute, true))
	if fine {
		d.Add(r.set(d.Name, d.Unit, true, d.Second, true))
	}
	r.markDirty()
}

// markDirty adds the resource to the list of those to be written.
func (r *Resource) markDirty() {
	if r.dirty {
		return
	}
	r.dirty = true
	r.stripe.mu.Lock()
	r.stripe.dirty = append(r.stripe.dirty, r)
	r.stripe.mu.Unlock()
	r.store.wake()
}

// awake removes the resource from the waiting ones; it reports whether no other goroutine uses
// it now.
func (r *Resource) awake() bool {
	r.store.guard.Lock(&r.mu)
	defer r.store.guard.Unlock(&r.mu)
	r.waiting = false
	return !r.dirty
}

// keptUntil is the next minute in which a slot kept at now expires, or the end of time, under
// mu.
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

// newMetric makes a metric; put: by a client. It copies a client's names.
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

// set is the set of a slot, to add to.
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

// manySlots is the number of slots of a metric up to which they are searched linearly.
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

// placed indexes the last of n elements, or all of them as soon as there are many: from then on
// they are found by the index.
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

// metricOf is one of the resource's metrics, by name.
func (r *Resource) metricOf(name string) Metric {
	return Metric{r.about.Scope, r.about.Namespace, name, r.about.Dimensions}
}

// raise sets number to at least to.
func raise(number *atomic.Int64, to int64) {
	for now := number.Load(); now < to && !number.CompareAndSwap(now, to); now = number.Load() {
	}
}
