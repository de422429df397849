package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// BlockEnd is the length of a block's trailer: its compression (1) and a checksum of the data
// and the compression (4).
const BlockEnd = 5

// longestEnd bounds the key that ends a block in a table's index, in bytes.
const longestEnd = 4 << 10

// Block is a block of a table's records.
type Block struct {
	Offset, Length int64 // bytes, without the BlockEnd
	// From and Last bound the keys that the block may hold, both inclusive. Last is the end of
	// the block in the table's index.
	From, Last []byte
	// First is the smallest key for which the table's index leads to the block; empty: it has
	// no smallest. From may be less: a search for a key between the last key of the block
	// before and that block's end in the index reads that block.
	First []byte
}

// blockError is the error of reading a block that is damaged.
type blockError struct{ offset int64 }

func (b *blockError) Error() string { return fmt.Sprintf("the block at byte %d is damaged", b.offset) }

// without is a file system that cannot read some blocks, in all files.
type without struct {
	vfs.FS
	blocks map[int64]bool
}

func (w without) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := w.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return withoutFile{f, w.blocks}, nil
}

type withoutFile struct {
	vfs.File
	blocks map[int64]bool
}

func (f withoutFile) ReadAt(p []byte, offset int64) (int, error) {
	if f.blocks[offset] {
		return 0, &blockError{offset}
	}
	return f.File.ReadAt(p, offset)
}

// DamagedBlocks finds the damaged data blocks of a table, in order. It fails with ErrUnreadable
// if another part of the table is damaged that is needed to find the records.
func DamagedBlocks(fs vfs.FS, path string) (damaged []Block, err error) {
	t, err := openTable(fs, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	file, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	bad, all := map[int64]bool{}, map[int64]bool{}
	if err := layout(t, func(kind string, offset, length int64) error {
		whole, err := blockWhole(file, offset, length)
		if kind == "data" {
			all[offset] = true
		}
		switch {
		case err != nil:
			return err
		case whole:
		case kind == "data":
			bad[offset] = true
			damaged = append(damaged, Block{Offset: offset, Length: length})
		default:
			return blockDamage(kind, offset, length)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if len(damaged) == 0 {
		return nil, nil
	}
	rest, err := openTable(without{fs, bad}, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rest.Close() }()
	index, err := openTable(without{fs, all}, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = index.Close() }()
	return damaged, bound(rest, index, damaged)
}

// layout calls f for each block of a table.
func layout(t *sstable.Reader, f func(kind string, offset, length int64) error) (err error) {
	defer guard(&err)
	l, err := t.Layout()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	for _, h := range l.Data {
		err = errors.Join(err, f("data", int64(h.Offset), int64(h.Length)))
	}
	for _, h := range l.Index {
		err = errors.Join(err, f("index", int64(h.Offset), int64(h.Length)))
	}
	for kind, h := range map[string]struct{ offset, length uint64 }{
		"upper index": {l.TopIndex.Offset, l.TopIndex.Length}, "deletions of ranges": {l.RangeDel.Offset, l.RangeDel.Length},
		"properties": {l.Properties.Offset, l.Properties.Length}, "list of blocks": {l.MetaIndex.Offset, l.MetaIndex.Length},
		"list of values": {l.BlobReferenceIndex.Offset, l.BlobReferenceIndex.Length},
	} {
		if h.length > 0 {
			err = errors.Join(err, f(kind, int64(h.offset), int64(h.length)))
		}
	}
	return err
}

// blockWhole reports whether a block's checksum is right.
func blockWhole(file io.ReaderAt, offset, length int64) (bool, error) {
	p := make([]byte, length+BlockEnd)
	if n, err := file.ReadAt(p, offset); n < len(p) {
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		return false, err
	}
	return Checksum(p[:length+1]) == binary.LittleEndian.Uint32(p[length+1:]), nil
}

// bound finds the keys of damaged blocks. t cannot read the damaged blocks, and index cannot
// read any data block.
func bound(t, index *sstable.Reader, damaged []Block) error {
	handles := sstable.DebugHandlesBlobContext
	at := []byte{}
	for i := range damaged {
		b := &damaged[i]
		b.From = bytes.Clone(at)
		damage, err := walk(t, handles, at, func(w Write) error {
			b.From = append(append(b.From[:0], w.Key...), 0)
			return nil
		})
		if err != nil {
			return err
		}
		if at, ok := errors.AsType[*blockError](damage); !ok || at.offset != b.Offset {
			return fmt.Errorf("%w: it is damaged at byte %d, and a reading says %w", ErrUnreadable, b.Offset, damage)
		}
		// last is the last key that the index has in the blocks up to an offset.
		last := func(offset int64) []byte {
			return largest(longestEnd, func(key []byte) bool {
				met, ok := errors.AsType[*blockError](seek(index, handles, key))
				return ok && met.offset <= offset
			})
		}
		if b.Last = last(b.Offset); len(b.Last) >= longestEnd {
			return fmt.Errorf("%w: the keys of its block at byte %d are not known", ErrUnreadable, b.Offset)
		}
		if before := last(b.Offset - 1); len(before) > 0 {
			b.First = append(before, 0)
		}
		if bytes.Compare(b.First, b.Last) > 0 { // the writes of one key begin in the block before
			b.First = b.Last
		}
		at = append(bytes.Clone(b.Last), 0)
	}
	return nil
}

// seek is the error of a search for a key in damaged blocks.
func seek(t *sstable.Reader, handles sstable.TableBlobContext, key []byte) (damage error) {
	defer guard(&damage)
	it, err := t.NewIter(sstable.NoTransforms, nil, nil, handles)
	if err != nil {
		return err
	}
	defer closing(it, &damage)
	it.SeekGE(key, 0)
	return nil
}
