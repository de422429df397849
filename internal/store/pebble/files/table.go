package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/blob"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Kinds of writes, with Pebble's numbers.
const (
	Delete       = uint8(pebble.InternalKeyKindDelete)
	Set          = uint8(pebble.InternalKeyKindSet)
	SingleDelete = uint8(pebble.InternalKeyKindSingleDelete)
	DeleteRange  = uint8(pebble.InternalKeyKindRangeDelete)
)

// Write is one write in a table or a log. Its slices are valid during the call.
type Write struct {
	Key      []byte
	Value    []byte // of a set; the exclusive end of a range
	Sequence uint64
	Kind     uint8
	// Err is why the value cannot be read.
	Err error
	// Apart refers to the value in a blob file; nil: it is in the table.
	Apart *Reference
}

// Gap is a range of keys of a table that cannot be read, [From, To]. A nil To is the end of the
// key space.
type Gap struct {
	From, To []byte
	Err      error
}

// ErrUnreadable reports a table, or a blob file, of which nothing can be read.
var ErrUnreadable = errors.New("nothing of the file can be read")

// errRecovered reports a panic while damaged data was read.
var errRecovered = errors.New("not of this form")

func guard(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("%w: %v", errRecovered, p)
	}
}

// ReadTable calls f for each write of a table, range deletions first, and returns the gaps. v
// reads the values in blob files; with nil they are not read.
func ReadTable(fs vfs.FS, path string, v *Values, f func(Write) error) (gaps []Gap, err error) {
	t, err := openTable(fs, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	if ranges, err := readRanges(t, f); err != nil {
		return nil, err
	} else if ranges != nil {
		gaps = append(gaps, Gap{Err: ranges})
	}
	more, err := readPoints(t, v, nil, f)
	return append(gaps, more...), err
}

// ReadPoints calls f for each point write of a table, from a key on, until f fails, and returns
// the gaps up to there.
func ReadPoints(fs vfs.FS, path string, v *Values, from []byte, f func(Write) error) (gaps []Gap, err error) {
	t, err := openTable(fs, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = t.Close() }()
	return readPoints(t, v, from, f)
}

func openTable(fs vfs.FS, path string) (t *sstable.Reader, err error) {
	file, err := fs.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	defer func() {
		if err != nil {
			t, err = nil, errors.Join(fmt.Errorf("%w: %w", ErrUnreadable, err), file.Close())
		}
	}()
	defer guard(&err)
	readable, err := sstable.NewSimpleReadable(file)
	if err != nil {
		return nil, err
	}
	return sstable.NewReader(context.Background(), readable, new(pebble.Options).MakeReaderOptions())
}

// stopped is an error of the caller's f, which is no damage.
type stopped struct{ error }

func (s stopped) Unwrap() error { return s.error }

// readRanges passes the range deletions to f. damage says why some are missing.
func readRanges(t *sstable.Reader, f func(Write) error) (damage, err error) {
	var caught error
	func() {
		defer guard(&caught)
		it, e := t.NewRawRangeDelIter(context.Background(), sstable.NoFragmentTransforms, sstable.NoReadEnv)
		if e != nil || it == nil {
			caught = e
			return
		}
		defer it.Close()
		span, e := it.First()
		for ; span != nil && e == nil; span, e = it.Next() {
			for _, k := range span.Keys {
				if uint8(k.Kind()) != DeleteRange {
					continue
				}
				if e := f(Write{Key: span.Start, Value: span.End, Sequence: uint64(k.SeqNum()), Kind: DeleteRange}); e != nil {
					caught = stopped{e}
					return
				}
			}
		}
		caught = e
	}()
	if s, ok := errors.AsType[stopped](caught); ok {
		return nil, s.error
	}
	return caught, nil
}

// Reference is the position of a value in a blob file.
type Reference struct {
	File  uint32 // index among the table's references
	Block uint32
	Value uint32
	Size  uint32 // bytes
}

// noting wraps f to store its argument in ref. Its result has a type that only Pebble can name.
func noting[V any](f func(blob.InlineHandlePreface, []byte) V, ref **Reference) func(blob.InlineHandlePreface, []byte) V {
	return func(p blob.InlineHandlePreface, rest []byte) V {
		s := blob.DecodeHandleSuffix(rest)
		*ref = &Reference{uint32(p.ReferenceID), uint32(s.BlockID), uint32(s.ValueID), p.ValueLen}
		return f(p, rest)
	}
}

// points are the methods of a table's iterator that are used.
type points interface {
	Error() error
	Close() error
}

// readPoints reads the keys of a table from at on. After a damaged block it continues with the
// first key behind it.
func readPoints(t *sstable.Reader, v *Values, at []byte, f func(Write) error) (gaps []Gap, err error) {
	var ref *Reference
	handles := sstable.DebugHandlesBlobContext
	handles.BlobHandleFn = noting(handles.BlobHandleFn, &ref)
	var done []byte // the latest key; and all before at were passed to f
	for {
		damage, err := walk(t, handles, at, func(w Write) error {
			w.Err, w.Apart, ref = nil, ref, nil
			if w.Apart != nil {
				w.Value, w.Err = v.get(w.Apart)
			}
			done = append(done[:0], w.Key...)
			return f(w)
		})
		if err != nil || damage == nil {
			return gaps, err
		}
		if !readable(t, handles, nil) {
			return append(gaps, Gap{From: bytes.Clone(done), Err: damage}), nil
		}
		from := done
		if bytes.Compare(at, done) > 0 {
			from = at
		}
		next := append(Largest(func(key []byte) bool {
			return bytes.Compare(key, from) <= 0 || !readable(t, handles, key)
		}), 0)
		gaps = append(gaps, Gap{From: bytes.Clone(from), To: next, Err: damage})
		if len(next) > LongestKey { // nothing after it can be read
			gaps[len(gaps)-1].To = nil
			return gaps, nil
		}
		at = bytes.Clone(next)
	}
}

// walk passes the writes of a table to f, from a key on, until a block is damaged.
func walk(t *sstable.Reader, handles sstable.TableBlobContext, from []byte, f func(Write) error) (damage, err error) {
	func() {
		defer guard(&damage)
		it, e := t.NewIter(sstable.NoTransforms, nil, nil, handles)
		if e != nil {
			damage = e
			return
		}
		defer closing(it, &damage)
		kv := it.SeekGE(from, 0)
		for ; kv != nil; kv = it.Next() {
			value, _, e := kv.Value(nil)
			w := Write{Key: kv.K.UserKey, Value: value, Sequence: uint64(kv.K.SeqNum()), Kind: uint8(kv.K.Kind())}
			if e != nil {
				w.Err = e
			}
			if err = f(w); err != nil {
				return
			}
		}
	}()
	return damage, err
}

func closing(it points, damage *error) {
	*damage = errors.Join(*damage, it.Error(), it.Close())
}

// readable reports whether a table can be read at a key; nil: whether its index can be read.
func readable(t *sstable.Reader, handles sstable.TableBlobContext, key []byte) bool {
	if key != nil {
		return seek(t, handles, key) == nil
	}
	var damage error
	func() {
		defer guard(&damage)
		it, e := t.NewIter(sstable.NoTransforms, nil, nil, handles)
		if e != nil {
			damage = e
			return
		}
		closing(it, &damage)
	}()
	return damage == nil
}

// LongestKey bounds the common prefix of two keys, in bytes.
const LongestKey = 96

// Largest finds the largest key of at most LongestKey bytes for which is holds, given that it
// holds for all smaller ones, too.
func Largest(is func(key []byte) bool) []byte { return largest(LongestKey, is) }

func largest(longest int, is func(key []byte) bool) []byte {
	key := make([]byte, 0, LongestKey+2)
	for len(key) < longest {
		if !is(append(key, 0)) {
			return key
		}
		low, high := 0, 256 // is holds with low and not with high
		for high-low > 1 {
			if mid := (low + high) / 2; is(append(key, byte(mid))) {
				low = mid
			} else {
				high = mid
			}
		}
		key = append(key, byte(low))
	}
	return key
}
