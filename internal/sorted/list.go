// Package sorted has a sorted list, and a heap.
package sorted

import "slices"

// List is a sorted list without duplicates. Adding at the end, as loading does, takes constant
// time; adding elsewhere moves each later element, which for 100,000 pointers takes some ten
// microseconds.
type List[T any] struct {
	Items   []T // in order; code that removes some must keep it
	Compare func(a, b T) int
}

// Add adds v, unless it is in the list.
func (l *List[T]) Add(v T) {
	if n := len(l.Items); n == 0 || l.Compare(l.Items[n-1], v) < 0 {
		l.Items = append(l.Items, v)
		return
	}
	i, found := slices.BinarySearchFunc(l.Items, v, l.Compare)
	if !found {
		l.Items = slices.Insert(l.Items, i, v)
	}
}

// Remove removes v, if it is in the list. It must compare as when it was added.
func (l *List[T]) Remove(v T) {
	if i, found := slices.BinarySearchFunc(l.Items, v, l.Compare); found {
		l.Items = slices.Delete(l.Items, i, i+1)
	}
}

// From returns the items beginning with the first for which before is false. before must be
// true for a prefix of the list.
func (l *List[T]) From(before func(T) bool) []T {
	i, _ := slices.BinarySearchFunc(l.Items, struct{}{}, func(v T, _ struct{}) int {
		if before(v) {
			return -1
		}
		return 0
	})
	return l.Items[i:]
}

// Page returns a copy of up to limit items of From; more says that there are others.
func (l *List[T]) Page(before func(T) bool, limit int) (items []T, more bool) {
	rest := l.From(before)
	if len(rest) > limit {
		return slices.Clone(rest[:limit]), true
	}
	return slices.Clone(rest), false
}
