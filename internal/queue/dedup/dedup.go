// Package dedup remembers which messages a FIFO queue or topic has accepted recently, so
// that a duplicate is dropped.
//
// The records are on disk in buckets of a minute, which are dropped whole. A Window has
// filters of the buckets, so that a new message, as nearly all are, needs no read. It does
// no I/O.
package dedup

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
)

// Life is how long a message is remembered, in milliseconds. Source: the
// deduplication interval of SQS FIFO queues.
const Life = int64(5 * minute)

const minute = 60_000 // ms

// ID is a hash of a deduplication id within its scope.
type ID [16]byte

// NewID is the ID of a MessageDeduplicationId. The group is empty where the
// scope is the whole queue.
func NewID(group, id string) ID {
	var backing [8 + 128 + 128]byte // as long as SQS allows
	text := binary.BigEndian.AppendUint64(backing[:0], uint64(len(group)))
	sum := sha256.Sum256(append(append(text, group...), id...))
	return ID(sum[:len(ID{})])
}

// Minute is the bucket of a time in epoch milliseconds.
func Minute(ms int64) int64 { return ms / minute }

// Window has a filter for each bucket of a queue's latest messages. The zero value: there are
// none.
type Window struct {
	filters map[int64]*filter
	unknown map[int64]struct{} // buckets whose filters are not complete
}

// Candidate is a bucket in which a message may have been remembered.
type Candidate struct {
	Minute int64
	// Added: a filter has it, so that the record may be too young to be in the store.
	Added bool
}

// Candidates are the buckets that must be read for an id, latest first.
func (w *Window) Candidates(now int64, id ID) []Candidate {
	var found []Candidate
	for m := Minute(now); m >= Minute(now-Life) && m >= 0; m-- {
		added := w.filters[m] != nil && w.filters[m].has(id)
		if _, unknown := w.unknown[m]; added || unknown {
			found = append(found, Candidate{Minute: m, Added: added})
		}
	}
	return found
}

// Add adds a message to the filter of a bucket, and drops the filters of buckets that have
// ended.
func (w *Window) Add(minute int64, id ID) {
	f := w.filters[minute]
	if f == nil {
		if w.filters == nil {
			w.filters = map[int64]*filter{}
		}
		over := func(old int64) bool { return old < minute-Minute(Life) }
		maps.DeleteFunc(w.filters, func(old int64, _ *filter) bool { return over(old) })
		maps.DeleteFunc(w.unknown, func(old int64, _ struct{}) bool { return over(old) })
		f = &filter{}
		w.filters[minute] = f
	}
	f.add(id)
}

// Unknown notes that a bucket may have records that were never added here.
func (w *Window) Unknown(minute int64) {
	if w.unknown == nil {
		w.unknown = map[int64]struct{}{}
	}
	w.unknown[minute] = struct{}{}
}

// filter is a Bloom filter that grows: a few more parts, each four times as
// large as the one before.
type filter struct{ parts []part }

type part struct {
	bits            []uint64
	capacity, taken int
}

const (
	firstCapacity = 64
	bitsPerID     = 24
	probes        = 10 // with 24 bits an id: a false positive in 40,000 in each part
	growth        = 4
	bitsPerWord   = 64
)

func (f *filter) add(id ID) {
	n := len(f.parts)
	if n == 0 || f.parts[n-1].taken == f.parts[n-1].capacity {
		capacity := firstCapacity
		if n > 0 {
			capacity = growth * f.parts[n-1].capacity
		}
		f.parts = append(f.parts, part{bits: make([]uint64, capacity*bitsPerID/bitsPerWord), capacity: capacity})
		n++
	}
	p := &f.parts[n-1]
	p.taken++
	p.probe(id, func(word, bit uint64) bool { p.bits[word] |= bit; return true })
}

func (f *filter) has(id ID) bool {
	for i := range f.parts {
		p := &f.parts[i]
		if p.probe(id, func(word, bit uint64) bool { return p.bits[word]&bit != 0 }) {
			return true
		}
	}
	return false
}

// probe visits the bits of an id while f returns true. The id is a hash already.
func (p *part) probe(id ID, f func(word, bit uint64) bool) bool {
	a, b := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])|1
	for range probes {
		i := a % uint64(len(p.bits)*bitsPerWord)
		if !f(i/bitsPerWord, 1<<(i%bitsPerWord)) {
			return false
		}
		a += b
	}
	return true
}
