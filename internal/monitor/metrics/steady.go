package metrics

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// A resource whose values are the same in each minute has them written once: as a steady
// Sample, for each minute from its first one on that has no point. While it continues it has a
// key that a start can find; when it has ended, its key has its first minute, and its value the
// last.

// Layout is the metrics that samples of a kind of resource can have, at most MaxLevels. Its
// index in Options.Layouts, and that of a level in it, are persisted and must never change.
type Layout []Level

// MaxLevels is how many metrics a Layout has at most.
const MaxLevels = 16

// Level is a metric of a Layout. One that Grows is an age in seconds.
type Level struct {
	Name, Unit string
	Grows      bool
}

// Sample is the report of a resource for a minute: the metrics of its layout that are present.
type Sample struct {
	Layout  uint8
	present uint32
	// values are those of the minute; of a level that grows, minus 60 for each minute since
	// 1970.
	values [MaxLevels]int64
}

// Set sets the value of the level at an index of the layout.
func (p *Sample) Set(level int, value int64) {
	p.present |= 1 << level
	p.values[level] = value
}

// SetGrown is Set for a level that grows, with the value in a minute.
func (p *Sample) SetGrown(level int, minute, seconds int64) { p.Set(level, seconds-perMinute*minute) }

// Levels calls f with the levels that are present.
func (s *Store) Levels(p *Sample, minute int64, f func(name, unit string, value float64)) {
	if int(p.Layout) >= len(s.options.Layouts) {
		return
	}
	for i, level := range s.options.Layouts[p.Layout] {
		if p.present&(1<<i) != 0 {
			f(level.Name, level.Unit, p.at(level, i, minute))
		}
	}
}

func (p *Sample) at(level Level, i int, minute int64) float64 {
	if level.Grows {
		return float64(p.values[i] + perMinute*minute)
	}
	return float64(p.values[i])
}

// Encode is the persisted form of p.
func (p *Sample) Encode() string {
	b := binary.AppendUvarint([]byte{p.Layout}, uint64(p.present))
	for i, v := range p.values {
		if p.present&(1<<i) != 0 {
			b = binary.AppendVarint(b, v)
		}
	}
	return string(b)
}

var errSample = errors.New("a steady sample is damaged")

// DecodeSample is the inverse of Encode.
func DecodeSample(text string) (p Sample, err error) {
	if text == "" {
		return p, errSample
	}
	b := []byte(text[1:])
	present, n := binary.Uvarint(b)
	if n <= 0 || present >= 1<<MaxLevels {
		return p, errSample
	}
	p.Layout, p.present = text[0], uint32(present)
	for i := range p.values {
		if b = b[n:]; p.present&(1<<i) == 0 {
			n = 0
			continue
		}
		if p.values[i], n = binary.Varint(b); n <= 0 {
			return p, errSample
		}
	}
	return p, nil
}

// steadyWithin is the tolerance for a growing level, in seconds: not all resources are measured
// at the same moment.
const steadyWithin = 5

// Continues reports whether p equals an encoded sample, whatever their minutes.
func (s *Store) Continues(p *Sample, before string) bool {
	q, err := DecodeSample(before)
	if err != nil || p.Layout != q.Layout || p.present != q.present || int(p.Layout) >= len(s.options.Layouts) {
		return false
	}
	for i, level := range s.options.Layouts[p.Layout] {
		d := p.values[i] - q.values[i]
		if d != 0 && (!level.Grows || d < -steadyWithin || d > steadyWithin) {
			return false
		}
	}
	return true
}

// Steady is a run of minutes in which a resource had the same sample.
type Steady struct {
	Scope
	Namespace, Dimensions string
	From                  int64  // minute
	Sample                string // encoded by Encode
}

func (r *Steady) key(tag byte) []byte {
	k := append(make([]byte, 0, 96), prefix, tag)
	for _, part := range [...]string{r.Account, r.Region, r.Namespace, r.Dimensions} {
		k = append(append(k, part...), between)
	}
	return k
}

// steady collects the steady samples to be written by the next flush.
type steady struct {
	mu    sync.Mutex
	batch mutation.Batch
}

// BeginSteady begins a run, which continues until EndSteady. list adds its metrics to the list,
// which must happen once; they stay there while it continues. It does not block.
func (s *Store) BeginSteady(r *Steady, list bool) {
	s.guard.Lock(&s.steady.mu)
	defer s.guard.Unlock(&s.steady.mu)
	b := &s.steady.batch
	b.Set(r.key(tagOpen), append(binary.BigEndian.AppendUint32(nil, uint32(r.From)), r.Sample...))
	if list {
		s.listSteady(r, r.From)
	}
}

// EndSteady ends a run, which remains valid up to the minute last; of one that began later
// nothing remains. It does not block.
func (s *Store) EndSteady(r *Steady, last int64) {
	s.guard.Lock(&s.steady.mu)
	defer s.guard.Unlock(&s.steady.mu)
	b := &s.steady.batch
	b.Delete(r.key(tagOpen))
	if last >= r.From {
		key := binary.BigEndian.AppendUint32(r.key(tagClosed), uint32(r.From))
		b.Set(key, append(binary.BigEndian.AppendUint32(nil, uint32(last)), r.Sample...))
		s.listSteady(r, last)
	}
}

// DropSteady removes a run in progress. It does not block.
func (s *Store) DropSteady(r *Steady) {
	s.guard.Lock(&s.steady.mu)
	defer s.guard.Unlock(&s.steady.mu)
	s.steady.batch.Delete(r.key(tagOpen))
}

func (s *Store) listSteady(r *Steady, minute int64) {
	p, err := DecodeSample(r.Sample)
	if err != nil {
		return
	}
	seen := binary.BigEndian.AppendUint32(nil, uint32(minute))
	s.Levels(&p, minute, func(name, unit string, _ float64) {
		s.steady.batch.Set(seriesKey(&Metric{r.Scope, r.Namespace, name, r.Dimensions}, unit), seen)
	})
	raise(&s.furthest, minute)
	s.fresh.Store(true)
}

// steady adds the collected steady samples to the batch.
func (w *writer) steady() {
	st := &w.s.steady
	w.s.guard.Lock(&st.mu)
	defer w.s.guard.Unlock(&st.mu)
	w.batch.Append(&st.batch)
	st.batch.Reset()
}

// EachSteady calls f with the runs in progress, for a start.
func (s *Store) EachSteady(f func(r *Steady)) error {
	return store.Each(s.reader, keyspace.Prefix([]byte{prefix, tagOpen}), func(key, value []byte) error {
		parts := strings.Split(string(key[2:]), string(between))
		if len(parts) == 5 && len(value) >= 4 {
			f(&Steady{Scope{parts[0], parts[1]}, parts[2], parts[3], int64(binary.BigEndian.Uint32(value)), string(value[4:])})
		}
		return nil
	})
}

// EndAllSteady ends the runs in progress with the minute of the last write: their real end is
// not recorded.
func (s *Store) EndAllSteady() error {
	return s.EachSteady(func(r *Steady) { s.EndSteady(r, Minute(s.Latest())-1) })
}

// stands reports whether a metric is steady now.
func (s *Store) stands(m *Metric, unit string) bool {
	if !s.inLayouts(m.Name, unit) {
		return false
	}
	r := Steady{Scope: m.Scope, Namespace: m.Namespace, Dimensions: m.Dimensions}
	value, ok, err := s.reader.Get(nil, r.key(tagOpen))
	if !ok || err != nil || len(value) < 4 {
		return false
	}
	p, err := DecodeSample(string(value[4:]))
	if err != nil {
		return false
	}
	found := false
	s.Levels(&p, 0, func(name, of string, _ float64) { found = found || name == m.Name && of == unit })
	return found
}

// steadyRun is the part of a run that concerns a series.
type steadyRun struct {
	from, to int64 // to is exclusive
	grows    bool
	value    int64
}

func (r *steadyRun) at(minute int64) float64 {
	if r.grows {
		return float64(r.value + perMinute*minute)
	}
	return float64(r.value)
}

// steadyRuns are the runs of a series within [from, to), in order.
func (s *Store) steadyRuns(m Metric, unit string, from, to int64) (runs []steadyRun, err error) {
	if !s.inLayouts(m.Name, unit) || from >= to {
		return nil, nil
	}
	r := Steady{Scope: m.Scope, Namespace: m.Namespace, Dimensions: m.Dimensions}
	add := func(first, behind int64, sample []byte) {
		p, err := DecodeSample(string(sample))
		if err != nil || int(p.Layout) >= len(s.options.Layouts) {
			s.kernel.Logger.Error("a steady value is left out", "reason", errSample.Error())
			return
		}
		for i, level := range s.options.Layouts[p.Layout] {
			if p.present&(1<<i) != 0 && level.Name == m.Name && level.Unit == unit {
				runs = append(runs, steadyRun{max(first, from), min(behind, to), level.Grows, p.values[i]})
			}
		}
	}
	value, ok, err := s.reader.Get(nil, r.key(tagOpen))
	if err != nil {
		return nil, err
	}
	if now := Minute(s.kernel.Clock.Now()); ok && len(value) > 4 {
		if first := int64(binary.BigEndian.Uint32(value)); first < min(to, now) {
			add(first, now, value[4:])
		}
	}
	low := r.key(tagClosed)
	span := keyspace.Span{Lower: low, Upper: binary.BigEndian.AppendUint32(slices.Clone(low), uint32(to))}
	err = store.EachDown(s.reader, span, func(key, value []byte) error {
		if len(value) < 4 {
			return nil
		}
		last := int64(binary.BigEndian.Uint32(value))
		if last < from {
			return store.ErrStop
		}
		add(int64(binary.BigEndian.Uint32(key[len(key)-4:])), last+1, value[4:])
		return nil
	})
	slices.Reverse(runs)
	return runs, err
}

func (s *Store) inLayouts(name, unit string) bool {
	return slices.ContainsFunc(s.options.Layouts, func(l Layout) bool {
		return slices.ContainsFunc(l, func(level Level) bool { return level.Name == name && level.Unit == unit })
	})
}

// dropSteady removes the runs that ended before the retention.
func (s *Store) dropSteady(now int64) error {
	return s.drop(tagClosed, func(value []byte) bool {
		return len(value) < 4 || int64(binary.BigEndian.Uint32(value)) < now-Retention
	})
}

// drop removes the records under a tag whose value is expired, as many as fit into a batch.
func (s *Store) drop(tag byte, expired func(value []byte) bool) error {
	batch := &s.shard.Batch
	return store.Each(s.reader, keyspace.Prefix([]byte{prefix, tag}), func(key, value []byte) error {
		if batch.Size() >= flushBytes {
			return store.ErrStop
		}
		if expired(value) {
			batch.Delete(key)
		}
		return nil
	})
}
