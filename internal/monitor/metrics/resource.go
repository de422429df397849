package metrics

import (
	"strings"
	"sync"
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
	metrics []metric
	units   map[string][]string // of the metrics that were asked for, those that the store had
}

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
	name, unit string
	fine       bool  // it is by the second, beside the one by the minute
	latest     int64 // the last minute that has been added to
	listed     int64 // the minute in which the list of series was last told; 0: never
	slots      []slot
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
}

// Record adds values, each of which came once, in the present minute or one
// that is over. It reads and writes no
// disk. False says that the resource has been forgotten: get it anew.
func (r *Resource) Record(minute int64, data ...Datum) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return false
	}
	for i := range data {
		r.slot(data[i].Name, data[i].Unit, false, minute, false).set.Add(data[i].Value, 1)
	}
	r.soil()
	return true
}

// Fill adds values of which the minute has none yet, under the conditions of
// Record.
func (r *Resource) Fill(minute int64, data ...Datum) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return false
	}
	for i := range data {
		if s := r.slot(data[i].Name, data[i].Unit, false, minute, false); s.set.Count == 0 {
			s.set.Add(data[i].Value, 1)
		}
	}
	r.soil()
	return true
}

// Forgotten reports that the store has let go of the resource, to which nothing can
// be added any more.
func (r *Resource) Forgotten() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.gone
}

// add gives f the set of the minute of any second to add to, and, if it is to be
// kept by the second, too, that of the second.
func (r *Resource) add(name, unit string, second int64, fine bool, f func(*Set)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return false
	}
	f(&r.slot(name, unit, false, second/perMinute, true).set)
	if fine {
		f(&r.slot(name, unit, true, second, true).set)
	}
	r.soil()
	return true
}

// soil puts the resource on the list of what is to be written.
func (r *Resource) soil() {
	if r.dirty {
		return
	}
	r.dirty = true
	r.shard.mu.Lock()
	r.shard.dirty = append(r.shard.dirty, r)
	r.shard.mu.Unlock()
	r.store.wake()
}

func (r *Resource) metric(name, unit string, fine bool) *metric {
	for i := range r.metrics {
		if m := &r.metrics[i]; m.name == name && m.unit == unit && m.fine == fine {
			return m
		}
	}
	return nil
}

// slot finds or makes the slot of a minute, or a second, and marks it as changed.
// One that may lie ahead of the clock may be in the store from before the start.
func (r *Resource) slot(name, unit string, fine bool, at int64, ahead bool) *slot {
	m := r.metric(name, unit, fine)
	if m == nil {
		r.metrics = append(r.metrics, metric{name: unique.Make(name).Value(), unit: unique.Make(unit).Value(), fine: fine})
		m = &r.metrics[len(r.metrics)-1]
	}
	for i := len(m.slots) - 1; i >= 0; i-- {
		if s := &m.slots[i]; s.at == at {
			s.dirty = true
			return s
		}
	}
	minute := m.minuteOf(at)
	partial := ahead || minute <= max(m.latest, r.store.uncertain.Load())
	m.latest = max(m.latest, minute)
	r.store.slots.Add(1)
	m.slots = append(m.slots, slot{at: at, dirty: true, partial: partial})
	return &m.slots[len(m.slots)-1]
}

// metricOf names one of the resource's metrics.
func (r *Resource) metricOf(name string) Metric {
	return Metric{r.about.Owner, r.about.Namespace, name, r.about.Dimensions}
}
