// Package order keeps in memory a Window on an order that is on disk and may be longer than
// memory.
package order

import "slices"

// Window holds the first elements of an order, without a gap. The zero value knows nothing of
// the order.
type Window[T interface{ Compare(T) int }] struct {
	items []T
	from  int  // elements before it were popped
	Whole bool // the window holds the whole order
}

// spareSize is the capacity that an empty window keeps, in elements.
const spareSize = 64

// Len is the number of elements in the window.
func (w *Window[T]) Len() int { return len(w.items) - w.from }

// All lists the window; it is valid until the next change.
func (w *Window[T]) All() []T { return w.items[w.from:] }

// First is the first element of a window that is not empty.
func (w *Window[T]) First() *T { return &w.items[w.from] }

// Last is the last element of a window that is not empty.
func (w *Window[T]) Last() *T { return &w.items[len(w.items)-1] }

// Find returns the index of x in All, or that at which it would be inserted.
func (w *Window[T]) Find(x T) (i int, found bool) {
	return slices.BinarySearchFunc(w.All(), x, T.Compare)
}

// Append adds the element that follows the window.
func (w *Window[T]) Append(x T) {
	if w.from > 0 && len(w.items) == cap(w.items) {
		n := copy(w.items, w.items[w.from:])
		clear(w.items[n:])
		w.items, w.from = w.items[:n], 0
	}
	w.items = append(w.items, x)
}

// Insert adds an element to the order, and bounds the window by limit. It returns the element
// that is not in the window then: x, if it follows the window, or one that was evicted.
func (w *Window[T]) Insert(x T, limit int) (left T, out bool) {
	n := w.Len()
	behind := n == 0 || (*w.Last()).Compare(x) < 0
	switch {
	case behind && (!w.Whole || n >= limit):
		w.Whole = false
		return x, true
	case behind:
		w.Append(x)
		return left, false
	}
	i, _ := w.Find(x)
	if w.from > 0 && i < n/2 { // move the front into the space of popped elements
		copy(w.items[w.from-1:], w.items[w.from:w.from+i])
		w.from--
		w.items[w.from+i] = x
	} else {
		w.items = slices.Insert(w.items, w.from+i, x)
	}
	if n < limit {
		return left, false
	}
	left = *w.Last()
	w.Trim(limit)
	return left, true
}

// Pop removes the first element of a window that is not empty.
func (w *Window[T]) Pop() (x T) {
	var none T
	x, w.items[w.from] = w.items[w.from], none
	w.from++
	if w.from == len(w.items) {
		w.items, w.from = w.items[:0], 0
		if cap(w.items) > spareSize {
			w.items = nil
		}
	}
	return x
}

// Remove removes an element from the order, and reports whether it was in the window.
func (w *Window[T]) Remove(x T) bool {
	i, found := w.Find(x)
	switch {
	case !found:
	case i == 0:
		w.Pop()
	default:
		w.items = slices.Delete(w.items, w.from+i, w.from+i+1)
	}
	return found
}

// Trim leaves the first n elements in the window, at most.
func (w *Window[T]) Trim(n int) {
	if w.Len() > n {
		clear(w.items[w.from+n:])
		w.items, w.Whole = w.items[:w.from+n], false
	}
}
