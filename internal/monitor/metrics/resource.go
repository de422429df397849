package metrics

import (
	"sync"
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
}

// about is a Metric without its name.
type about struct {
	Owner
	Namespace, Dimensions string
}

// metric is one series of a resource.
type metric struct {
	name, unit string
	latest     int64 // the last minute that has been added to
	listed     int64 // the minute in which the list of series was last told; 0: never
	slots      []slot
}

// slot is a minute in memory. Unless partial, it is the whole of its minute, the
// part included that the store has.
type slot struct {
	minute  int64
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
		r.slot(data[i].Name, data[i].Unit, minute, false).set.Add(data[i].Value, 1)
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
		if s := r.slot(data[i].Name, data[i].Unit, minute, false); s.set.Count == 0 {
			s.set.Add(data[i].Value, 1)
		}
	}
	r.soil()
	return true
}

// add gives f the set of any minute to add to.
func (r *Resource) add(name, unit string, minute int64, f func(*Set)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.gone {
		return false
	}
	f(&r.slot(name, unit, minute, true).set)
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

func (r *Resource) metric(name, unit string) *metric {
	for i := range r.metrics {
		if m := &r.metrics[i]; m.name == name && m.unit == unit {
			return m
		}
	}
	return nil
}

// slot finds or makes the slot of a minute, and marks it as changed. A minute
// that may lie ahead of the clock may be in the store from before the start.
func (r *Resource) slot(name, unit string, minute int64, ahead bool) *slot {
	m := r.metric(name, unit)
	if m == nil {
		r.metrics = append(r.metrics, metric{name: name, unit: unit})
		m = &r.metrics[len(r.metrics)-1]
	}
	for i := len(m.slots) - 1; i >= 0; i-- {
		if s := &m.slots[i]; s.minute == minute {
			s.dirty = true
			return s
		}
	}
	partial := ahead || minute <= max(m.latest, r.store.uncertain.Load())
	m.latest = max(m.latest, minute)
	r.store.slots.Add(1)
	m.slots = append(m.slots, slot{minute: minute, dirty: true, partial: partial})
	return &m.slots[len(m.slots)-1]
}

// metricOf names one of the resource's metrics.
func (r *Resource) metricOf(name string) Metric {
	return Metric{r.about.Owner, r.about.Namespace, name, r.about.Dimensions}
}
