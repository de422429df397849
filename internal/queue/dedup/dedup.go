// Package dedup remembers which messages a FIFO queue or topic has accepted of
// late, so that one that is sent twice is kept once.
//
// The records stand on disk in buckets of a minute, which are dropped whole; one has
// all that a command accepted. A Window holds an index of the ids in each bucket, so
// that what is new, as nearly everything is, needs no read, and the original of what
// is not needs one. It does no I/O.
package dedup

import (
	"crypto/sha256"
	"encoding/binary"
	"math/bits"
	"slices"
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
	var room [8 + 128 + 128]byte // as much as a queue takes
	text := binary.BigEndian.AppendUint64(room[:0], uint64(len(group)))
	sum := sha256.Sum256(append(append(text, group...), id...))
	return ID(sum[:len(ID{})])
}

// Minute is the bucket of a time in epoch milliseconds.
func Minute(ms int64) int64 { return ms / minute }

// Window is what memory knows of a queue's latest messages. The zero value says that
// there are none.
type Window struct{ buckets []*bucket } // few, the latest first

// bucket is what was accepted in a minute.
type bucket struct {
	minute int64
	next   uint32 // the number of the record that comes next
	single bool   // there may also be records of a single message, which have no numbers
	index  index
}

// Candidate is a record that may have a message.
type Candidate struct {
	Minute int64
	Record uint32 // its number in the bucket
	Single bool   // it is the one that is only of this message, if there is any
}

// Candidates are the records that must be looked into for an id, latest first.
func (w *Window) Candidates(now int64, id ID) (found []Candidate) {
	for _, b := range w.buckets {
		if b.minute > Minute(now) || b.minute < Minute(now-Life) {
			continue
		}
		from := len(found)
		found = b.index.find(id, found)
		for i := range found[from:] {
			found[from+i].Minute = b.minute
		}
		if b.single {
			found = append(found, Candidate{Minute: b.minute, Single: true})
		}
	}
	return found
}

// Next is the number of the record that comes next in a bucket.
func (w *Window) Next(minute int64) uint32 { return w.bucket(minute).next }

// Add notes that a record of a bucket has a message, and forgets the buckets that are
// over.
func (w *Window) Add(minute int64, record uint32, id ID) {
	b := w.bucket(minute)
	b.next = max(b.next, record+1)
	b.index.add(id, record)
}

// Single notes that a bucket may have records of a single message.
func (w *Window) Single(minute int64) { w.bucket(minute).single = true }

func (w *Window) bucket(minute int64) *bucket {
	for _, b := range w.buckets {
		if b.minute == minute {
			return b
		}
	}
	b := &bucket{minute: minute}
	w.buckets = slices.DeleteFunc(w.buckets, func(old *bucket) bool { return old.minute < minute-Minute(Life) })
	at, _ := slices.BinarySearchFunc(w.buckets, minute, func(old *bucket, minute int64) int { return int(minute - old.minute) })
	w.buckets = slices.Insert(w.buckets, at, b)
	return b
}

// index finds the records of ids: a hash table with open addressing. An entry is the
// first bits of an id, which are those of a hash, and one more than its record's number;
// zero is none. Entries stand in the order of those bits but for collisions, so that
// growing walks through memory once.
type index struct {
	entries []uint64
	taken   int
}

const (
	recordBits = 26 // a million records a second
	tagBits    = 64 - recordBits
	firstSize  = 64
)

func tagOf(id ID) uint64 { return binary.BigEndian.Uint64(id[:8]) >> recordBits }

// home is where the search for a tag begins.
func (x *index) home(tag uint64) int {
	hi, _ := bits.Mul64(tag<<recordBits, uint64(len(x.entries)))
	return int(hi) //nolint:gosec // it is below the length
}

func (x *index) add(id ID, record uint32) {
	if size := len(x.entries); x.taken >= size-size/4 {
		old := x.entries
		x.entries = make([]uint64, max(firstSize, size+size/2))
		for _, e := range old {
			if e != 0 {
				x.put(e)
			}
		}
	}
	x.taken++
	x.put(tagOf(id)<<recordBits | (uint64(record)+1)&(1<<recordBits-1))
}

func (x *index) put(e uint64) {
	at := x.home(e >> recordBits)
	for x.entries[at] != 0 {
		if at++; at == len(x.entries) {
			at = 0
		}
	}
	x.entries[at] = e
}

// find appends the records that may have an id.
func (x *index) find(id ID, found []Candidate) []Candidate {
	if x.taken == 0 {
		return found
	}
	tag := tagOf(id)
	for at := x.home(tag); x.entries[at] != 0; {
		if e := x.entries[at]; e>>recordBits == tag {
			found = append(found, Candidate{Record: uint32(e&(1<<recordBits-1)) - 1})
		}
		if at++; at == len(x.entries) {
			at = 0
		}
	}
	return found
}
