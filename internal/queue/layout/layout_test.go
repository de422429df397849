package layout_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"testing"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/fair"
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
	s.Turn = 8
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

// What an older version has stored is read by its bytes: a record that is encoded and decoded
// in another way, and so is read as it was written, would still lose it.
func TestEncodings(t *testing.T) {
	state := layout.State{
		Due: 1, Sent: 2, First: 3, Received: 4, Receives: 5, Epoch: 6, Lane: 7, Tenant: 8, Flags: layout.Moving | layout.Later | layout.Returned,
	}
	const plain = "0000000000000001" + "0000000000000002" + "0000000000000003" + "0000000000000004" +
		"00000005" + "00000006" + "0000000000000007" + "0000000000000008" + "29"
	turned, sized, both := state, state, state
	turned.Turn, sized.Size = 9, 10
	both.Turn, both.Size = 9, 10
	for want, s := range map[string]layout.State{
		plain: state, plain + "0000000000000009": turned, plain + "0000000a": sized, plain + "0000000000000009" + "0000000a": both,
	} {
		if got := hex.EncodeToString(s.Append(nil)); got != want {
			t.Errorf("%+v is written as %s, want %s", s, got, want)
		}
		p, _ := hex.DecodeString(want)
		s.Sequence = 11
		if got, err := layout.DecodeState(binary.BigEndian.AppendUint64(nil, 11), p); err != nil || got != s {
			t.Errorf("%s is read as %+v, want %+v; %v", want, got, s, err)
		}
	}

	first := layout.Counters{Next: 1, Head: 2, Fresh: 3, Scheduled: 4, Leased: 5, LowMain: 6, LowDelayed: 7, Grouped: 8, Returned: 9, Listed: 300}
	const oldest = "010203040506070809ac02"
	fifo := first
	fifo.Back, fifo.Turn = 11, 12
	back, turn := first, first
	back.Back, turn.Turn = 11, 12
	held := fifo
	held.HeldAges = 1
	bytes := held
	bytes.Bytes = 14
	standard := first
	standard.Bytes = 14
	for want, c := range map[string]layout.Counters{
		oldest: first, oldest + "0b0c": fifo, oldest + "0b00": back, oldest + "000c": turn,
		oldest + "0b0c01": held, oldest + "0b0c010e": bytes, oldest + "0000000e": standard,
	} {
		if got := hex.EncodeToString(c.Append(nil)); got != want {
			t.Errorf("%+v is written as %s, want %s", c, got, want)
		}
		p, _ := hex.DecodeString(want)
		if got, err := layout.DecodeCounters(p); err != nil || got != c {
			t.Errorf("%s is read as %+v, want %+v; %v", want, got, c, err)
		}
	}

	for want, put := range map[string]func(b *mutation.Batch, key []byte){
		"0000000000000007" + "0000000000000008" + "01": func(b *mutation.Batch, key []byte) {
			layout.PutListing(b, key, layout.Listing{Lane: 7, At: 8, Returned: true})
		},
		"0000000000000007" + "0000000000000009": func(b *mutation.Batch, key []byte) { layout.PutReturned(b, key, 7, 9) },
		"ac0201":                                func(b *mutation.Batch, key []byte) { layout.PutWait(b, key, fair.Wait{Messages: 300, Scheduled: 1}) },
		plain:                                   func(b *mutation.Batch, key []byte) { layout.PutState(b, key, &state) },
	} {
		var b mutation.Batch
		put(&b, []byte("k"))
		if got := hex.EncodeToString(written(t, &b)); got != want {
			t.Errorf("%s is written, want %s", got, want)
		}
	}
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

// Keys stay what they were, as records do.
func TestKeys(t *testing.T) {
	k := layout.NewKeys(3, 7)
	prefix := "0003" + hex.EncodeToString([]byte{keyspace.Data}) + "0000000000000007"
	key := func(tag layout.Tag, numbers ...uint64) string {
		s := prefix + hex.EncodeToString([]byte{byte(tag)})
		for _, n := range numbers {
			s += fmt.Sprintf("%016x", n)
		}
		return s
	}
	for want, got := range map[string][]byte{
		key(layout.TagRecord, 4, 5):      clone(k.Record(4, 5)),
		key(layout.TagGroup, 4):          clone(k.Group(4)),
		key(layout.TagTenant, 4):         clone(k.Tenant(4)),
		key(layout.TagListed, 5):         clone(k.Listed(5)),
		key(layout.TagReturned, 1000, 6): clone(k.Returned(1000, 6)),
		key(layout.TagHistory, 5):        clone(k.History(5)),
		key(layout.TagDueOf, 5):          clone(k.DueOf(5)),
		key(layout.TagDue, 1000, 5):      clone(k.Due(1000, 5)),
		key(layout.TagLease, 5):          clone(k.Lease(5)),
		key(layout.TagExpiry, 1000, 5):   clone(k.Expiry(1000, 5)),
		key(layout.TagHeld, 4, 5):        clone(k.HeldState(4, 5)),
	} {
		if got := hex.EncodeToString(got); got != want {
			t.Errorf("a key is %s, want %s", got, want)
		}
	}
	counters := "0003" + hex.EncodeToString([]byte{keyspace.Counters}) + "0000000000000007"
	if got := hex.EncodeToString(k.Counters()); got != counters {
		t.Errorf("the key of the counters is %s, want %s", got, counters)
	}
	if got := layout.GroupLane("b"); got != 0xbe23e8160039594a {
		t.Errorf("a group's lane is %x", got)
	}
}
