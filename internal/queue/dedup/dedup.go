// Package dedup remembers which messages a FIFO queue or topic has accepted of
// late, so that one that is sent twice is kept once.
//
// The records stand on disk in buckets of a minute, which are dropped whole. A
// Window holds filters over the buckets of this process, so that what is new,
// as nearly everything is, needs no read. It does no I/O.
package dedup

import (
	"crypto/sha256"
	"encoding/binary"
)

// Life is how long a message is remembered, in milliseconds. Source: the
// deduplication interval of SQS FIFO queues.
const Life = int64(5 * minute)

const minute = 60_000 // ms

// ID stands for a deduplication id within its scope.
type ID [16]byte

// NewID is the ID of a MessageDeduplicationId. The group is empty where the
// scope is the whole queue.
func NewID(group, id string) ID {
	h := sha256.New()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(group)))
	h.Write(n[:])
	h.Write([]byte(group))
	h.Write([]byte(id))
	return ID(h.Sum(nil)[:len(ID{})])
}

// Minute is the bucket of a time in epoch milliseconds.
func Minute(ms int64) int64 { return ms / minute }

// Window is what memory knows of a queue's latest messages. The zero value
// knows nothing of the time before its first Add.
type Window struct {
	began   int64 // the minute of the first Add; buckets up to it may hold more than filters say
	filters map[int64]*filter
}

// Candidate is a bucket in which a message may have been remembered.
type Candidate struct {
	Minute int64
	// Added: this process has added it, so that the record may not be in the store yet.
	Added bool
}

// Candidates are the buckets that must be looked into for an id, latest first.
func (w *Window) Candidates(now int64, id ID) []Candidate {
	var found []Candidate
	for m := Minute(now); m >= Minute(now-Life) && m >= 0; m-- {
		added := w.filters[m] != nil && w.filters[m].has(id)
		if added || m <= w.began || w.filters == nil {
			found = append(found, Candidate{Minute: m, Added: added})
		}
	}
	return found
}

// Add notes that a message was accepted.
func (w *Window) Add(now int64, id ID) {
	m := Minute(now)
	if w.filters == nil {
		w.filters, w.began = map[int64]*filter{}, m
	}
	f := w.filters[m]
	if f == nil {
		for old := range w.filters {
			if old < Minute(now-Life) {
				delete(w.filters, old)
			}
		}
		f = &filter{}
		w.filters[m] = f
	}
	f.add(id)
}

// filter is a Bloom filter that grows: a few more parts, each four times as
// large as the one before.
type filter struct{ parts []part }

type part struct {
	bits        []uint64
	room, taken int
}

const (
	firstRoom   = 64
	bitsPerID   = 16
	probes      = 8 // with 16 bits an id: one in a thousand is found by mistake in a part
	growth      = 4
	bitsPerWord = 64
)

func (f *filter) add(id ID) {
	n := len(f.parts)
	if n == 0 || f.parts[n-1].taken == f.parts[n-1].room {
		room := firstRoom
		if n > 0 {
			room = growth * f.parts[n-1].room
		}
		f.parts = append(f.parts, part{bits: make([]uint64, room*bitsPerID/bitsPerWord), room: room})
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
