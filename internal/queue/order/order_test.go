package order_test

import (
	"cmp"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/queue/order"
)

type number int

func (n number) Compare(o number) int { return cmp.Compare(n, o) }

// TestWindow holds a window against the whole order, which "disk" is here: the
// window is its beginning, and Whole says when it is all of it.
func TestWindow(t *testing.T) {
	const most = 5
	rapid.Check(t, func(t *rapid.T) {
		var disk []number
		w := &order.Window[number]{Whole: true}
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				n := number(rapid.IntRange(0, 99).Draw(t, "n"))
				i, found := slices.BinarySearch(disk, n)
				if found {
					return
				}
				before := slices.Clone(w.All())
				disk = slices.Insert(disk, i, n)
				left, out := w.Insert(n, most)
				if out && slices.Contains(w.All(), left) || !out && !slices.Contains(w.All(), n) {
					t.Fatalf("inserted %d into %v: %v, and %d left: %v", n, before, w.All(), left, out)
				}
				if out && left != n && !slices.Contains(before, left) {
					t.Fatalf("%d left %v", left, before)
				}
			},
			"pop": func(t *rapid.T) {
				if w.Len() == 0 {
					return
				}
				if got := w.Pop(); got != disk[0] {
					t.Fatalf("popped %d of %v", got, disk)
				}
				disk = disk[1:]
			},
			"remove": func(t *rapid.T) {
				n := number(rapid.IntRange(0, 99).Draw(t, "n"))
				had := slices.Contains(w.All(), n)
				if got := w.Remove(n); got != had {
					t.Fatalf("removed %d: %v, it was there: %v", n, got, had)
				}
				disk = slices.DeleteFunc(disk, func(o number) bool { return o == n })
			},
			"fill": func(t *rapid.T) {
				if w.Whole {
					return
				}
				for range rapid.IntRange(1, 4).Draw(t, "n") {
					if w.Len() < len(disk) {
						w.Append(disk[w.Len()])
					}
				}
				w.Whole = w.Len() == len(disk)
			},
			"trim": func(t *rapid.T) {
				n := rapid.IntRange(0, most).Draw(t, "n")
				was := w.Len()
				if w.Trim(n); w.Len() != min(n, was) {
					t.Fatalf("%d left of %d, want %d", w.Len(), was, n)
				}
			},
			"": func(t *rapid.T) {
				if w.Len() > len(disk) || !slices.Equal(w.All(), disk[:w.Len()]) {
					t.Fatalf("the window is %v of %v", w.All(), disk)
				}
				if w.Whole && w.Len() != len(disk) {
					t.Fatalf("%v is not all of %v", w.All(), disk)
				}
				if w.Len() > 0 && (*w.First() != disk[0] || *w.Last() != disk[w.Len()-1]) {
					t.Fatalf("from %d to %d: %v", *w.First(), *w.Last(), w.All())
				}
			},
		})
	})
}
