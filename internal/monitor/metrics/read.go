package metrics

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"unique"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/store"
)

// Point is the set of a period.
type Point struct {
	Start int64 // in epoch seconds
	Set   Set
}

// Periods are the periods of Length that begin at From and at the multiples of Length after it,
// below To.
type Periods struct{ From, To, Length int64 }

// start is the start of the period that at is in, which is not before From.
func (p Periods) start(at int64) int64 { return p.From + (at-p.From)/p.Length*p.Length }

// end is the end of the last period.
func (p Periods) end() int64 { return p.start(p.To + p.Length - 1) }

// Read returns the sets of a series for the periods of period seconds that begin at from and at
// the multiples of period after it, below to; in ascending order, without empty ones. Times are
// epoch seconds. A period of 60 or a multiple begins with a minute; values that are stored more
// coarsely than the period, due to their age, are included only if they make up whole periods.
// Shorter periods have the values put by the second in the last three hours, and those that are
// not at the start of their minute.
func (s *Store) Read(m Metric, unit string, from, to, period int64) (points []Point, err error) {
	err = s.Each(m, unit, from, to, period, func(start int64, set *Set) {
		points = append(points, Point{start, *set})
	})
	return points, err
}

// Each calls f with the points of Read, one after the other, so that not all of their
// distributions are in memory at once. f owns the set.
func (s *Store) Each(m Metric, unit string, from, to, period int64, f func(start int64, set *Set)) error {
	return s.EachAndZeros(m, unit, Periods{from, to, period}, Zeros{}, f)
}

// Zeros are minutes in which a metric is known to be zero although nothing is stored: those
// from From on, below To. They are after all stored points of the metric.
type Zeros struct{ From, To int64 }

// EachAndZeros is Each, of periods in seconds, with zeros where nothing is stored.
func (s *Store) EachAndZeros(m Metric, unit string, p Periods, z Zeros, f func(start int64, set *Set)) error {
	if p.Length%perMinute != 0 {
		return s.seconds(m, unit, p, z, f)
	}
	minutes := Periods{p.From / perMinute, (p.To + perMinute - 1) / perMinute, p.Length / perMinute}
	return s.minutes(m, unit, minutes, z, func(minute int64, set *Set) {
		f(minute*perMinute, set)
	})
}

// point is a set with its time, in the units of its resolution.
type point struct {
	at  int64
	set Set
}

// merger merges points into periods, and calls f with these.
type merger struct {
	periods Periods
	f       func(start int64, set *Set)
	at      int64
	set     *Set // of the period that begins at at; nil: there is none yet
}

// add adds the next point, in ascending order.
func (m *merger) add(at int64, set *Set) {
	start := m.periods.start(at)
	if m.set == nil || m.at != start {
		m.end()
		m.at, m.set = start, &Set{}
	}
	m.set.Merge(set)
}

// end passes the last period to f.
func (m *merger) end() {
	if m.set != nil {
		m.f(m.at, m.set)
		m.set = nil
	}
}

// minutes is EachAndZeros for periods of whole minutes, in minutes.
func (s *Store) minutes(m Metric, unit string, p Periods, z Zeros, f func(start int64, set *Set)) error {
	now := Minute(s.kernel.Clock.Now())
	series := idOf(seriesKey(&m, unit))
	from, last := p.From, p.end()
	runs, err := s.steadyRuns(m, unit, max(from, now-Retention), min(last, now))
	if err != nil {
		return err
	}
	if first, behind := max(z.From, from, now-Retention), min(z.To, last, now); first < behind {
		runs = append(runs, steadyRun{from: first, to: behind})
	}
	last = min(last, s.furthest.Load()+1) // a range may end in the far future
	recent, err := s.recent(m, unit, series, false, from, last)
	if err != nil {
		return err
	}
	merged := merger{periods: p, f: f}
	filler := filler{runs: runs, now: now, merged: &merged}
	add := func(minute int64, set *Set) {
		if minute < now-Retention || p.Length%stepOf(minute, now) != 0 {
			return
		}
		filler.upTo(minute)
		filler.next = minute + stepOf(minute, now)
		merged.add(max(Kept(minute, now), from), set) // a coarse point may begin before
	}
	err = s.stored(series, max(from, now-Retention), last, func(minute int64, value []byte) error {
		for len(recent) > 0 && recent[0].at < minute {
			add(recent[0].at, &recent[0].set)
			recent = recent[1:]
		}
		if len(recent) > 0 && recent[0].at == minute {
			return nil // memory has all of it
		}
		if set, ok := readSet(s.kernel.Logger, value); ok {
			add(minute, &set)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range recent {
		add(recent[i].at, &recent[i].set)
	}
	filler.upTo(now)
	merged.end()
	return nil
}

// filler inserts the values of steady runs where there are no points.
type filler struct {
	runs   []steadyRun
	now    int64
	next   int64 // the minute after the last point
	merged *merger
}

// upTo adds the values of the runs before a minute.
func (l *filler) upTo(minute int64) {
	p := &l.merged.periods
	for len(l.runs) > 0 {
		r := &l.runs[0]
		for at, to := max(r.from, l.next), min(r.to, minute); at < to; {
			// Equal values of one period are one addition.
			end := min(to, p.start(at)+p.Length)
			if r.grows {
				end = at + 1
			}
			if p.Length%stepOf(at, l.now) == 0 {
				var set Set
				set.Add(r.at(at), float64(end-at))
				l.merged.add(max(Kept(at, l.now), p.From), &set)
			}
			at = end
		}
		if r.to > minute {
			return
		}
		l.runs = l.runs[1:]
	}
}

// readSet decodes a point of the store. A damaged one is skipped: it must not block the others.
func readSet(log *slog.Logger, value []byte) (set Set, ok bool) {
	set, err := decodeSet(value)
	if err != nil {
		logLeftOut(log, err)
	}
	return set, err == nil
}

func logLeftOut(log *slog.Logger, damage error) {
	log.Error("a datapoint is left out", "reason", damage.Error())
}

// Kept is the start of the interval that a minute is stored in at its age, whether it was
// summed up already or not.
func Kept(minute, now int64) int64 { return minute - minute%stepOf(minute, now) }

// stepOf is the length in minutes of that interval.
func stepOf(minute, now int64) int64 {
	for res := len(resolutions) - 1; res > 0; res-- {
		if minute < now-resolutions[res-1].keep {
			return resolutions[res].step
		}
	}
	return 1
}

// recent are copies of the points in memory of a series in [from, to), in order.
func (s *Store) recent(m Metric, unit string, series id, fine bool, from, to int64) ([]point, error) {
	found, ok := s.stripeOf(about{m.Scope, m.Namespace, m.Dimensions}).resources.Load(about{m.Scope, m.Namespace, m.Dimensions})
	if !ok {
		return nil, nil
	}
	points, damages, err := found.(*Resource).recent(m, unit, series, fine, from, to)
	for _, damage := range damages { // without a lock: requests add values under the resource's
		logLeftOut(s.kernel.Logger, damage)
	}
	return points, err
}

// recent is Store.recent of the resource; damages are why points of the store are left out.
func (r *Resource) recent(m Metric, unit string, series id, fine bool, from, to int64) (points []point, damages []error, err error) {
	r.store.guard.Lock(&r.mu)
	defer r.store.guard.Unlock(&r.mu)
	of := r.metric(m.Name, unit, fine)
	if of == nil {
		return nil, nil, nil
	}
	for i := range of.slots {
		sl := &of.slots[i]
		if sl.at < from || sl.at >= to {
			continue
		}
		damage, err := r.store.complete(of.key(series, sl.at), sl)
		if damage != nil {
			damages = append(damages, damage)
		}
		if err != nil {
			return nil, damages, err
		}
		points = append(points, point{sl.at, sl.set.Clone()})
	}
	slices.SortFunc(points, func(a, b point) int { return int(a.at - b.at) })
	return points, damages, nil
}

// stored calls f with the points in the store of a series in [from, to), in order.
func (s *Store) stored(series id, from, to int64, f func(minute int64, value []byte) error) (err error) {
	snapshot := s.reader.Snapshot()
	defer func() { err = errors.Join(err, snapshot.Close()) }()
	starts := [len(resolutions)]int64{}
	for res := range byte(len(resolutions) - 1) {
		if starts[res], err = readFloor(snapshot, res); err != nil {
			return err
		}
	}
	for res := len(resolutions) - 1; res >= 0; res-- {
		r := &resolutions[res]
		// A coarse point may begin before from and reach into it.
		start, upTo := max(starts[res], from-from%r.step), to
		if res > 0 {
			upTo = min(upTo, starts[res-1])
		}
		for bucket := start / r.bucket; start < upTo && bucket*r.bucket < upTo; bucket++ {
			low := max(start, bucket*r.bucket)
			high := min(upTo, (bucket+1)*r.bucket)
			if err := scan(snapshot, byte(res), series, low, high, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// scan calls f with the points of a series in [low, high), within a bucket.
func scan(r store.Reader, res byte, series id, low, high int64, f func(minute int64, value []byte) error) error {
	span := keyspace.Span{Lower: pointKey(res, series, low), Upper: append(pointKey(res, series, high-1), 0)}
	return store.Each(r, span, func(key, value []byte) error {
		if _, _, minute, ok := splitPoint(key); ok {
			return f(minute, value)
		}
		return nil
	})
}

// Units are the units in which a metric has values, in order.
func (s *Store) Units(m Metric) ([]string, error) {
	a := about{m.Scope, m.Namespace, m.Dimensions}
	found, ok := s.stripeOf(a).resources.Load(a)
	if !ok {
		return s.storedUnits(m)
	}
	r := found.(*Resource)
	s.guard.Lock(&r.mu)
	stored, known := r.units[m.Name]
	s.guard.Unlock(&r.mu)
	if !known { // without the lock, which those who add values wait for
		var err error
		if stored, err = s.storedUnits(m); err != nil {
			return nil, err
		}
	}
	s.guard.Lock(&r.mu)
	defer s.guard.Unlock(&r.mu)
	units := slices.Clone(stored) // what was written meanwhile is one of the resource's metrics
	for i := range r.metrics {
		if r.metrics[i].name == m.Name {
			units = append(units, r.metrics[i].unit)
		}
	}
	if !known && len(units) > 0 { // not for arbitrary requested names
		if r.units == nil {
			r.units = map[string][]string{}
		}
		r.units[unique.Make(m.Name).Value()] = stored
	}
	slices.Sort(units)
	return slices.Compact(units), nil
}

func (s *Store) storedUnits(m Metric) (units []string, err error) {
	of := metricKey(&m)
	err = store.Each(s.reader, keyspace.Prefix(of), func(key, _ []byte) error {
		units = append(units, string(key[len(of):]))
		return nil
	})
	return units, err
}

// Scopes are the scopes of metrics, in order. Each costs a seek.
func (s *Store) Scopes() (scopes []Scope, err error) {
	low, high := []byte{prefix, tagSeries}, []byte{prefix, tagSeries + 1}
	for {
		it, err := s.reader.Iter(low, high)
		if err != nil {
			return nil, err
		}
		if !it.Next() {
			return scopes, it.Close()
		}
		m, _, ok := splitSeries(it.Key())
		if err := it.Close(); err != nil || !ok {
			return scopes, err
		}
		scopes = append(scopes, m.Scope)
		low = namePrefix(m.Scope)
		low[len(low)-1]++
	}
}

// Filter selects metrics for List. Empty members select all.
type Filter struct {
	Scope
	Namespace, Name string
	Dimensions      []Dimension // that a metric must have; an empty value matches any
	Since           int64       // the earliest minute in which it was last seen
	Points          bool        // only those that were seen in a point, not steady ones
}

// Takes reports whether the filter accepts a metric, which must exist.
func (f *Filter) Takes(m *Metric) bool {
	return m.Scope == f.Scope && (f.Namespace == "" || f.Namespace == m.Namespace) && f.passes(m)
}

// Place is the position of a metric in a list, in the order of bytes.
func (m *Metric) Place() []byte { return metricKey(m) }

// MaxLooked is how many series one call of List reads at most, of which the filter may take none.
const MaxLooked = 20_000

// List calls f with the metrics that the filter accepts, after the place after, in order, each
// once, until f returns false. next is the place to continue from; nil: there are no others. If
// few match, it may end early with a next.
func (s *Store) List(filter Filter, after []byte, f func(m Metric) (taken bool)) (next []byte, err error) {
	if s.fresh.Load() { // there is a new series
		if _, err := s.flush(all); err != nil {
			return nil, err
		}
	}
	low := namePrefix(filter.Scope)
	if filter.Namespace != "" {
		low = namePrefix(filter.Scope, filter.Namespace)
		if filter.Name != "" {
			low = namePrefix(filter.Scope, filter.Namespace, filter.Name)
		}
	}
	high := append(bytes.Clone(low[:len(low)-1]), between+1)
	if bytes.Compare(after, low) > 0 {
		low = append(bytes.Clone(after), 0xff) // after all its units
	}
	if bytes.Compare(low, high) >= 0 {
		return nil, nil
	}
	it, err := s.reader.Iter(low, high)
	if err != nil {
		return nil, err
	}
	var place, taken []byte // of the last series read, and of the last metric taken
	for looked := 0; it.Next(); looked++ {
		key := it.Key()
		if looked == MaxLooked {
			return place, it.Close()
		}
		of := key[:bytes.LastIndexByte(key, between)+1]
		m, unit, ok := splitSeries(key)
		if ok && !bytes.Equal(of, taken) && s.passes(&filter, &m, unit, it.Value()) {
			if !f(m) {
				return place, it.Close()
			}
			taken = append(taken[:0], of...)
		}
		place = append(place[:0], of...)
	}
	return nil, it.Close()
}

func (s *Store) passes(f *Filter, m *Metric, unit string, seen []byte) bool {
	return f.passes(m) && (seenIn(seen) >= f.Since || !f.Points && s.stands(m, unit))
}

func (f *Filter) passes(m *Metric) bool {
	if f.Name != "" && m.Name != f.Name {
		return false
	}
	if len(f.Dimensions) == 0 {
		return true
	}
	has := SplitDimensions(m.Dimensions)
	for _, want := range f.Dimensions {
		if !slices.ContainsFunc(has, func(d Dimension) bool {
			return d.Name == want.Name && (want.Value == "" || d.Value == want.Value)
		}) {
			return false
		}
	}
	return true
}
