package schedule

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
)

// scheduleWorld is a schedule, what it wrote, and what it should hold.
type scheduleWorld struct {
	*rapid.T
	Schedule
	keys      layout.Keys
	disk      map[string][]byte
	now       int64
	messages  []layout.State // in order
	elsewhere []layout.State // awaited, and in another order
}

const scheduleLimit = 5

// run has a command change the schedule, and writes what it says.
func (w *scheduleWorld) run(command func(b *mutation.Batch)) {
	var b mutation.Batch
	command(&b)
	err := b.Each(func(op mutation.Op, key, value []byte) error {
		_, there := w.disk[string(key)]
		if op == mutation.SingleDelete && !there {
			w.Fatalf("%x is deleted, which is not there", key)
		}
		if w.disk[string(key)] = bytes.Clone(value); op != mutation.Set {
			delete(w.disk, string(key))
		}
		return nil
	})
	if err != nil {
		w.Fatal(err)
	}
}

// in lists the keys of a span.
func (w *scheduleWorld) in(span layout.Span) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(w.disk)) {
		if key >= string(span.Lower) && key < string(span.Upper) {
			keys = append(keys, key)
		}
	}
	return keys
}

func (w *scheduleWorld) decode(key string) layout.State {
	m, err := layout.DecodeState([]byte(key), w.disk[key])
	if err != nil {
		w.Fatal(err)
	}
	return m
}

// read reads up to n messages of the rest, as a machine does.
func (w *scheduleWorld) read(n int) {
	rest := w.in(w.Unread(&w.keys))
	for _, key := range rest[:min(n, len(rest))] {
		w.Fill(w.decode(key))
	}
	if !w.Filled(n >= len(rest)) {
		w.Fatalf("counted %d of %d messages", w.Count, len(w.messages))
	}
}

func (w *scheduleWorld) waiting(tenant layout.Lane) (n int64) {
	for _, m := range w.messages {
		if m.Due > w.now && (tenant == 0 || m.Tenant == tenant) {
			n++
		}
	}
	return n
}

// bySecond counts what waits, to within a second.
func (w *scheduleWorld) bySecond() (n int64) {
	for _, m := range slices.Concat(w.messages, w.elsewhere) {
		if m.Is(layout.Later) && (m.Due/1000+1)*1000 > w.now {
			n++
		}
	}
	return n
}

// TestSchedule holds a schedule with a small window against a list, in memory and on
// disk, and through restarts.
func TestSchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &scheduleWorld{T: t, Schedule: New(0, scheduleLimit), keys: layout.NewKeys(1, 1), disk: map[string][]byte{}, now: 10_000}
		next := uint64(1)
		draw := func(t *rapid.T) layout.State {
			next++
			return layout.State{
				Sequence: next, Due: w.now + rapid.Int64Range(-500, 3000).Draw(t, "due"), Tenant: layout.GroupLanes + layout.Lane(next%3),
				Flags: rapid.SampledFrom([]layout.Flags{0, layout.Later}).Draw(t, "flags"), // of a former time, which does not count
			}
		}
		later := func(m layout.State) layout.State {
			if m.Flags = 0; m.Due > w.now {
				m.Flags = layout.Later
			}
			return m
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				m := draw(t)
				w.run(func(b *mutation.Batch) { w.Add(b, &w.keys, w.now, m) })
				i, _ := slices.BinarySearchFunc(w.messages, m, layout.State.Compare)
				w.messages = slices.Insert(w.messages, i, later(m))
			},
			"remove": func(t *rapid.T) {
				if len(w.messages) == 0 {
					return
				}
				i := rapid.IntRange(0, len(w.messages)-1).Draw(t, "i")
				m := w.messages[i]
				w.run(func(b *mutation.Batch) { w.Remove(b, &w.keys, w.now, &m) })
				w.messages = slices.Delete(w.messages, i, i+1)
			},
			"take the first": func(*rapid.T) {
				if len(w.First()) > 0 {
					m, i := w.First()[0], len(w.Sorted())
					w.run(func(b *mutation.Batch) { w.Remove(b, &w.keys, w.now, &m) })
					w.messages = slices.Delete(w.messages, i, i+1)
				}
			},
			"sort": func(*rapid.T) {
				w.Sort(w.now)
				if len(w.Sorted()) < scheduleLimit && len(w.First()) > 0 && w.First()[0].Due <= w.now {
					t.Fatalf("%v is due, and not sorted", w.First()[0])
				}
			},
			"countLater": func(t *rapid.T) {
				m := draw(t)
				w.run(func(b *mutation.Batch) { w.CountLater(b, &w.keys, w.now, &m) })
				w.elsewhere = append(w.elsewhere, m)
			},
			"uncountLater": func(*rapid.T) {
				if len(w.elsewhere) > 0 {
					w.run(func(b *mutation.Batch) { w.UncountLater(b, &w.keys, w.now, &w.elsewhere[0]) })
					w.elsewhere = w.elsewhere[1:]
				}
			},
			"pass": func(t *rapid.T) {
				w.now += rapid.Int64Range(1, 2000).Draw(t, "ms")
				w.run(func(b *mutation.Batch) { w.Forget(b, &w.keys, w.now) })
			},
			"fill": func(t *rapid.T) {
				if !w.Whole() {
					w.read(rapid.IntRange(1, scheduleLimit).Draw(t, "n"))
				}
			},
			"restart": func(*rapid.T) {
				w.Schedule = New(w.Count, scheduleLimit)
				for _, key := range w.in(w.keys.Of(layout.TagBucket)) {
					w.FillSecond(int64(layout.KeySequence([]byte(key))), int64(layout.Number(w.disk[key])))
				}
			},
			"": func(t *rapid.T) {
				sorted, known := len(w.Sorted()), len(w.Sorted())+len(w.First())
				if known > len(w.messages) || !slices.Equal(w.First(), w.messages[sorted:known]) ||
					w.Whole() && known < len(w.messages) || w.Unknown() != (known == 0 && !w.Whole()) {
					t.Fatalf("%v are sorted and %v known, whole %v, of %v", w.Sorted(), w.First(), w.Whole(), w.messages)
				}
				bySequence := slices.SortedFunc(slices.Values(w.messages[:sorted]), func(a, b layout.State) int {
					return cmp.Compare(a.Sequence, b.Sequence)
				})
				for i, m := range w.Sorted() {
					if m.State != bySequence[i] {
						t.Fatalf("%v are sorted, of %v", w.Sorted(), w.messages)
					}
				}
				var onDisk []layout.State
				for _, key := range w.in(w.keys.Of(layout.TagDue)) {
					onDisk = append(onDisk, w.decode(key))
				}
				if !slices.Equal(onDisk, w.messages) || int(w.Count) != len(w.messages) || len(w.in(w.keys.Of(layout.TagDueOf))) != len(w.messages) {
					t.Fatalf("%v are on disk, %d counted, of %v", onDisk, w.Count, w.messages)
				}
				if rest := w.in(w.Unread(&w.keys)); len(rest) != len(w.messages)-known {
					t.Fatalf("%d stand in the rest, of %d, known are %d", len(rest), len(w.messages), known)
				}
				for _, most := range []int{1, 3} {
					due := 0
					for _, m := range w.messages[known:] {
						if m.Due <= w.now {
							due++
						}
					}
					if due > 0 && known < most && !w.Short(w.now, most) {
						t.Fatalf("%d due messages are not known, %d are", due, known)
					}
				}
				if got := w.Delayed(w.now, true); got != w.bySecond() {
					t.Fatalf("%d are due in seconds to come, want %d", got, w.bySecond())
				}
				want := w.bySecond()
				if w.Whole() {
					want = w.waiting(0)
				}
				if got := w.Delayed(w.now, false); got != want {
					t.Fatalf("%d are delayed, want %d", got, want)
				}
				tenant := layout.GroupLanes + 1
				if got := w.DelayedOf(w.now, 0, []layout.Lane{tenant}, 0); w.Whole() && got != w.waiting(tenant) {
					t.Fatalf("%d of a tenant are delayed, want %d", got, w.waiting(tenant))
				}
			},
		})
	})
}

// Where not all is known, delayed messages are shared out by what tenants have.
func TestDelayedOfTenantsBeyondMemory(t *testing.T) {
	s := New(40, scheduleLimit)
	for _, test := range []struct{ delayed, scheduled, want int64 }{{20, 10, 5}, {20, 80, 20}, {0, 10, 0}} {
		if got := s.DelayedOf(0, test.delayed, nil, test.scheduled); got != test.want {
			t.Errorf("%d of %d delayed ones where %d of 40 are theirs, want %d", got, test.delayed, test.scheduled, test.want)
		}
	}
}

// A queue that gives everything a longer delay counts it later.
func TestShift(t *testing.T) {
	var b mutation.Batch
	s, keys := New(0, scheduleLimit), layout.NewKeys(1, 1)
	s.Shift(&b, &keys, 1000, 5)
	if b.Len() > 0 || !s.Idle() {
		t.Error("nothing is counted, and something written")
	}
	s.Expect(&b, &keys, 1000, 3000)
	s.Shift(&b, &keys, 1000, 5)
	if s.Delayed(7999, true) != 1 || s.Delayed(9000, true) != 0 {
		t.Errorf("%d are due later, %d after that", s.Delayed(7999, true), s.Delayed(9000, true))
	}
	s.Forget(&b, &keys, 9000)
	if !s.Idle() {
		t.Error("a second that is over is counted")
	}
}
