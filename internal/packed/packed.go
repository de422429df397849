// Package packed has a map for many small entries that are rarely read: it stores them in a few
// long pieces of memory without pointers, which the garbage collector skips, with an overhead
// of some 20 bytes per entry.
package packed

import (
	"encoding/binary"
	"hash/maphash"
	"iter"
)

// Map maps keys to values. It copies both. The zero value is empty and ready to use. It is
// not safe for concurrent use.
type Map struct {
	seed  maphash.Seed
	slots []uint64 // position of an entry, plus 1; 0: none. Linear probing
	count int

	pieces [][]byte // entries, one after the other
	dead   []int    // of each piece, the bytes of removed entries
	last   int      // the piece that gets the next entry
	empty  []int    // pieces without entries
}

const (
	pieceBits  = 15             // of the position of an entry in its piece
	pieceBytes = 1 << pieceBits // of a piece, unless it has a single longer entry
	minSlots   = 16             // a power of two
)

// Len counts the entries.
func (m *Map) Len() int { return m.count }

// Get finds the value of a key, which is valid until the next change and must not be changed;
// ok: it exists.
func (m *Map) Get(key []byte) (value []byte, ok bool) {
	slot, ok := m.find(key)
	if !ok {
		return nil, false
	}
	_, value, _ = m.entry(m.slots[slot] - 1)
	return value, true
}

// Put sets the value of a key.
func (m *Map) Put(key, value []byte) {
	m.Delete(key)
	if 3*(m.count+1) > 2*len(m.slots) {
		m.resize(max(minSlots, 2*len(m.slots)))
	}
	slot, _ := m.find(key)
	m.slots[slot] = m.add(key, value) + 1
	m.count++
}

// Delete removes a key; ok: it existed.
func (m *Map) Delete(key []byte) (ok bool) {
	slot, ok := m.find(key)
	if !ok {
		return false
	}
	at := m.slots[slot] - 1
	_, _, size := m.entry(at)
	m.free(slot)
	m.count--
	piece := int(at >> pieceBits)
	if m.dead[piece] += size; 2*m.dead[piece] >= len(m.pieces[piece]) {
		m.compact(piece)
	}
	if len(m.slots) > minSlots && 8*m.count < len(m.slots) {
		m.resize(len(m.slots) / 2)
	}
	return true
}

// All iterates over the entries in no order; none may be changed meanwhile.
func (m *Map) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		for _, at := range m.slots {
			if at == 0 {
				continue
			}
			if key, value, _ := m.entry(at - 1); !yield(key, value) {
				return
			}
		}
	}
}

// home is the first slot of a key.
func (m *Map) home(key []byte) int { return int(maphash.Bytes(m.seed, key)) & (len(m.slots) - 1) }

// find is the slot of a key, or the free one for it.
func (m *Map) find(key []byte) (slot int, ok bool) {
	if len(m.slots) == 0 {
		return 0, false
	}
	for slot = m.home(key); m.slots[slot] != 0; slot = m.next(slot) {
		if have, _, _ := m.entry(m.slots[slot] - 1); string(have) == string(key) {
			return slot, true
		}
	}
	return slot, false
}

func (m *Map) next(slot int) int { return (slot + 1) & (len(m.slots) - 1) }

// free empties a slot, and moves up the entries that were probed past it.
func (m *Map) free(slot int) {
	mask := len(m.slots) - 1
	for at := m.next(slot); m.slots[at] != 0; at = m.next(at) {
		key, _, _ := m.entry(m.slots[at] - 1)
		if home := m.home(key); (at-home)&mask >= (at-slot)&mask {
			m.slots[slot], slot = m.slots[at], at
		}
	}
	m.slots[slot] = 0
}

func (m *Map) resize(n int) {
	if m.slots == nil {
		m.seed = maphash.MakeSeed()
	}
	old := m.slots
	m.slots = make([]uint64, n)
	for _, at := range old {
		if at != 0 {
			key, _, _ := m.entry(at - 1)
			slot, _ := m.find(key)
			m.slots[slot] = at
		}
	}
}

// entry decodes the entry at a position, and returns its size in bytes.
func (m *Map) entry(at uint64) (key, value []byte, size int) {
	p := m.pieces[at>>pieceBits][at&(pieceBytes-1):]
	keys, n := binary.Uvarint(p)
	values, more := binary.Uvarint(p[n:])
	n += more
	size = n + int(keys) + int(values)
	return p[n : n+int(keys) : n+int(keys)], p[n+int(keys) : size : size], size
}

// add appends an entry, and returns its position.
func (m *Map) add(key, value []byte) (at uint64) {
	var backing [2 * binary.MaxVarintLen64]byte
	head := binary.AppendUvarint(binary.AppendUvarint(backing[:0], uint64(len(key))), uint64(len(value)))
	size := len(head) + len(key) + len(value)
	if len(m.pieces) == 0 || len(m.pieces[m.last]) > 0 && len(m.pieces[m.last])+size > pieceBytes {
		m.begin()
	}
	p := m.pieces[m.last]
	if whole := len(p) + size; whole > cap(p) {
		p = append(make([]byte, 0, max(whole, min(2*cap(p), pieceBytes))), p...)
	}
	at = uint64(m.last)<<pieceBits | uint64(len(p))
	m.pieces[m.last] = append(append(append(p, head...), key...), value...)
	return at
}

// begin makes the next entry go into another piece.
func (m *Map) begin() {
	if n := len(m.empty); n > 0 {
		m.last, m.empty = m.empty[n-1], m.empty[:n-1]
		return
	}
	m.last = len(m.pieces)
	m.pieces, m.dead = append(m.pieces, nil), append(m.dead, 0)
}

// compact rewrites the entries of a piece without removed ones.
func (m *Map) compact(piece int) {
	old := m.pieces[piece]
	type moved struct {
		slot int
		at   uint64
	}
	var live []moved
	for offset := 0; offset < len(old); {
		at := uint64(piece)<<pieceBits | uint64(offset)
		key, _, size := m.entry(at)
		if slot, ok := m.find(key); ok && m.slots[slot] == at+1 {
			live = append(live, moved{slot, at})
		}
		offset += size
	}
	if piece == m.last {
		m.begin()
	}
	for _, e := range live {
		key, value, _ := m.entry(e.at)
		m.slots[e.slot] = m.add(key, value) + 1
	}
	m.pieces[piece], m.dead[piece] = nil, 0
	m.empty = append(m.empty, piece)
}
