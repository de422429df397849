// Package packed has a map for many small things that are rarely looked at: it holds
// them in a few long pieces of memory without pointers, which the garbage collector
// passes at no cost, and takes some 20 bytes for each beside its key and its value.
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
	slots []uint64 // where an entry is, and 1; 0: none. Probed one after the other
	count int

	pieces [][]byte // entries, one after the other
	dead   []int    // of each piece, the bytes of entries that are no more
	last   int      // the piece that takes the next one
	empty  []int    // pieces that have none
}

const (
	pieceBits  = 15             // of the place of an entry in its piece
	pieceBytes = 1 << pieceBits // of a piece, unless its only entry is longer
	minSlots   = 16             // a power of two
)

// Len counts the entries.
func (m *Map) Len() int { return m.count }

// Get finds the value of a key, which is valid until the next change and not to be
// changed; ok: there is one.
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

// Delete removes a key; ok: it was there.
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

// All walks the entries in no order, while none is changed.
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

// home is where the probing for a key begins.
func (m *Map) home(key []byte) int { return int(maphash.Bytes(m.seed, key)) & (len(m.slots) - 1) }

// find is the slot of a key, or the free one that it would have.
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

// free empties a slot, and moves up what was probed past it.
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

// entry reads the entry at a place, and how many bytes it takes.
func (m *Map) entry(at uint64) (key, value []byte, size int) {
	p := m.pieces[at>>pieceBits][at&(pieceBytes-1):]
	keys, n := binary.Uvarint(p)
	values, more := binary.Uvarint(p[n:])
	n += more
	size = n + int(keys) + int(values)
	return p[n : n+int(keys) : n+int(keys)], p[n+int(keys) : size : size], size
}

// add writes an entry, and gives its place.
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

// begin has the next entry written into another piece.
func (m *Map) begin() {
	if n := len(m.empty); n > 0 {
		m.last, m.empty = m.empty[n-1], m.empty[:n-1]
		return
	}
	m.last = len(m.pieces)
	m.pieces, m.dead = append(m.pieces, nil), append(m.dead, 0)
}

// compact writes the entries of a piece again, without those that are no more.
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
