// Package dedup remembers which messages a FIFO queue or topic has accepted recently, so
// that a duplicate is dropped.
//
// The records are on disk in buckets of a minute, which are dropped whole: messages that were
// accepted one by one have a record each, by its id, and those that were accepted together have
// one for all of them, a batch. A Window has a filter of the former and an index of the latter,
// so that a new message, as nearly all are, needs no read. It does no I/O.
package dedup

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math/bits"
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

// Window knows what the buckets of a queue's latest messages have. The zero value: nothing.
type Window struct{ buckets map[int64]*bucket }

// bucket is what is known of a minute.
type bucket struct {
	single  filter // of messages with a record each
	batched places // of the others
	unknown bool   // single is not complete
}

// Candidate is a record that a message may have.
type Candidate struct {
	Minute int64
	// Batched: it is that of a batch, which begins with the message of the sequence number First.
	Batched bool
	First   uint64
	// Added: the message was added to the window, so that the record may be too young to be in the
	// store.
	Added bool
}

// Candidates are the records that must be read for an id, latest first.
func (w *Window) Candidates(now int64, id ID) []Candidate {
	var found []Candidate
	for m := Minute(now); m >= Minute(now-Life) && m >= 0; m-- {
		b := w.buckets[m]
		if b == nil {
			continue
		}
		if added := b.single.has(id); added || b.unknown {
			found = append(found, Candidate{Minute: m, Added: added})
		}
		for first := range b.batched.of(id) {
			found = append(found, Candidate{Minute: m, Batched: true, First: first, Added: true})
		}
	}
	return found
}

// Add adds a message with a record of its own.
func (w *Window) Add(minute int64, id ID) { w.bucket(minute).single.add(id) }

// TakesBatch reports whether a bucket may get another batch, whose first message has the sequence
// number first. Its index is bounded, and so is how far the numbers in it are apart; they have to
// grow, which they do unless a repair has lost the last one.
func (w *Window) TakesBatch(minute int64, first uint64) bool {
	b := w.buckets[minute]
	return b == nil || b.batched.takes(first)
}

// AddBatched adds a message of a batch, which TakesBatch is true of before its first one.
func (w *Window) AddBatched(minute int64, first uint64, id ID) {
	w.bucket(minute).batched.add(id, first)
}

// Unknown notes that a bucket may have records of single messages that were never added here.
func (w *Window) Unknown(minute int64) { w.bucket(minute).unknown = true }

// bucket is that of a minute. A new one takes the place of those that have ended.
func (w *Window) bucket(minute int64) *bucket {
	if b := w.buckets[minute]; b != nil {
		return b
	}
	if w.buckets == nil {
		w.buckets = map[int64]*bucket{}
	}
	w.dropBefore(minute - Minute(Life))
	b := &bucket{}
	if last := w.before(minute); last != nil {
		b.single.capacity, b.batched.capacity = last.single.len(), last.batched.used
	}
	w.buckets[minute] = b
	return b
}

// Expire drops what has ended.
func (w *Window) Expire(now int64) { w.dropBefore(Minute(now - Life)) }

// Len is how many buckets it has.
func (w *Window) Len() int { return len(w.buckets) }

func (w *Window) dropBefore(minute int64) {
	maps.DeleteFunc(w.buckets, func(m int64, _ *bucket) bool { return m < minute })
}

// filter is a blocked Bloom filter that grows: by parts, each four times as large as the one
// before. All bits of an id are in one block, which is a cache line, so that to look into a
// part costs one access to memory.
type filter struct {
	parts    []part
	capacity int // of the first part, in ids
}

type part struct {
	blocks          []block
	capacity, taken int
}

type block [blockWords]uint64

const (
	firstCapacity = 64 // at least
	bitsPerID     = 24
	probes        = 10 // with 24 bits an id: a false positive in 16,000 in a full part
	growth        = 4
	bitsPerWord   = 64
	blockWords    = 8
	blockBits     = blockWords * bitsPerWord
)

// before is the latest bucket before a minute, which is likely to get as many ids; nil: there is
// none. A filter in one part is looked into once, instead of once for each step of its growth.
func (w *Window) before(minute int64) *bucket {
	for m := minute - 1; m >= minute-Minute(Life); m-- {
		if b := w.buckets[m]; b != nil {
			return b
		}
	}
	return nil
}

// len is how many ids were added.
func (f *filter) len() (n int) {
	for i := range f.parts {
		n += f.parts[i].taken
	}
	return n
}

func (f *filter) add(id ID) {
	n := len(f.parts)
	if n == 0 || f.parts[n-1].taken == f.parts[n-1].capacity {
		capacity := max(f.capacity, firstCapacity)
		if n > 0 {
			capacity = growth * f.parts[n-1].capacity
		}
		f.parts = append(f.parts, part{blocks: make([]block, (capacity*bitsPerID+blockBits-1)/blockBits), capacity: capacity})
		n++
	}
	p := &f.parts[n-1]
	p.taken++
	b := p.block(id)
	for i := range probes {
		word, bit := place(id, i)
		b[word] |= bit
	}
}

func (f *filter) has(id ID) bool {
	for i := range f.parts {
		if f.parts[i].has(id) {
			return true
		}
	}
	return false
}

func (p *part) has(id ID) bool {
	b := p.block(id)
	for i := range probes {
		if word, bit := place(id, i); b[word]&bit == 0 {
			return false
		}
	}
	return true
}

// block is where the bits of an id are, which is a hash already: its first bits choose.
func (p *part) block(id ID) *block {
	i, _ := bits.Mul64(binary.BigEndian.Uint64(id[:8]), uint64(len(p.blocks)))
	return &p.blocks[i]
}

// place is the i-th bit of an id in its block: nine bits of the hash for each, of its second
// half and then of the end of its first.
func place(id ID, i int) (word int, bit uint64) {
	const each = 7 // in a half
	half := id[8:]
	if i >= each {
		half, i = id[:8], i-each
	}
	at := binary.BigEndian.Uint64(half) >> (9 * i) % blockBits
	return int(at / bitsPerWord), 1 << (at % bitsPerWord)
}
