package record_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/cluster/record"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
)

func set(kv ...string) *mutation.Batch {
	b := new(mutation.Batch)
	for i := 0; i < len(kv); i += 2 {
		b.Set([]byte(kv[i]), []byte(kv[i+1]))
	}
	return b
}

func writes(t testing.TB, b *mutation.Batch) (out []string) {
	t.Helper()
	if b == nil {
		return nil
	}
	if err := b.Each(func(op mutation.Op, key, value []byte) error {
		out = append(out, string(rune('a'+int(op)))+" "+string(key)+" "+string(value))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestRecordsAreReadAsTheyWereWritten(t *testing.T) {
	b := set("k", "v", "empty", "")
	b.Delete([]byte("gone"))
	b.SingleDelete([]byte("once"))
	b.DeleteRange([]byte("a"), []byte("z"))
	for _, want := range []record.Record{
		{Kind: record.Takeover, Cell: 3, Epoch: 1 << 40, Owner: "node/1"},
		{Kind: record.Commit, Cell: 65535, Epoch: 1, Number: 1<<63 + 1, Batch: b},
		{Kind: record.Part, Epoch: 2, Number: 2, Batch: b},
		{Kind: record.Commit, Epoch: 2, Number: 3, Batch: new(mutation.Batch)},
		{Kind: record.Confirm, Cell: 1, Epoch: 7, Number: 9},
	} {
		encoded := want.AppendTo([]byte("before"))[len("before"):]
		got, err := record.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(writes(t, want.Batch), writes(t, got.Batch)); d != "" {
			t.Errorf("-want +got:\n%s", d)
		}
		want.Batch, got.Batch = nil, nil
		if got != want {
			t.Errorf("read %+v, want %+v", got, want)
		}
		for i := range encoded {
			damaged := bytes.Clone(encoded)
			damaged[i] ^= 0x10
			if _, err := record.Decode(damaged); !errors.Is(err, record.ErrCorrupt) {
				t.Errorf("byte %d changed: %v", i, err)
			}
			if _, err := record.Decode(encoded[:i]); !errors.Is(err, record.ErrCorrupt) {
				t.Errorf("cut to %d bytes: %v", i, err)
			}
		}
	}
}

// TestUnreadableRecordStopsReplica: a record with a right checksum that this program cannot read is an
// error, rather than a record of nothing, which a replica would pass.
func TestUnreadableRecordStopsReplica(t *testing.T) {
	takeover := record.Record{Kind: record.Takeover, Epoch: 1, Owner: strings.Repeat("o", 256)}
	confirm := record.Record{Kind: record.Confirm, Epoch: 1, Number: 2}
	commit := record.Record{Kind: record.Commit, Epoch: 1, Number: 2, Batch: new(mutation.Batch)}
	for _, c := range []struct {
		name   string
		of     record.Record
		change func(p []byte) []byte
		want   error
	}{
		{"as it was", takeover, func(p []byte) []byte { return p }, nil},
		{"of a later version", confirm, func(p []byte) []byte { p[4]++; return p }, record.ErrCorrupt},
		{"of a later kind", confirm, func(p []byte) []byte { p[5] = 9; return p }, record.ErrCorrupt},
		{"with a longer owner", takeover, func(p []byte) []byte { return append(p, 'o') }, record.ErrCorrupt},
		{"without an owner", takeover, func(p []byte) []byte { return p[:len(p)-256] }, record.ErrCorrupt},
		{"with something behind a confirmation", confirm, func(p []byte) []byte { return append(p, 0) }, record.ErrCorrupt},
		{"with what are no writes", commit, func(p []byte) []byte { return append(p, 0xff) }, record.ErrCorrupt},
	} {
		p := c.change(c.of.AppendTo(nil))
		binary.BigEndian.PutUint32(p, crc32.Checksum(p[4:], crc32.MakeTable(crc32.Castagnoli)))
		if _, err := record.Decode(p); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	var b mutation.Batch
	(&record.Fence{Epoch: 1, Owner: "a"}).Put(&b, 1)
	_ = b.Each(func(_ mutation.Op, _, value []byte) error {
		value[0]++
		if _, err := record.DecodeFence(value); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("a fence of a later version: %v", err)
		}
		return nil
	})
}

func FuzzDecode(f *testing.F) {
	r := record.Record{Kind: record.Commit, Epoch: 1, Number: 2, Batch: set("k", "v")}
	f.Add(r.AppendTo(nil))
	f.Fuzz(func(t *testing.T, p []byte) {
		r, err := record.Decode(p)
		if err != nil {
			if !errors.Is(err, record.ErrCorrupt) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(r.AppendTo(nil), p) {
			t.Errorf("%x is read and written as %x", p, r.AppendTo(nil))
		}
	})
}

// What is split is, put together, what it was.
func TestSplit(t *testing.T) {
	large := strings.Repeat("x", 300<<10)
	for _, c := range []struct {
		name    string
		batches []*mutation.Batch
		records int
	}{
		{"nothing", []*mutation.Batch{new(mutation.Batch)}, 1},
		{"small", []*mutation.Batch{set("a", "1"), set("b", "2", "c", "3")}, 1},
		{"just small enough", []*mutation.Batch{set("a", large, "b", large), set("c", large)}, 1},
		{"large", []*mutation.Batch{set("a", large, "b", large), set("c", large, "d", large, "e", "5")}, 2},
		{"one large write among others", []*mutation.Batch{set("a", "1"), set("b", strings.Repeat("y", 3<<20)), set("c", "3")}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			var want, got []string
			for _, b := range c.batches {
				want = append(want, writes(t, b)...)
			}
			records, err := record.Split(record.SoftSize, 4, 5, 100, c.batches...)
			if err != nil || len(records) != c.records {
				t.Fatalf("%d records, %v; want %d", len(records), err, c.records)
			}
			for i, encoded := range records {
				r, err := record.Decode(encoded)
				if err != nil {
					t.Fatal(err)
				}
				kind := record.Part
				if i == len(records)-1 {
					kind = record.Commit
				}
				if r.Kind != kind || r.Cell != 4 || r.Epoch != 5 || r.Number != uint64(100+i) {
					t.Errorf("record %d is %+v", i, r)
				}
				got = append(got, writes(t, r.Batch)...)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("-want +got:\n%.2000s", d)
			}
		})
	}
	if _, err := record.Split(record.SoftSize, 0, 1, 1, set("k", strings.Repeat("x", record.MaxSize))); err == nil {
		t.Error("a write is taken that no record has room for")
	}
	if _, err := record.Split(record.SoftSize, 0, 1, 1, set("k", strings.Repeat("x", record.MaxSize), "l", "y")); err == nil {
		t.Error("a write is taken that no record has room for, with another behind it")
	}
}

func TestFence(t *testing.T) {
	var f record.Fence
	takeover := func(epoch uint64, owner string) record.Record {
		return record.Record{Kind: record.Takeover, Cell: 1, Epoch: epoch, Owner: owner}
	}
	commit := func(epoch, number uint64) record.Record {
		return record.Record{Kind: record.Commit, Cell: 1, Epoch: epoch, Number: number}
	}
	other := takeover(9, "other")
	other.Cell = 2
	for i, c := range []struct {
		r    record.Record
		want bool
	}{
		{commit(0, 2), false}, // there is no owner yet
		{takeover(1, "a"), true},
		{takeover(1, "b"), false}, // who came first
		{commit(1, 2), true},
		{commit(1, 2), false}, // again
		{commit(1, 4), false}, // a gap
		{other, false},
		{takeover(3, "b"), true},
		{commit(1, 3), false}, // of who was replaced
		{commit(1, 4), false}, // of the same, who has counted on
		{commit(4, 4), false}, // of who has not taken over
		{takeover(2, "a"), false},
		{commit(3, 4), true},
		{record.Record{Kind: record.Confirm, Cell: 1, Epoch: 3, Number: 5}, true},
	} {
		before := f
		if got := f.Accept(1, uint64(i+10), &c.r); got != c.want {
			t.Errorf("record %d: accepted %v", i, got)
		} else if !got && f != before {
			t.Errorf("record %d is skipped, and changes the fence", i)
		}
	}
	for _, c := range []struct {
		r    record.Record
		want bool
	}{
		{record.Record{Kind: record.Takeover, Cell: 1, Epoch: 4, Number: 5}, false},
		{record.Record{Kind: record.Takeover, Cell: 1, Epoch: 4, Number: 6}, true},
		{record.Record{Kind: record.Takeover, Cell: 1, Epoch: 3, Number: 6}, false}, // it does not count
		{record.Record{Kind: record.Takeover, Cell: 2, Epoch: 4, Number: 6}, false},
		{record.Record{Kind: record.Commit, Cell: 1, Epoch: 4, Number: 6}, false},
	} {
		if f.Lacks(1, &c.r) != c.want {
			t.Errorf("%+v: lacks something: %v", c.r, !c.want)
		}
	}
	if f != (record.Fence{Epoch: 3, Number: 5, Position: 23, Owner: "b"}) {
		t.Errorf("%+v", f)
	}
	var b mutation.Batch
	if f.Put(&b, 1); b.Len() != 1 {
		t.Errorf("a fence is %d writes", b.Len())
	}
	if err := b.Each(func(_ mutation.Op, key, value []byte) error {
		if k, err := keyspace.Parse(key); err != nil || k.ID != keyspace.KindFence {
			t.Errorf("the key of a fence: %v", err)
		}
		got, err := record.DecodeFence(value)
		if err != nil || got != f {
			t.Errorf("read %+v, %v", got, err)
		}
		if _, err := record.DecodeFence(value[:20]); !errors.Is(err, record.ErrCorrupt) {
			t.Errorf("cut short: %v", err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestSplitIsTight: a record takes writes up to its size in bytes, and not one more.
func TestSplitIsTight(t *testing.T) {
	four := set("a", "1", "b", "2", "c", "3", "d", "4")
	half := set("a", "1", "b", "2").Size()
	for size, want := range map[int]int{half - 1: 4, half: 2, half + 1: 2, 2*half - 1: 2, 2 * half: 1} {
		records, err := record.Split(size, 0, 1, 1, four)
		if err != nil || len(records) != want {
			t.Errorf("with %d bytes a record there are %d, %v; want %d", size, len(records), err, want)
		}
	}
}
