package dedup

import (
	"encoding/binary"
	"iter"
)

// places are in which batches the ids of a bucket are: a hash table with linear probing.
type places struct {
	// slots have 32 bits of an id's hash, then how far its batch is behind the bucket's first one,
	// plus one. 0: free.
	slots    []uint64
	used     int
	capacity int    // to begin with, in ids
	base     uint64 // the first batch
	last     uint64 // the latest one
}

// maxBatched is how many ids of a bucket are in batches at most. What is accepted beyond has records
// of its own, so that the index of a queue is bounded by 130 MB, and is loaded within a second.
const maxBatched = 1 << 20

// offsetBits is how many bits of a slot are the batch's: more messages than a minute has.
const offsetBits = 32

// takes reports whether another batch has a place: behind the others, and not too far.
func (p *places) takes(first uint64) bool {
	return p.used == 0 || p.used < maxBatched && first > p.last && first-p.base < 1<<offsetBits-1
}

func (p *places) add(id ID, first uint64) {
	switch {
	case p.slots == nil:
		p.base = first
		p.slots = make([]uint64, max(p.capacity, firstCapacity)*4/3+1)
	case p.used >= len(p.slots)*3/4:
		old := p.slots
		p.slots = make([]uint64, 2*len(old))
		for _, s := range old {
			if s != 0 {
				p.put(s)
			}
		}
	}
	p.used++
	p.last = first
	p.put(uint64(binary.BigEndian.Uint32(id[:]))<<offsetBits | (first - p.base + 1))
}

func (p *places) put(slot uint64) {
	i := p.home(slot >> offsetBits)
	for p.slots[i] != 0 {
		i = p.next(i)
	}
	p.slots[i] = slot
}

// home is where the slot of a hash is looked for first.
func (p *places) home(hash uint64) int { return int(hash * uint64(len(p.slots)) >> offsetBits) }

func (p *places) next(i int) int {
	if i++; i < len(p.slots) {
		return i
	}
	return 0
}

// of are the batches that may have an id: hardly ever one that has not, as 32 bits of its hash are
// compared.
func (p *places) of(id ID) iter.Seq[uint64] {
	return func(yield func(first uint64) bool) {
		if p.used == 0 {
			return
		}
		hash := uint64(binary.BigEndian.Uint32(id[:]))
		for i := p.home(hash); p.slots[i] != 0; i = p.next(i) {
			if s := p.slots[i]; s>>offsetBits == hash && !yield(p.base+s<<offsetBits>>offsetBits-1) {
				return
			}
		}
	}
}
