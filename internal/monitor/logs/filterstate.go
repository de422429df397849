package logs

import (
	"hash/maphash"
	"sync"

	"godwit.dev/godwit/internal/monitor/metrics"
)

// filterID identifies a filter.
type filterID struct {
	group uint64
	name  string
}

// lastMinutes has, for filters with a default value, the latest minute that has a value, so that a
// minute gets the default at most once, and not behind values. It is in memory alone.
type lastMinutes struct {
	mu sync.Mutex
	of map[filterID]int64
}

// maxLast bounds how many filters lastMinutes knows.
const maxLast = 10_000

// first reports whether a minute, in minutes since the epoch, is later than all before it.
func (m *lastMinutes) first(f filterID, minute int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last, ok := m.of[f]; ok && last >= minute {
		return false
	}
	if m.of == nil || len(m.of) >= maxLast {
		m.of = map[filterID]int64{}
	}
	m.of[f] = minute
	return true
}

// maxPairs is how many different names and values of dimensions a filter may make metrics of in an hour.
// Source: the API reference, "PutMetricFilter", by which CloudWatch Logs may disable a filter then.
const maxPairs = 1000

// maxKnownPairs bounds how many pairs, of all filters, recentPairs knows, some 40 bytes each.
const maxKnownPairs = 1_000_000

// recentPairs has the names and values of dimensions that filters found in an hour, so that what is
// written into logs does not make metrics without end. It is in memory alone.
type recentPairs struct {
	mu    sync.Mutex
	hour  int64 // since 1970
	known int   // of all filters
	of    map[filterID]*pairs
}

// pairs are those of a filter.
type pairs struct {
	seen   map[uint64]struct{} // hashes
	warned bool
}

var pairSeed = maphash.MakeSeed()

// admit reports whether a filter may make a value with dimensions in an hour. first says that it is the
// first that it may not.
func (r *recentPairs) admit(f filterID, hour int64, dimensions []metrics.Dimension) (ok, first bool) {
	if len(dimensions) == 0 {
		return true, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || r.hour != hour || r.known >= maxKnownPairs {
		r.of, r.hour, r.known = map[filterID]*pairs{}, hour, 0
	}
	p := r.of[f]
	if p == nil {
		p = &pairs{seen: map[uint64]struct{}{}}
		r.of[f] = p
	}
	var fresh []uint64
	for _, d := range dimensions {
		h := maphash.Comparable(pairSeed, d)
		if _, ok := p.seen[h]; !ok {
			fresh = append(fresh, h)
		}
	}
	if len(p.seen)+len(fresh) > maxPairs {
		first, p.warned = !p.warned, true
		return false, first
	}
	for _, h := range fresh {
		p.seen[h] = struct{}{}
	}
	r.known += len(fresh)
	return true, false
}
