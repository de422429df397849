package mutation_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/mutation"
)

type write struct {
	Op         mutation.Op
	Key, Value string
}

func writes(t testing.TB, b *mutation.Batch) (ws []write) {
	t.Helper()
	err := b.Each(func(op mutation.Op, key, value []byte) error {
		if (value == nil) != (op == mutation.Delete || op == mutation.SingleDelete) {
			t.Errorf("the value of write %d is %v", op, value)
		}
		ws = append(ws, write{op, string(key), string(value)})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(ws) != b.Len() {
		t.Errorf("%d writes, and Len is %d", len(ws), b.Len())
	}
	return ws
}

func example() (*mutation.Batch, []write) {
	long := string(bytes.Repeat([]byte("long "), 1000)) // a length of two bytes
	b := new(mutation.Batch)
	b.Set([]byte("a"), []byte("1"))
	b.Set([]byte("empty"), nil)
	b.Delete([]byte("b"))
	b.SingleDelete([]byte("c"))
	b.DeleteRange([]byte("d"), []byte("e"))
	b.Set([]byte("\x00\xff"), []byte(long))
	return b, []write{
		{mutation.Set, "a", "1"},
		{mutation.Set, "empty", ""},
		{mutation.Delete, "b", ""},
		{mutation.SingleDelete, "c", ""},
		{mutation.DeleteRange, "d", "e"},
		{mutation.Set, "\x00\xff", long},
	}
}

func TestBatchKeepsWritesInOrder(t *testing.T) {
	b, want := example()
	if d := cmp.Diff(want, writes(t, b)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// A store chooses how it applies a batch by what the batch counts: it must not miss a range.
func TestBatchCountsDeletes(t *testing.T) {
	b, other := new(mutation.Batch), new(mutation.Batch)
	for range 2 {
		other.Delete([]byte("a"))
		other.SingleDelete([]byte("b"))
	}
	other.DeleteRange([]byte("c"), []byte("d"))
	b.Append(other)
	decoded, err := mutation.Decode(b.AppendTo(nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string]*mutation.Batch{"appended": b, "decoded": decoded} {
		if b.Deletes() != 4 || !b.Ranges() {
			t.Errorf("%s: %d deletes, ranges: %v", name, b.Deletes(), b.Ranges())
		}
		if b.Reset(); b.Deletes() != 0 || b.Ranges() {
			t.Errorf("%s and reset: %d deletes, ranges: %v", name, b.Deletes(), b.Ranges())
		}
	}
	b.DeleteRange([]byte("a"), []byte("b"))
	if !b.Ranges() || b.Deletes() != 0 {
		t.Errorf("a range: %d deletes, ranges: %v", b.Deletes(), b.Ranges())
	}
}

func TestOverwrite(t *testing.T) {
	b := new(mutation.Batch)
	b.Set([]byte("a"), []byte("old"))
	size := b.Size()
	b.Set([]byte("b"), []byte("2"))
	b.Overwrite(size, []byte("new"))
	if d := cmp.Diff([]write{{mutation.Set, "a", "new"}, {mutation.Set, "b", "2"}}, writes(t, b)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestText(t *testing.T) {
	for _, text := range []string{"", "a", strings.Repeat("long ", 100)} {
		p := append(mutation.AppendText([]byte("before"), text), "rest"...)[len("before"):]
		if got, rest, ok := mutation.TakeText(p); !ok || got != text || string(rest) != "rest" {
			t.Errorf("%q became %q and %q, %v", text, got, rest, ok)
		}
		whole := p[:len(p)-len("rest")]
		for n := range whole {
			if got, _, ok := mutation.TakeText(whole[:n]); ok {
				t.Errorf("%d of %d bytes are taken for %q", n, len(whole), got)
			}
		}
		if got, rest, ok := mutation.TakeText(whole); !ok || got != text || len(rest) > 0 {
			t.Errorf("without a rest %q became %q and %q, %v", text, got, rest, ok)
		}
	}
}

func TestZeroBatchIsEmpty(t *testing.T) {
	b := new(mutation.Batch)
	if ws := writes(t, b); ws != nil || b.Size() != 0 {
		t.Errorf("%d bytes, %v", b.Size(), ws)
	}
}

func TestBatchCopiesItsArguments(t *testing.T) {
	b := new(mutation.Batch)
	key, value := []byte("key"), []byte("value")
	b.Set(key, value)
	copy(key, "XXX")
	copy(value, "XXXXX")
	if d := cmp.Diff([]write{{mutation.Set, "key", "value"}}, writes(t, b)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func TestAppend(t *testing.T) {
	b := new(mutation.Batch)
	b.Delete([]byte("first"))
	other, want := example()
	size := b.Size() + other.Size()
	b.Append(other)
	want = append([]write{{mutation.Delete, "first", ""}}, want...)
	other.Reset()
	other.Set([]byte("XXXXX"), []byte("XXXXX")) // b has its own copy
	if d := cmp.Diff(want, writes(t, b)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if b.Size() != size {
		t.Errorf("the size is %d, want %d", b.Size(), size)
	}
	b.Append(b)
	if d := cmp.Diff(append(want, want...), writes(t, b)); d != "" {
		t.Errorf("appended to itself, -want +got:\n%s", d)
	}
}

func TestResetKeepsMemory(t *testing.T) {
	b, _ := example()
	b.Reset()
	if ws := writes(t, b); ws != nil || b.Size() != 0 {
		t.Errorf("%d bytes, %v", b.Size(), ws)
	}
	key, value := []byte("key"), make([]byte, 1000)
	if n := testing.AllocsPerRun(10, func() { b.Reset(); b.Set(key, value) }); n != 0 {
		t.Errorf("a write into a used batch allocates %v times", n)
	}
}

func TestEachEncodedGivesWritesAsTheyAreEncoded(t *testing.T) {
	b, want := example()
	var got []write
	var all []byte
	err := b.EachEncoded(func(encoded []byte) error {
		all = append(all, encoded...)
		one, err := mutation.Decode(encoded)
		if err == nil {
			got = append(got, writes(t, one)...)
		}
		return err
	})
	if d := cmp.Diff(want, got); err != nil || d != "" || !bytes.Equal(all, b.AppendTo(nil)) {
		t.Errorf("%v; -want +got:\n%s", err, d)
	}
	broken := new(mutation.Batch)
	broken.Set([]byte("key"), []byte("value"))
	broken.Overwrite(2, []byte{100}) // the length of the key
	err = broken.EachEncoded(func([]byte) error { return nil })
	if !errors.Is(err, mutation.ErrCorrupt) {
		t.Errorf("of a corrupt batch: %v", err)
	}
	stop, n := errors.New("stop"), 0
	err = b.EachEncoded(func([]byte) error {
		n++
		return stop
	})
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("stopped after %d writes with %v", n, err)
	}
}

func TestEachStopsAtAnError(t *testing.T) {
	b, _ := example()
	stop := errors.New("stop")
	n := 0
	err := b.Each(func(mutation.Op, []byte, []byte) error {
		if n++; n == 3 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || n != 3 {
		t.Errorf("stopped after %d writes with %v", n, err)
	}
}

// Whoever appends to a slice that Each gave must not write into the batch.
func TestEachGivesSlicesThatEndWhereTheyEnd(t *testing.T) {
	b, want := example()
	err := b.Each(func(_ mutation.Op, key, value []byte) error {
		_ = append(key, "XXXX"...)
		_ = append(value, "XXXX"...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, writes(t, b)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

func BenchmarkBatch(b *testing.B) {
	key, value := make([]byte, 24), make([]byte, 1024)
	batch := new(mutation.Batch)
	b.ReportAllocs()
	for b.Loop() {
		batch.Reset()
		for range 10 {
			batch.Set(key, value)
			batch.SingleDelete(key)
		}
		if err := batch.Each(func(mutation.Op, []byte, []byte) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
}

// What is encoded into a batch stands there as what was set, whatever size was expected.
func TestSetEncoded(t *testing.T) {
	for _, size := range []int{0, 1, 127, 128, 16383, 16384, 70000} {
		for _, about := range []int{0, 127, 128, 16384, 3 << 20} {
			value := bytes.Repeat([]byte("v"), size)
			var got, want mutation.Batch
			for _, b := range []*mutation.Batch{&got, &want} {
				b.Set([]byte("before"), []byte("x"))
			}
			if n := got.SetEncoded([]byte("key"), about, func(buf []byte) []byte { return append(buf, value...) }); n != size {
				t.Errorf("%d bytes, about %d: %d", size, about, n)
			}
			want.Set([]byte("key"), value)
			for _, b := range []*mutation.Batch{&got, &want} {
				b.Delete([]byte("behind"))
			}
			if !bytes.Equal(got.AppendTo(nil), want.AppendTo(nil)) || got.Len() != want.Len() {
				t.Errorf("%d bytes, about %d: another batch than Set makes", size, about)
			}
		}
	}
}
