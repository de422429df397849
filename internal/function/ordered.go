package function

import (
	"cmp"
	"slices"
)

// ordered is a sorted list without duplicates.
type ordered[T any] struct {
	items   []T
	compare func(a, b T) int
}

func (o *ordered[T]) add(v T) {
	if n := len(o.items); n == 0 || o.compare(o.items[n-1], v) < 0 {
		o.items = append(o.items, v)
		return
	}
	i, found := slices.BinarySearchFunc(o.items, v, o.compare)
	if !found {
		o.items = slices.Insert(o.items, i, v)
	}
}

func (o *ordered[T]) remove(v T) {
	if i, found := slices.BinarySearchFunc(o.items, v, o.compare); found {
		o.items = slices.Delete(o.items, i, i+1)
	}
}

// from gives the items beginning with the first for which before is no longer
// true. before must be true for a prefix of the list.
func (o *ordered[T]) from(before func(T) bool) []T {
	i, _ := slices.BinarySearchFunc(o.items, struct{}{}, func(v T, _ struct{}) int {
		if before(v) {
			return -1
		}
		return 0
	})
	return o.items[i:]
}

func compareNumbers(a, b uint64) int { return cmp.Compare(a, b) }
