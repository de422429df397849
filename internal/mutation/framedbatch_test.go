package mutation_test

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"godwit.dev/godwit/internal/mutation"
)

func sealed() []byte {
	b, _ := example()
	c := mutation.FramedBatch{Stream: 63, Epoch: 1 << 31, Sequence: 1<<63 + 5, Batch: *b}
	return c.AppendTo(nil)
}

func TestFramedBatchRoundTrip(t *testing.T) {
	_, want := example()
	c, err := mutation.DecodeFramedBatch(sealed())
	if err != nil {
		t.Fatal(err)
	}
	if c.Stream != 63 || c.Epoch != 1<<31 || c.Sequence != 1<<63+5 {
		t.Errorf("stream %d, epoch %d, sequence %d", c.Stream, c.Epoch, c.Sequence)
	}
	if d := cmp.Diff(want, writes(t, &c.Batch)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if again := c.AppendTo(nil); !bytes.Equal(again, sealed()) {
		t.Error("encoded again, it differs")
	}
}

func TestEmptyFramedBatchRoundTrip(t *testing.T) {
	c, err := mutation.DecodeFramedBatch((&mutation.FramedBatch{Sequence: 7}).AppendTo(nil))
	if err != nil || c.Sequence != 7 || c.Batch.Len() != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// The encoding is on disks and in logs: it may only change with a version.
func TestFramedBatchEncoding(t *testing.T) {
	c := mutation.FramedBatch{Stream: 1, Epoch: 2, Sequence: 3}
	c.Batch.Set([]byte("k"), []byte("v"))
	c.Batch.Delete([]byte("d"))
	c.Batch.SingleDelete([]byte("s"))
	c.Batch.DeleteRange([]byte("a"), []byte("b"))
	const want = "0001" + "00000002" + "0000000000000003" + "00000004" +
		"01016b0176" + "000164" + "070173" + "0f01610162"
	if got := hex.EncodeToString(c.AppendTo(nil)[4:]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAppendToAppends(t *testing.T) {
	c := mutation.FramedBatch{Sequence: 7}
	got := c.AppendTo([]byte("before"))
	if !bytes.Equal(got, append([]byte("before"), c.AppendTo(nil)...)) {
		t.Errorf("got %x", got)
	}
}

func TestAnyChangedByteIsFound(t *testing.T) {
	whole := sealed()
	for at := range whole {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1 << (at % 8)
		if _, err := mutation.DecodeFramedBatch(damaged); !errors.Is(err, mutation.ErrCorrupt) {
			t.Fatalf("byte %d changed: %v", at, err)
		}
	}
}

func TestAnyMissingByteIsFound(t *testing.T) {
	whole := sealed()
	for n := range whole {
		for _, damaged := range [][]byte{whole[:n], whole[n+1:], slices.Concat(whole[:n], whole[n+1:])} {
			if _, err := mutation.DecodeFramedBatch(damaged); !errors.Is(err, mutation.ErrCorrupt) {
				t.Fatalf("cut at byte %d: %v", n, err)
			}
		}
	}
	if _, err := mutation.DecodeFramedBatch(append(whole, 0)); !errors.Is(err, mutation.ErrCorrupt) {
		t.Errorf("a byte too many: %v", err)
	}
}

// reseal makes the checksum fit, as one who writes nonsense would.
func reseal(p []byte) []byte {
	binary.BigEndian.PutUint32(p, crc32.Checksum(p[4:], crc32.MakeTable(crc32.Castagnoli)))
	return p
}

// Nonsense under a checksum that fits is refused as well.
func TestNonsense(t *testing.T) {
	const header = 22
	const del, set, deleteRange = byte(mutation.Delete), byte(mutation.Set), byte(mutation.DeleteRange)
	framed := func(count uint32, writes ...byte) []byte {
		p := append(make([]byte, header), writes...)
		binary.BigEndian.PutUint32(p[header-4:], count)
		return reseal(p)
	}
	if c, err := mutation.DecodeFramedBatch(framed(1, set, 1, 'k', 1, 'v')); err != nil || c.Batch.Len() != 1 {
		t.Fatalf("sense is refused: %v", err)
	}
	for name, p := range map[string][]byte{
		"zeros":                  make([]byte, header),
		"count too large":        framed(2, set, 1, 'k', 1, 'v'),
		"count too small":        framed(0, set, 1, 'k', 1, 'v'),
		"write 2":                framed(1, 2, 1, 'k', 1, 'v'),
		"write 5":                framed(1, 5, 1, 'k', 1, 'v'),
		"no key":                 framed(1, del),
		"key too long":           framed(1, del, 9, 'k'),
		"no value":               framed(1, set, 1, 'k'),
		"value too long":         framed(1, set, 1, 'k', 2, 'v'),
		"no end":                 framed(1, deleteRange, 1, 'k'),
		"length without an end":  framed(1, del, 0xff),
		"length above 64 bits":   framed(1, del, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'k'),
		"length of 2^64-1 bytes": framed(1, del, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'k'),
	} {
		if _, err := mutation.DecodeFramedBatch(p); !errors.Is(err, mutation.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestFramedBatchSize(t *testing.T) {
	c := new(mutation.FramedBatch)
	const overhead = 22 + 1 + 1 + 1 + 4 // header, op, key's length, key, value's length
	c.Batch.Set([]byte("k"), make([]byte, mutation.MaxFramedBatch-overhead))
	p := c.AppendTo(nil)
	if len(p) != mutation.MaxFramedBatch {
		t.Fatalf("the test is wrong: %d bytes", len(p))
	}
	if _, err := mutation.DecodeFramedBatch(p); err != nil {
		t.Errorf("the largest framed batch: %v", err)
	}
	c.Batch.Delete(nil)
	if _, err := mutation.DecodeFramedBatch(c.AppendTo(nil)); !errors.Is(err, mutation.ErrCorrupt) {
		t.Errorf("a larger one: %v", err)
	}
}

// What is added to a decoded batch goes into memory of its own.
func TestDecodedBatchDoesNotGrowIntoItsInput(t *testing.T) {
	input := append(sealed(), "what follows it"...)
	n := len(sealed())
	c, err := mutation.DecodeFramedBatch(input[:n])
	if err != nil {
		t.Fatal(err)
	}
	c.Batch.Set([]byte("XXXX"), []byte("XXXX"))
	if got := string(input[n:]); got != "what follows it" {
		t.Errorf("what follows the framed batch became %q", got)
	}
}

func FuzzDecodeFramedBatch(f *testing.F) {
	small := mutation.FramedBatch{Stream: 1, Epoch: 2, Sequence: 3}
	small.Batch.Set([]byte("k"), []byte("value"))
	small.Batch.SingleDelete([]byte("k"))
	small.Batch.Delete([]byte("d"))
	small.Batch.DeleteRange([]byte("a"), []byte("b"))
	f.Add(small.AppendTo(nil), true)
	f.Add(small.AppendTo(nil), false)
	f.Add((&mutation.FramedBatch{}).AppendTo(nil), true)
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, p []byte, fit bool) {
		// Without a checksum that fits nothing would get past it.
		if fit && len(p) >= 4 {
			p = reseal(bytes.Clone(p))
		}
		c, err := mutation.DecodeFramedBatch(p)
		if err != nil {
			if !errors.Is(err, mutation.ErrCorrupt) || c != nil {
				t.Fatalf("refused with %+v, %v", c, err)
			}
			return
		}
		before := writes(t, &c.Batch)
		// A length may be written with more bytes than it needs, so that what
		// is built again need not be equal byte for byte; its meaning is.
		again := mutation.FramedBatch{Stream: c.Stream, Epoch: c.Epoch, Sequence: c.Sequence}
		for _, w := range before {
			switch w.Op {
			case mutation.Set:
				again.Batch.Set([]byte(w.Key), []byte(w.Value))
			case mutation.Delete:
				again.Batch.Delete([]byte(w.Key))
			case mutation.SingleDelete:
				again.Batch.SingleDelete([]byte(w.Key))
			case mutation.DeleteRange:
				again.Batch.DeleteRange([]byte(w.Key), []byte(w.Value))
			}
		}
		q := again.AppendTo(nil)
		if len(q) > len(p) {
			t.Fatalf("the shortest encoding has %d bytes, the input %d", len(q), len(p))
		}
		d, err := mutation.DecodeFramedBatch(q)
		if err != nil {
			t.Fatal(err)
		}
		if d.Stream != c.Stream || d.Epoch != c.Epoch || d.Sequence != c.Sequence {
			t.Fatalf("header %+v became %+v", c, d)
		}
		if diff := cmp.Diff(before, writes(t, &d.Batch)); diff != "" {
			t.Fatalf("-before +after:\n%s", diff)
		}
	})
}
