package badblocks

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/block/blockkind"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"

	"godwit.dev/godwit/internal/store/pebble/files"
)

// errNoBlock reports a block that is too short to be replaced.
var errNoBlock = errors.New("no block of this length can stand for it")

// records is a substitute for a block of a table, length bytes without its trailer, without
// visible records: it writes a key with a sequence number, and deletes it with the next.
func records(key []byte, sequence uint64, length int) ([]byte, error) {
	return fit(length, func(filler []byte) []byte {
		schema := colblk.DefaultKeySchema(pebble.DefaultComparer, 16)
		var e colblk.DataBlockEncoder
		e.Init(&schema)
		add := func(trailer uint64, value []byte) {
			compared := e.KeyWriter.ComparePrev(key)
			k := pebble.InternalKey{UserKey: key}
			setTrailer(&k.Trailer, trailer)
			e.Add(k, value, block.InPlaceValuePrefix(compared.PrefixEqual()), compared, false)
		}
		// Not sequence 0, after which Pebble expects no other write of the key.
		add((sequence+1)<<8|uint64(pebble.InternalKeyKindDelete), nil)
		add(sequence<<8|uint64(pebble.InternalKeyKindSet), filler) // it is deleted
		data, _ := e.Finish(e.Rows(), e.Size())
		return data
	})
}

func setTrailer[T ~uint64](t *T, v uint64) { *t = T(v) }

// values is a substitute for a block of a blob file, length bytes without its trailer, whose
// values have these sizes and the text of lost ones.
func values(sizes []uint32, length int) ([]byte, error) {
	return fit(length, func(filler []byte) []byte {
		var b colblk.RawBytesBuilder
		b.Init()
		for _, n := range sizes {
			b.Put(lost(int(n)))
		}
		b.Put(filler)
		rows := b.Rows()
		var e colblk.BlockEncoder
		e.Init(int(b.Size(rows, colblk.HeaderSize(1, 0)))+1, colblk.Header{Version: colblk.Version1, Columns: 1, Rows: uint32(rows)}, 0)
		e.Encode(rows, &b)
		return e.Finish()
	})
}

// fit finds a filler with which a block, compressed if necessary, has a length, and adds the
// trailer.
func fit(length int, build func(filler []byte) []byte) ([]byte, error) {
	empty := len(build(nil))
	for n, tries := length-empty, 0; n >= 0 && tries < 8; tries++ {
		data := build(make([]byte, n))
		if len(data) == length {
			return sealed(data, 0), nil
		}
		n += length - len(data)
	}
	compressor := block.MakeCompressor(sstable.SnappyCompression)
	defer compressor.Close()
	noise := make([]byte, 0, length+sha256.Size)
	for n := uint64(0); len(noise) < length; n++ {
		sum := sha256.Sum256(binary.BigEndian.AppendUint64(nil, n))
		noise = append(noise, sum[:]...)
	}
	// Incompressible bytes make up the length, and some compressible ones help where one byte
	// more adds two.
	for zeros := range 64 {
		for n, tries := max(0, length-empty), 0; n >= 0 && n <= length && tries < 16; tries++ {
			indicator, data := compressor.Compress(nil, build(append(make([]byte, zeros), noise[:n]...)), blockkind.SSTableData)
			if len(data) == length {
				return sealed(data, byte(indicator)), nil
			}
			n += length - len(data)
		}
	}
	return nil, errNoBlock
}

// sealed is a block with its trailer.
func sealed(data []byte, compressed byte) []byte {
	p := make([]byte, 0, len(data)+files.BlockEnd)
	p = append(append(p, data...), compressed)
	return binary.LittleEndian.AppendUint32(p, files.Checksum(p))
}

// The repeated text of a lost value. No record begins with a zero and the rest of it.
var lostText = []byte("\x00godwit: this value was lost as the disk damaged it\x00\xff\xfe")

func lost(n int) []byte { return bytes.Repeat(lostText, n/len(lostText)+1)[:n] }

// Lost reports whether a value replaces a lost one.
func Lost(value []byte) bool {
	return len(value) >= len(lostText) && bytes.HasPrefix(value, lostText) && bytes.Equal(value, lost(len(value)))
}
