// Package badblocks has the known damage of a store, in a file beside the data. While a
// damaged file is in use, substitute blocks replace its unreadable ones, so that the rest of
// the file can be read.
package badblocks

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/files"
)

// Names in a store's directory.
const (
	// Name is the name of the file with the notes.
	Name = "godwit-damage"
	// asideDir holds damaged files that the store does not use any more.
	asideDir = "damaged-files"
)

// Reserved is the prefix of the keys at which the store keeps covered records: those that an
// unreadable block may have overwritten or deleted.
var Reserved = []byte{0xff, 0xff, 0xfe}

// Covered is the key at which the record of a key that a table's damage covers is kept.
func Covered(table uint64, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(slices.Clone(Reserved), table), key...)
}

// ParseCovered is the inverse of Covered.
func ParseCovered(covered []byte) (key []byte, ok bool) {
	rest, ok := bytes.CutPrefix(covered, Reserved)
	if !ok || len(rest) < 8 {
		return nil, false
	}
	return rest[8:], true
}

// Note is the known damage of a file.
type Note struct {
	File   string
	Reason string
	Found  time.Time
	Flips  []files.Flip `json:",omitempty"` // flipped bits that are corrected
	Blocks []Block
	Spans  []Span // ranges of keys whose latest write may be lost, in order
	// Ready says that the file covers no record that would become visible, so that substitutes
	// may replace the damaged blocks.
	Ready bool
}

// Block is a damaged block of a file.
type Block struct {
	Offset, Length int64 // bytes, without the trailer of the block
	// Of a table: the key that the substitute block deletes. It is one of the keys that the
	// damaged block may hold, and within the bounds of the table.
	Key []byte `json:",omitempty"`
	// Of a table: the sequence number of the deleted write in the substitute; the deletion has
	// the next. Both are above those of all levels below the table: a read of one key takes a
	// write that is not older than the one before it for a write of another key. Notes of
	// earlier versions have none.
	Sequence uint64 `json:",omitempty"`
	// Of a blob file: the sizes of its values in bytes, as far as they are in use.
	Values []uint32 `json:",omitempty"`
}

// Span is a range of keys, both ends inclusive.
type Span struct{ From, Last []byte }

// Table reports whether the file is a table, not a blob file.
func (n *Note) Table() bool { return !strings.HasSuffix(n.File, ValuesSuffix) }

// ValuesSuffix is the suffix of the names of blob files.
const ValuesSuffix = ".blob"

// standIn is the substitute of a damaged block, with its trailer.
func (b *Block) standIn(ofValues bool) ([]byte, error) {
	if ofValues {
		return values(b.Values, int(b.Length))
	}
	return records(b.Key, max(1, b.Sequence), int(b.Length))
}

// Notes are the notes of a store.
type Notes struct {
	fs  vfs.FS
	dir string

	mu   sync.Mutex // guards what follows; held while the file is written
	list map[string]Note
}

// ErrDamaged reports that the notes themselves cannot be read.
var ErrDamaged = errors.New("the file " + Name + " is damaged")

// Read reads the notes of a store's directory. There are none if there is no file, or, with
// ErrDamaged, if it is damaged.
func Read(f vfs.FS, dir string) (*Notes, error) {
	n := &Notes{fs: f, dir: dir, list: map[string]Note{}}
	file, err := f.Open(f.PathJoin(dir, Name))
	if errors.Is(err, fs.ErrNotExist) {
		return n, nil
	}
	if err != nil {
		return n, err
	}
	p, err := io.ReadAll(file)
	if err = errors.Join(err, file.Close()); err != nil {
		return n, err
	}
	for _, text := range [][]byte{p[:len(p)/2], p[len(p)/2:]} {
		sum, text, _ := bytes.Cut(text, []byte("\n"))
		var list []Note
		if string(sum) != checksum(text) || json.Unmarshal(text, &list) != nil {
			continue
		}
		for _, note := range list {
			n.list[note.File] = note
		}
		return n, nil
	}
	return n, ErrDamaged
}

func checksum(text []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(text, crc32.MakeTable(crc32.Castagnoli)))
}

// All are the notes, ordered by file name.
func (n *Notes) All() []Note {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.all()
}

func (n *Notes) all() []Note {
	list := make([]Note, 0, len(n.list))
	for _, note := range n.list {
		list = append(list, note)
	}
	slices.SortFunc(list, func(a, b Note) int { return strings.Compare(a.File, b.File) })
	return list
}

// Of is the note of a file.
func (n *Notes) Of(file string) (Note, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	note, ok := n.list[file]
	return note, ok
}

// Put makes a note durable, and replaces the one of the same file.
func (n *Notes) Put(note Note) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, was := n.list[note.File]
	n.list[note.File] = note
	err := n.write(n.dir)
	if err != nil {
		if delete(n.list, note.File); was {
			n.list[note.File] = before
		}
	}
	return err
}

// CopyTo writes the notes, if there are any, and links the files that were set aside into
// another directory.
func (n *Notes) CopyTo(dir string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) == 0 {
		return nil
	}
	aside, to := n.fs.PathJoin(n.dir, asideDir), n.fs.PathJoin(dir, asideDir)
	names, err := n.fs.List(aside)
	if err == nil {
		err = n.fs.MkdirAll(to, 0o750)
		for _, name := range names {
			err = errors.Join(err, vfs.LinkOrCopy(n.fs, n.fs.PathJoin(aside, name), n.fs.PathJoin(to, name)))
		}
		err = errors.Join(err, files.SyncDir(n.fs, to))
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, n.write(dir))
}

func (n *Notes) write(dir string) error {
	text, err := json.Marshal(n.all())
	if err != nil {
		return err
	}
	path := n.fs.PathJoin(dir, Name)
	file, err := n.fs.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = file.Write(bytes.Repeat(append([]byte(checksum(text)+"\n"), text...), 2)) // two copies, in case one is damaged
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, n.fs.Remove(path+".tmp"))
	}
	if err := n.fs.Rename(path+".tmp", path); err != nil {
		return err
	}
	return files.SyncDir(n.fs, dir)
}

// Check makes the substitutes of a note's blocks and reads the file with them. It fails if that
// is impossible.
func (n *Notes) Check(note *Note) error {
	patched := New(n.fs)
	if err := patched.Patch(note); err != nil {
		return err
	}
	path := n.fs.PathJoin(n.dir, note.File)
	if !note.Table() {
		return nil // a block of values is only read by offset
	}
	gaps, err := files.ReadTable(patched, path, nil, func(files.Write) error { return nil })
	if err == nil && len(gaps) > 0 {
		err = gaps[0].Err
	}
	return err
}
