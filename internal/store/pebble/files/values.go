package files

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/blob"
	"github.com/cockroachdb/pebble/v2/sstable/block"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrNoValues reports a value whose blob file is not known.
var ErrNoValues = errors.New("nothing says which file holds the value")

// Values reads the values of one table that are in blob files. It is not safe for concurrent
// use.
type Values struct {
	fs    vfs.FS
	dir   string
	files []uint64 // numbers of .blob files, by the table's references; 0 is unknown
	vf    *blob.ValueFetcher
}

// NewValues reads values for a table with references to these .blob files in dir. 0 is an
// unknown file.
func NewValues(fs vfs.FS, dir string, files []uint64) *Values {
	return &Values{fs: fs, dir: dir, files: files}
}

// Close closes the open files.
func (v *Values) Close() {
	if v == nil || v.vf == nil {
		return
	}
	_ = v.vf.Close()
	v.vf = nil
}

// Types that only Pebble can name are inferred from the methods that have them.
type (
	mapping[ID, File ~uint64] struct{}
	opener[File ~uint64]      struct{ v *Values }
)

// Lookup implements blob.FileMapping: this package identifies a file by its number.
func (mapping[ID, File]) Lookup(id ID) (File, bool) { return File(id), true }

// GetValueReader implements blob.ReaderProvider.
func (o opener[File]) GetValueReader(_ context.Context, n File) (blob.ValueReader, func(), error) {
	return o.v.open(uint64(n))
}

func newMapping[ID, File ~uint64](func(blob.FileMapping, ID) (File, bool)) mapping[ID, File] {
	return mapping[ID, File]{}
}

func newOpener[File ~uint64](_ func(blob.ReaderProvider, context.Context, File) (blob.ValueReader, func(), error), v *Values) opener[File] {
	return opener[File]{v}
}

func fetch[ID ~uint64](
	f func(context.Context, ID, blob.BlockID, blob.BlockValueID) ([]byte, bool, error), file uint64, r *Reference,
) ([]byte, error) {
	value, _, err := f(context.Background(), ID(file), blob.BlockID(r.Block), blob.BlockValueID(r.Value))
	return value, err
}

func (v *Values) open(n uint64) (blob.ValueReader, func(), error) {
	file, err := v.fs.Open(v.fs.PathJoin(v.dir, ValuesName(n)))
	if err != nil {
		return nil, nil, err
	}
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	r, err := blob.NewFileReader(context.Background(), readable, blob.FileReaderOptions{})
	if err != nil {
		return nil, nil, errors.Join(err, readable.Close())
	}
	return r, func() { _ = r.Close() }, nil
}

// get reads a value.
func (v *Values) get(r *Reference) ([]byte, error) {
	if v == nil || int(r.File) >= len(v.files) || v.files[r.File] == 0 {
		return nil, ErrNoValues
	}
	return v.from(v.files[r.File], r)
}

func (v *Values) from(file uint64, r *Reference) (value []byte, err error) {
	defer func() {
		if err != nil {
			v.vf = nil // the state of its open files is unknown
			err = fmt.Errorf("%s: %w", ValuesName(file), err)
		}
	}()
	defer guard(&err)
	if v.vf == nil {
		v.vf = new(blob.ValueFetcher)
		v.vf.Init(newMapping(blob.FileMapping.Lookup), newOpener(blob.ReaderProvider.GetValueReader, v), block.ReadEnv{})
	}
	if value, err = fetch(v.vf.Fetch, file, r); err != nil {
		return nil, err
	}
	if len(value) != int(r.Size) {
		return nil, fmt.Errorf("a value has %d bytes, not %d", len(value), r.Size)
	}
	return value, nil
}

// valuesFooter is the length of a blob file's footer, which has a checksum (4) of the rest of
// it.
const valuesFooter = 38

// CheckValues reports damage of a blob file due to which no value can be read.
func CheckValues(file vfs.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if info.Size() < valuesFooter {
		return fmt.Errorf("%w: it has %d bytes", ErrUnreadable, info.Size())
	}
	var p [valuesFooter]byte
	if _, err := file.ReadAt(p[:], info.Size()-valuesFooter); err != nil {
		return err
	}
	if Checksum(p[4:]) != binary.LittleEndian.Uint32(p[:]) {
		return fmt.Errorf("%w: its end is damaged", ErrUnreadable)
	}
	return nil
}

// ValuesAt describes a block of a blob file.
type ValuesAt struct {
	Damaged bool
	// Index is the index in the block of a value, by the block and value numbers in tables'
	// references; false: it is in another block. Index is nil if it is no block of values.
	Index func(block, value uint32) (int, bool)
}

// ReadValuesAt verifies the checksum of one block of a blob file, and finds its values. It
// fails with ErrUnreadable if the index of the file is damaged.
func ReadValuesAt(fs vfs.FS, path string, offset, length int64) (at ValuesAt, err error) {
	file, err := fs.Open(path)
	if err != nil {
		return at, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	whole, err := blockWhole(file, offset, length)
	if err != nil {
		return at, errors.Join(err, file.Close())
	}
	list, err := valuesList(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return at, err
	}
	defer guard(&err)
	at.Damaged = !whole
	at.Index = valuesIndex(list, uint64(offset))
	return at, nil
}

// valuesList is the index block of a blob file. It fails with ErrUnreadable if that
// is damaged.
func valuesList(file vfs.File) (list []byte, err error) {
	readable, err := sstable.NewSimpleReadable(unclosed{file})
	if err != nil {
		return nil, err
	}
	r, err := blob.NewFileReader(context.Background(), readable, blob.FileReaderOptions{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrUnreadable, err), readable.Close())
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	defer guard(&err)
	index, err := r.ReadIndexBlock(context.Background(), block.ReadEnv{}, readable.NewReadHandle(0))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	defer index.Release()
	return bytes.Clone(index.BlockData()), nil
}

// unclosed is a file that its reader does not close.
type unclosed struct{ vfs.File }

func (unclosed) Close() error { return nil }

// CheckAllValues verifies the checksums of all blocks of a blob file. It fails with
// ErrUnreadable at the first wrong one, and names its position; errors of the disk are returned
// as they are.
func CheckAllValues(fs vfs.FS, path string) (err error) {
	file, err := fs.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	list, err := valuesList(file)
	if err != nil {
		return err
	}
	defer guard(&err)
	var d colblk.BlockDecoder
	d.Init(list, 4)
	begins := colblk.DecodeColumn(&d, 1, d.Rows()+1, colblk.DataTypeUint, colblk.DecodeUnsafeUints)
	for i := range d.Rows() {
		offset := int64(begins.At(i))
		length := int64(begins.At(i+1)) - offset - BlockEnd
		whole, err := blockWhole(file, offset, length)
		if err != nil {
			return err
		}
		if !whole {
			return blockDamage("checksum", offset, length)
		}
	}
	return nil
}

// valuesIndex decodes the index of a blob file: the number of virtual blocks (4), a column with
// the block of each and the number of values before it, and a column with the offsets of
// blocks.
func valuesIndex(list []byte, offset uint64) func(block, value uint32) (int, bool) {
	count := int(binary.LittleEndian.Uint32(list))
	var d colblk.BlockDecoder
	d.Init(list, 4)
	virtual := colblk.DecodeColumn(&d, 0, count, colblk.DataTypeUint, colblk.DecodeUnsafeUints)
	begins := colblk.DecodeColumn(&d, 1, d.Rows()+1, colblk.DataTypeUint, colblk.DecodeUnsafeUints)
	own := -1
	for i := range d.Rows() {
		if begins.At(i) == offset {
			own = i
		}
	}
	if own < 0 {
		return nil // it is no block of values
	}
	return func(block, value uint32) (int, bool) {
		if count == 0 {
			return int(value), int(block) == own
		}
		if int(block) >= count {
			return 0, false
		}
		v := virtual.At(int(block))
		return int(uint32(v>>32)) + int(value), int(uint32(v)) == own
	}
}

// findValues finds the blob files of a table that no manifest names, by the positions and
// lengths of the table's values. A file is accepted only if no other one has all of them.
func findValues(fs vfs.FS, dir, path string, candidates []uint64) ([]uint64, error) {
	t, err := openTable(fs, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	var ref *Reference
	handles := sstable.DebugHandlesBlobContext
	handles.BlobHandleFn = noting(handles.BlobHandleFn, &ref)
	var asked [][]*Reference
	if _, err := walk(t, handles, nil, func(Write) error {
		if ref != nil {
			for int(ref.File) >= len(asked) {
				asked = append(asked, nil)
			}
			asked[ref.File] = append(asked[ref.File], ref)
		}
		ref = nil
		return nil
	}); err != nil {
		return nil, err
	}
	found := make([]uint64, len(asked))
	for i, refs := range asked {
		for _, n := range candidates {
			v := NewValues(fs, dir, nil)
			missing := slices.ContainsFunc(refs, func(r *Reference) bool {
				_, err := v.from(n, r)
				return err != nil
			})
			v.Close()
			if missing {
				continue
			}
			if found[i] != 0 { // it is ambiguous
				found[i] = 0
				break
			}
			found[i] = n
		}
	}
	return found, nil
}
