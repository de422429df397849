package quarantine

import (
	"encoding/binary"
	"errors"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"

	"godwit.dev/godwit/internal/store/pebble/files"
)

// errNoBlock reports a block that is too short for one that stands for it.
var errNoBlock = errors.New("no block of this length can stand for it")

// records is a block of a table, length bytes without its end, that holds no record:
// the key last, which ends the block in the table's index, is deleted there, below
// any other write of it.
func records(last []byte, length int) ([]byte, error) {
	// A deleted write of the same key makes up the length.
	filler := length
	for range 8 {
		schema := colblk.DefaultKeySchema(pebble.DefaultComparer, 16)
		var e colblk.DataBlockEncoder
		e.Init(&schema)
		add := func(trailer uint64, value []byte) {
			compared := e.KeyWriter.ComparePrev(last)
			k := pebble.InternalKey{UserKey: last}
			setTrailer(&k.Trailer, trailer)
			e.Add(k, value, block.InPlaceValuePrefix(compared.PrefixEqual()), compared, false)
		}
		add(1<<8|uint64(pebble.InternalKeyKindDelete), nil)
		add(uint64(pebble.InternalKeyKindSet), make([]byte, filler))
		size := e.Size()
		if size == length {
			data, _ := e.Finish(e.Rows(), size)
			return sealed(data), nil
		}
		if filler += length - size; filler < 0 {
			break
		}
	}
	return nil, errNoBlock
}

func setTrailer[T ~uint64](t *T, v uint64) { *t = T(v) }

// values is a block of a file of values, length bytes without its end, in which all
// values are empty.
func values(length int) ([]byte, error) {
	// A block is full long before it has so many values of those that are kept apart.
	for _, n := range []int{1024, 256, 64} {
		filler := length
		for range 8 {
			var b colblk.RawBytesBuilder
			b.Init()
			for range n {
				b.Put(nil)
			}
			b.Put(make([]byte, filler))
			rows := b.Rows()
			size := int(b.Size(rows, colblk.HeaderSize(1, 0))) + 1
			if size == length {
				var e colblk.BlockEncoder
				e.Init(size, colblk.Header{Version: colblk.Version1, Columns: 1, Rows: uint32(rows)}, 0)
				e.Encode(rows, &b)
				return sealed(e.Finish()), nil
			}
			if filler += length - size; filler < 0 {
				break
			}
		}
	}
	return nil, errNoBlock
}

// sealed is an uncompressed block with its end.
func sealed(data []byte) []byte {
	p := make([]byte, 0, len(data)+files.BlockEnd)
	p = append(append(p, data...), 0)
	return binary.LittleEndian.AppendUint32(p, files.Checksum(p))
}
