package leases

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/queue/layout"
)

func TestSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Set
		var all []*Item // in order of sequence
		next := uint64(1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				l := NewItem(layout.State{Sequence: next, Due: rapid.SampledFrom([]int64{5, 7, 7, 9, layout.Never}).Draw(t, "due")})
				next++
				if l.Due == layout.Never && rapid.Bool().Draw(t, "moving") {
					l.Flags = layout.Moving
				}
				s.Add(l)
				all = append(all, l)
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					return
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "i")
				s.Remove(all[i])
				all = slices.Delete(all, i, i+1)
			},
			"": func(t *rapid.T) {
				if !slices.Equal(s.All(), all) || s.Len() != len(all) {
					t.Fatalf("there are %v, want %v", s.All(), all)
				}
				moving, lowest, first := 0, next, int64(layout.Never)
				for _, l := range all {
					first = min(first, l.Due)
					lowest = min(lowest, l.Sequence)
					if l.Is(layout.Moving) {
						moving++
					}
					if s.Get(l.Sequence) != l {
						t.Fatalf("%d is not found", l.Sequence)
					}
				}
				if s.Moving() != moving || s.Lowest(next) != lowest || s.Get(next) != nil {
					t.Fatalf("moving %d, lowest %d of %v", s.Moving(), s.Lowest(next), all)
				}
				if l := s.Next(); l == nil && first != layout.Never || l != nil && l.Due != first {
					t.Fatalf("%+v runs out first, want one at %d", l, first)
				}
				if l := s.Expired(6); (l != nil) != (first <= 6) {
					t.Fatalf("%+v has run out at 6, the first does at %d", l, first)
				}
			},
		})
	})
}
