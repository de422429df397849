package sorted_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/sorted"
)

type element struct{ key, place int32 }

func (e *element) Before(o *element) bool { return e.key < o.key }
func (e *element) Place() *int32          { return &e.place }

func TestHeap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h sorted.Heap[*element]
		var all []*element
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				e := &element{key: rapid.Int32Range(0, 20).Draw(t, "key"), place: sorted.Outside}
				h.Push(e)
				all = append(all, e)
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					return
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "i")
				e := all[i]
				all = slices.Delete(all, i, i+1)
				h.Remove(e)
				h.Remove(e) // it is outside, which changes nothing
				if e.place != sorted.Outside {
					t.Fatalf("removed, and at %d", e.place)
				}
			},
			"fix": func(t *rapid.T) {
				if len(all) > 0 {
					e := rapid.SampledFrom(all).Draw(t, "e")
					e.key = rapid.Int32Range(0, 20).Draw(t, "key")
					h.Fix(e)
				}
			},
			"": func(t *rapid.T) {
				if len(h) != len(all) {
					t.Fatalf("%d in the heap, want %d", len(h), len(all))
				}
				for i, e := range h {
					if int(e.place) != i || e.key < h[0].key {
						t.Fatalf("%+v at %d, behind %+v", e, i, h[0])
					}
				}
			},
		})
	})
}
