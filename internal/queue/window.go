package queue

import "slices"

// windowSize is how many messages of an order memory holds at most.
var windowSize = 512 // a variable so that tests reach its edges with few messages

// ref is a fresh message in memory.
type ref struct {
	seq  uint64
	sent int64
}

// freshWindow is the beginning of the order of fresh messages.
type freshWindow struct {
	refs []ref
	from int // refs before it have been taken
}

func (w *freshWindow) len() int { return len(w.refs) - w.from }

func (w *freshWindow) first() ref { return w.refs[w.from] }

func (w *freshWindow) last() ref { return w.refs[len(w.refs)-1] }

func (w *freshWindow) pop() {
	w.from++
	if w.from == len(w.refs) {
		w.from = 0
		if cap(w.refs) > 64 {
			w.refs = nil // an empty queue holds no memory
		}
		w.refs = w.refs[:0]
	}
}

func (w *freshWindow) push(r ref) {
	if w.from > 0 && len(w.refs) == cap(w.refs) {
		w.refs = append(w.refs[:0], w.refs[w.from:]...)
		w.from = 0
	}
	w.refs = append(w.refs, r)
}

// remove takes out a message from anywhere in the window, if it is in it.
func (w *freshWindow) remove(seq uint64) {
	live := w.refs[w.from:]
	i, found := slices.BinarySearchFunc(live, seq, func(r ref, seq uint64) int {
		switch {
		case r.seq < seq:
			return -1
		case r.seq > seq:
			return 1
		}
		return 0
	})
	if !found {
		return
	}
	if i == 0 {
		w.pop()
		return
	}
	w.refs = slices.Delete(w.refs, w.from+i, w.from+i+1)
}

// dueWindow is the beginning of the order of scheduled messages, by (due time,
// sequence).
type dueWindow struct {
	states []state
	from   int
}

func (w *dueWindow) len() int { return len(w.states) - w.from }

func (w *dueWindow) first() *state { return &w.states[w.from] }

func (w *dueWindow) last() *state { return &w.states[len(w.states)-1] }

func (w *dueWindow) pop() {
	w.from++
	if w.from == len(w.states) {
		w.states, w.from = nil, 0
	}
}

// find returns the place of (due, seq): where it is, or where it would go.
func (w *dueWindow) find(due int64, seq uint64) int {
	lo, hi := w.from, len(w.states)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if w.states[mid].before(due, seq) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// insert adds s, which belongs into the window's range. complete says that the
// window holds the whole order. A window that grows too large sheds its end.
func (w *dueWindow) insert(s state, complete bool) {
	n := w.len()
	if !complete && (n == 0 || !s.before(w.last().due, w.last().seq)) {
		return // it stands behind the window, on disk only
	}
	if w.from > 0 && len(w.states) == cap(w.states) {
		w.states = append(w.states[:0], w.states[w.from:]...)
		w.from = 0
	}
	w.states = slices.Insert(w.states, w.find(s.due, s.seq), s)
	if n+1 > windowSize {
		w.states = w.states[:len(w.states)-1]
	}
}

func (w *dueWindow) remove(due int64, seq uint64) {
	i := w.find(due, seq)
	if i == len(w.states) || w.states[i].seq != seq || w.states[i].due != due {
		return
	}
	if i == w.from {
		w.pop()
		return
	}
	w.states = slices.Delete(w.states, i, i+1)
}

// leaseHeap orders leases by the time at which they run out. Leases that never
// do are not in it.
type leaseHeap []*state

func (h leaseHeap) less(i, j int) bool { return h[i].due < h[j].due }

func (h leaseHeap) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].slot, h[j].slot = int32(i), int32(j)
}

func (h *leaseHeap) push(s *state) {
	s.slot = int32(len(*h))
	*h = append(*h, s)
	h.up(len(*h) - 1)
}

func (h *leaseHeap) remove(s *state) {
	i, n := int(s.slot), len(*h)-1
	if i < 0 {
		return
	}
	if i != n {
		h.swap(i, n)
	}
	(*h)[n] = nil
	*h = (*h)[:n]
	if i != n {
		h.down(i)
		h.up(i)
	}
	s.slot = -1
}

func (h leaseHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.less(i, parent) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h leaseHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h.less(child+1, child) {
			child++
		}
		if !h.less(child, i) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
