// Package recent has what the metrics that are made of log events need to know of the events before.
package recent

import (
	"hash/maphash"
	"slices"
	"sync"

	"godwit.dev/godwit/internal/monitor/metrics"
)

// ID identifies a filter.
type ID struct {
	Group uint64
	Name  string
}

// maxLast bounds how many filters Minutes knows, and maxMinutes how many minutes of each.
const (
	maxLast    = 10_000
	maxMinutes = 128
)

// Minutes has, for filters with a default value, the minutes of which there were events, so that a
// minute gets the default at most once, and not behind values. Clients may be late, and their clocks
// ahead: the minutes come in any order. It is in memory alone.
type Minutes struct {
	mu sync.Mutex
	of map[ID]*minutes
}

// minutes are the latest that were seen, in ascending order; those up to before were, perhaps.
type minutes struct {
	seen   []int64
	before int64
}

// First reports whether a minute, in minutes since the epoch, was not seen before.
func (k *Minutes) First(f ID, minute int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.of[f]
	if m == nil {
		if k.of == nil || len(k.of) >= maxLast {
			k.of = map[ID]*minutes{}
		}
		m = &minutes{before: -1}
		k.of[f] = m
	}
	i, seen := slices.BinarySearch(m.seen, minute)
	if seen || minute <= m.before {
		return false
	}
	m.seen = slices.Insert(m.seen, i, minute)
	if len(m.seen) > maxMinutes {
		m.before = m.seen[0]
		m.seen = slices.Delete(m.seen, 0, 1)
	}
	return true
}

// MaxPairs is how many different names and values of dimensions a filter may make metrics of in an hour.
// Source: the API reference, "PutMetricFilter", by which CloudWatch Logs may disable a filter then.
const MaxPairs = 1000

// maxFound bounds how many things, of all filters, Found knows, some 40 bytes each.
const maxFound = 1_000_000

// Found has what was found in events in an hour, so that what is written into logs does not make
// metrics without end: the names and values of dimensions by filter, and embedded metrics by group. It is
// in memory alone.
type Found struct {
	mu    sync.Mutex
	hour  int64 // since 1970
	known int   // of all filters
	of    map[ID]*finds
}

// finds is what a filter found.
type finds struct {
	seen   map[uint64]struct{} // hashes
	warned bool
}

// Seed is of the hashes of what is found.
var Seed = maphash.MakeSeed()

// Pairs are the hashes of dimensions.
func Pairs(dimensions []metrics.Dimension) []uint64 {
	hashes := make([]uint64, len(dimensions))
	for i, d := range dimensions {
		hashes[i] = maphash.Comparable(Seed, d)
	}
	return hashes
}

// Admit reports whether a filter that finds up to most things in an hour may make a value of some of them,
// of which these are the hashes. first says that it is the first that it may not.
func (r *Found) Admit(f ID, hour int64, most int, hashes ...uint64) (ok, first bool) {
	if len(hashes) == 0 {
		return true, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.of == nil || r.hour != hour || r.known >= maxFound {
		r.of, r.hour, r.known = map[ID]*finds{}, hour, 0
	}
	p := r.of[f]
	if p == nil {
		p = &finds{seen: map[uint64]struct{}{}}
		r.of[f] = p
	}
	var fresh []uint64
	for _, h := range hashes {
		if _, ok := p.seen[h]; !ok {
			fresh = append(fresh, h)
		}
	}
	if len(p.seen)+len(fresh) > most {
		first, p.warned = !p.warned, true
		return false, first
	}
	for _, h := range fresh {
		p.seen[h] = struct{}{}
	}
	r.known += len(fresh)
	return true, false
}
