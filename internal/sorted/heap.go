package sorted

// Heap is a heap of elements; the first is at index 0. An element stores its own place: its
// index, or Outside if it is in no heap.
type Heap[T interface {
	Before(T) bool
	Place() *int32
}] []T

// Outside is the place of an element that is in no heap.
const Outside = -1

// Push adds an element.
func (h *Heap[T]) Push(x T) {
	*x.Place() = int32(len(*h))
	*h = append(*h, x)
	h.up(len(*h) - 1)
}

// Remove removes an element, if it is in the heap.
func (h *Heap[T]) Remove(x T) {
	var none T
	i, n := int(*x.Place()), len(*h)-1
	if i == Outside {
		return
	}
	h.swap(i, n)
	(*h)[n] = none
	*h = (*h)[:n]
	if i != n {
		h.down(i)
		h.up(i)
	}
	*x.Place() = Outside
}

// Fix restores the order after an element of the heap has changed.
func (h Heap[T]) Fix(x T) {
	i := int(*x.Place())
	h.down(i)
	h.up(i)
}

func (h Heap[T]) swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	*h[i].Place(), *h[j].Place() = int32(i), int32(j)
}

func (h Heap[T]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].Before(h[parent]) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h Heap[T]) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && h[child+1].Before(h[child]) {
			child++
		}
		if !h[child].Before(h[i]) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
