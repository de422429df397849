package grouping

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/leases"
)

// whole is a group as the test knows it: all of its messages, in order.
type whole struct {
	lane     layout.Lane
	messages []uint64
	leased   map[uint64]bool // received: true while it is in flight
}

func (w *whole) first() uint64 {
	if len(w.messages) == 0 || w.leased[w.messages[0]] {
		return 0
	}
	return w.messages[0]
}

// TestSet lists random groups, with a small window, and compares what stands on
// disk and in memory with what can be received from.
func TestSet(t *testing.T) {
	const limit = 3
	rapid.Check(t, func(t *rapid.T) {
		keys := layout.NewKeys(1, 1)
		disk := map[string][]byte{}
		s := New(true, false, 0, 0, limit)
		groups := map[layout.Lane]*whole{}
		next := uint64(1)
		relist := func() {
			var b mutation.Batch
			s.RelistTouched(&b, &keys)
			err := b.Each(func(op mutation.Op, key, value []byte) error {
				if disk[string(key)] = bytes.Clone(value); op != mutation.Set {
					delete(disk, string(key))
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		// inMemory makes a group known, as a machine does that reads it.
		inMemory := func(w *whole) *Group {
			x := s.Make(w.lane)
			if x.Known == KnowsAll {
				return x
			}
			x.Known, x.Fresh.Whole = KnowsAll, true
			for _, seq := range w.messages {
				if leased, received := w.leased[seq]; received {
					l := leases.NewItem(layout.State{Sequence: seq, Lane: w.lane, Flags: layout.Returned})
					if leased {
						l.Flags = 0
					}
					x.Hold(l)
				} else {
					x.Fresh.Append(Fresh{Sequence: seq, Sent: int64(seq)})
				}
			}
			s.Filled(x)
			return x
		}
		some := func(t *rapid.T) *whole {
			lanes := slices.Sorted(maps.Keys(groups))
			return groups[lanes[rapid.IntRange(0, len(lanes)-1).Draw(t, "group")]]
		}
		for n := range layout.Lane(6) {
			groups[layout.GroupLanes+n] = &whole{lane: layout.GroupLanes + n, leased: map[uint64]bool{}}
		}
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				w := some(t)
				if len(w.messages) == 0 && s.Get(w.lane) != nil {
					t.Fatalf("%x is empty, and in memory", w.lane)
				}
				if exists, known := s.Exists(w.lane); s.Get(w.lane) == nil && known && exists != (len(w.messages) > 0) {
					t.Fatalf("%x exists: %v, it has %v", w.lane, exists, w.messages)
				}
				x := s.Get(w.lane)
				if x == nil && len(w.messages) == 0 {
					x = s.Begin(w.lane)
				}
				w.messages = append(w.messages, next)
				if x != nil {
					x.Fresh.Insert(Fresh{Sequence: next, Sent: int64(next)}, 100)
					s.Touch(x)
				}
				next++
				relist()
			},
			"receive": func(t *rapid.T) {
				w := some(t)
				if w.first() == 0 {
					return
				}
				x := inMemory(w)
				if len(x.Held) > 0 {
					x.Held[0].Flags = 0
				} else {
					f := x.Fresh.Pop()
					x.Hold(leases.NewItem(layout.State{Sequence: f.Sequence, Lane: w.lane}))
				}
				w.leased[w.messages[0]] = true
				s.Touch(x)
				relist()
			},
			"return": func(t *rapid.T) {
				w := some(t)
				if len(w.messages) == 0 || !w.leased[w.messages[0]] {
					return
				}
				x := s.Get(w.lane)
				x.Held[0].Flags = layout.Returned
				w.leased[w.messages[0]] = false
				s.Touch(x)
				relist()
			},
			"remove": func(t *rapid.T) {
				w := some(t)
				if len(w.messages) == 0 {
					return
				}
				x, seq := inMemory(w), w.messages[0]
				if _, received := w.leased[seq]; received {
					i, found := x.Find(seq)
					if !found {
						t.Fatalf("%d is not held", seq)
					}
					x.Held = slices.Delete(x.Held, i, i+1)
				} else {
					x.Fresh.Remove(Fresh{Sequence: seq})
				}
				w.messages = w.messages[1:]
				s.Touch(x)
				relist()
			},
			"fill": func(t *rapid.T) {
				if s.Order.Whole {
					return
				}
				span := keys.ListedFrom(s.Next())
				for _, key := range slices.Sorted(maps.Keys(disk)) {
					if key >= string(span.Lower) && key < string(span.Upper) {
						if err := s.Fill([]byte(key), disk[key]); err != nil {
							t.Fatal(err)
						}
					}
				}
				s.Order.Whole = true
			},
			"": func(t *rapid.T) {
				var free []*whole
				there := 0
				for _, w := range groups {
					if w.first() != 0 {
						free = append(free, w)
					}
					if len(w.messages) > 0 {
						there++
					}
				}
				slices.SortFunc(free, func(a, b *whole) int { return cmp.Compare(a.first(), b.first()) })
				listed := keys.ListedFrom(0)
				var onDisk []layout.Lane
				for _, key := range slices.Sorted(maps.Keys(disk)) {
					if key >= string(listed.Lower) && key < string(listed.Upper) {
						l, err := layout.DecodeListing(disk[key])
						if err != nil {
							t.Fatal(err)
						}
						onDisk = append(onDisk, l.Lane)
					}
				}
				lanes := func(ws []*whole) (lanes []layout.Lane) {
					for _, w := range ws {
						lanes = append(lanes, w.lane)
					}
					return lanes
				}
				if !slices.Equal(onDisk, lanes(free)) || int(s.Listed) != len(free) || len(disk) != len(free)+there {
					t.Fatalf("on disk %x of %d records, %d are counted; want %x", onDisk, len(disk), s.Listed, lanes(free))
				}
				var known []layout.Lane
				for _, x := range s.Order.All() {
					known = append(known, x.Lane)
				}
				if len(known) > len(free) || !slices.Equal(known, lanes(free)[:len(known)]) || s.Order.Whole && len(known) < len(free) {
					t.Fatalf("in memory %x, want the first of %x", known, lanes(free))
				}
			},
		})
	})
}
