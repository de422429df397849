package queue

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/queue/layout"
)

func TestLeaseSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s leaseSet
		var all []*item // in order of sequence
		next := uint64(1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				l := newItem(layout.State{Sequence: next, Due: rapid.SampledFrom([]int64{5, 7, 7, 9, layout.Never}).Draw(t, "due")})
				next++
				if l.Due == layout.Never && rapid.Bool().Draw(t, "moving") {
					l.Flags = layout.Moving
				}
				s.add(l)
				all = append(all, l)
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					return
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "i")
				s.remove(all[i])
				all = slices.Delete(all, i, i+1)
			},
			"": func(t *rapid.T) {
				if !slices.Equal(s.all(), all) || s.len() != len(all) {
					t.Fatalf("there are %v, want %v", s.all(), all)
				}
				moving, lowest, first := 0, next, int64(layout.Never)
				for _, l := range all {
					first = min(first, l.Due)
					lowest = min(lowest, l.Sequence)
					if l.Is(layout.Moving) {
						moving++
					}
					if s.get(l.Sequence) != l {
						t.Fatalf("%d is not found", l.Sequence)
					}
				}
				if s.movingCount() != moving || s.lowest(next) != lowest || s.get(next) != nil {
					t.Fatalf("moving %d, lowest %d of %v", s.movingCount(), s.lowest(next), all)
				}
				if l := s.next(); l == nil && first != layout.Never || l != nil && l.Due != first {
					t.Fatalf("%+v runs out first, want one at %d", l, first)
				}
				if l := s.expired(6); (l != nil) != (first <= 6) {
					t.Fatalf("%+v has run out at 6, the first does at %d", l, first)
				}
			},
		})
	})
}
