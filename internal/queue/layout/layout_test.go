package layout_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
)

// FuzzDecodeState: what it reads is written as it was read.
func FuzzDecodeState(f *testing.F) {
	key := []byte{0, 0, 0, 0, 0, 0, 0, 7}
	s := layout.State{
		Due: layout.Never, Sent: 2, First: 3, Received: 4, Receives: 5, Epoch: 6, Lane: layout.MovedLane, Tenant: layout.GroupLanes,
		Flags: layout.MoveRejected | layout.History,
	}
	f.Add(s.Append(nil))
	s.Size = 300
	f.Add(s.Append(nil))
	s.Turn = 0
	f.Add(s.Append(nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		s, err := layout.DecodeState(key, p)
		if err != nil {
			if !errors.Is(err, layout.ErrCorrupt) {
				t.Fatalf("%d bytes: %v", len(p), err)
			}
			return
		}
		if got := s.Append(nil); !bytes.Equal(got, p) || s.Sequence != 7 {
			t.Fatalf("read %x, wrote %x", p, got)
		}
	})
}

// FuzzDecodeCounters: what it reads is what it wrote.
func FuzzDecodeCounters(f *testing.F) {
	f.Add((&layout.Counters{Next: math.MaxUint64, Head: 3, Listed: 1}).Append(nil))
	f.Add((&layout.Counters{Next: 4, Head: 3, HeldAges: 1}).Append(nil))
	f.Add((&layout.Counters{Next: 4, Head: 3, Bytes: 1}).Append(nil))
	f.Add(make([]byte, 10))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		c, err := layout.DecodeCounters(p)
		if err != nil {
			if !errors.Is(err, layout.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again, err := layout.DecodeCounters(c.Append(nil)); err != nil || again != c {
			t.Fatalf("read %+v, then %+v, %v", c, again, err)
		}
	})
}

// FuzzDecodeListing: what it reads is what it wrote.
func FuzzDecodeListing(f *testing.F) {
	f.Add(make([]byte, 17))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		l, err := layout.DecodeListing(p)
		if err != nil {
			if !errors.Is(err, layout.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		var b mutation.Batch
		layout.PutListing(&b, []byte("k"), l)
		if again, err := layout.DecodeListing(written(t, &b)); err != nil || again != l {
			t.Fatalf("read %+v, then %+v, %v", l, again, err)
		}
	})
}

// written is the value that a batch sets; nil if it removes it.
func written(t *testing.T, b *mutation.Batch) (value []byte) {
	t.Helper()
	err := b.Each(func(op mutation.Op, key, v []byte) error {
		if string(key) != "k" || op != mutation.Set && op != mutation.Delete {
			t.Fatalf("write %d of %q", op, key)
		}
		value = bytes.Clone(v)
		return nil
	})
	if err != nil || b.Len() != 1 {
		t.Fatalf("%d writes, %v", b.Len(), err)
	}
	return value
}

func TestNumbers(t *testing.T) {
	for _, n := range []uint64{0, 1, math.MaxUint64} {
		var b mutation.Batch
		layout.PutNumber(&b, []byte("k"), n)
		if got := layout.Number(written(t, &b)); got != n {
			t.Errorf("wrote %d, read %d", n, got)
		}
	}
	if layout.Number(nil) != 0 || layout.Number([]byte{1}) != 0 {
		t.Error("what is no number is 0")
	}
	for _, n := range []int64{0, 5} {
		var b mutation.Batch
		layout.PutCount(&b, []byte("k"), n)
		if value := written(t, &b); (value == nil) != (n == 0) || layout.Number(value) != uint64(n) {
			t.Errorf("a count of %d is %x", n, value)
		}
	}
}

// A span holds its own keys and no others', and what it says of an order is the
// order of the keys.
func TestSpans(t *testing.T) {
	k := layout.NewKeys(3, 7)
	group := layout.GroupLane("g")
	other := layout.NewKeys(3, 8)
	in := func(s layout.Span, key []byte) bool {
		return bytes.Compare(key, s.Lower) >= 0 && bytes.Compare(key, s.Upper) < 0
	}
	for name, tt := range map[string]struct {
		span layout.Span
		in   [][]byte
		out  [][]byte
	}{
		"all": {
			k.All(),
			[][]byte{clone(k.Record(0, 1)), clone(k.Lease(math.MaxUint64)), clone(k.HeldState(group, 1))},
			[][]byte{clone(k.Counters()), clone(other.Record(0, 1))},
		},
		"a lane": {
			k.Lane(group, 5),
			[][]byte{clone(k.Record(group, 5)), clone(k.Record(group, math.MaxUint64))},
			[][]byte{clone(k.Record(group, 4)), clone(k.Record(group+1, 5)), clone(k.HeldState(group, 5))},
		},
		"held": {
			k.Held(group, 5), [][]byte{clone(k.HeldState(group, 5))}, [][]byte{clone(k.HeldState(group, 4)), clone(k.Record(group, 5))},
		},
		"due": {
			k.DueFrom(1000, 5),
			[][]byte{clone(k.Due(1000, 5)), clone(k.Due(1001, 1))},
			[][]byte{clone(k.Due(1000, 4)), clone(k.Due(999, 9)), clone(k.DueOf(5))},
		},
		"listed": {k.ListedFrom(5), [][]byte{clone(k.Listed(5)), clone(k.Listed(9))}, [][]byte{clone(k.Listed(4)), clone(k.Group(group))}},
		"leases": {k.Of(layout.TagLease), [][]byte{clone(k.Lease(1))}, [][]byte{clone(k.Record(0, 1)), clone(other.Lease(1))}},
		"expiry": {k.Of(layout.TagExpiry), [][]byte{clone(k.Expiry(1, 2))}, [][]byte{clone(k.Due(1, 2))}},
		"all held": {
			k.HeldFrom(group, 5), [][]byte{clone(k.HeldState(group, 5)), clone(k.HeldState(group+1, 1))}, [][]byte{clone(k.HeldState(group, 4))},
		},
		"records": {
			k.RecordsFrom(group, 5), [][]byte{clone(k.Record(group, 5)), clone(k.Record(group+1, 1))}, [][]byte{clone(k.Record(0, 9))},
		},
		"counters": {layout.AllCounters(3), [][]byte{clone(k.Counters()), clone(other.Counters())}, [][]byte{clone(k.Record(0, 1))}},
	} {
		for _, key := range tt.in {
			if !in(tt.span, key) {
				t.Errorf("%s: %q is not in it", name, key)
			}
		}
		for _, key := range tt.out {
			if in(tt.span, key) {
				t.Errorf("%s: %q is in it", name, key)
			}
		}
	}
	if layout.KeySequence(k.Record(group, 5)) != 5 || layout.KeyLane(k.Record(group, 5)) != group || layout.KeyTime(k.Expiry(9, 5)) != 9 {
		t.Error("a key is not read as it was made")
	}
}

func clone(p []byte) []byte { return bytes.Clone(p) }

func TestGroupLane(t *testing.T) {
	if layout.GroupLane("") != layout.MainLane || layout.MainLane.Grouped() || layout.MovedLane.Grouped() {
		t.Error("without a group it is the main lane")
	}
	if a, b := layout.GroupLane("a"), layout.GroupLane("b"); a == b || !a.Grouped() || !b.Grouped() {
		t.Errorf("lanes %x and %x", a, b)
	}
}
