// Package quarantine keeps what of a store is known to be damaged: in a file beside the
// data, across starts, and for as long as the damaged file is in use with blocks that
// stand for those that cannot be read, so that the rest of the file can be.
package quarantine

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
	// Name is that of the file that the notes are in.
	Name = "godwit-damage"
	// AsideDir holds the damaged files that the store has no use for any more.
	AsideDir = "damaged-files"
)

// Reserved is the prefix of keys at which the store keeps what damage covers: records
// that may have been written or deleted again in a block that cannot be read.
var Reserved = []byte{0xff, 0xff, 0xfe}

// Covered is where the record of a key is kept that a table's damage covers.
func Covered(table uint64, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(slices.Clone(Reserved), table), key...)
}

// ParseCovered is the key that Covered was given.
func ParseCovered(covered []byte) (key []byte, ok bool) {
	rest, ok := bytes.CutPrefix(covered, Reserved)
	if !ok || len(rest) < 8 {
		return nil, false
	}
	return rest[8:], true
}

// Note is what is known of a damaged file.
type Note struct {
	File   string
	Reason string
	Found  time.Time
	Flips  []files.Flip `json:",omitempty"` // which are put right
	Blocks []Block
	Spans  []Span // of keys whose latest write may be lost, in their order
	// Ready: nothing that the file covers can come to light, so that other blocks may
	// stand for the damaged ones.
	Ready bool
}

// Block is a damaged block of a file.
type Block struct {
	Offset, Length int64 // bytes, without the end of the block
	// Of a table: the key that the block which stands for it deletes, one of those that
	// the damaged one may hold, and within the bounds of the table.
	Key []byte `json:",omitempty"`
	// Of a table: the sequence number that the deleted write has there; the deletion has
	// the next. Both are above those of whatever lies below the table: a read of one key
	// takes a write that is not older than the one before it for that of another key.
	// Notes of earlier versions have none.
	Sequence uint64 `json:",omitempty"`
	// Of a blob file: their sizes in bytes, as far as they are in use.
	Values []uint32 `json:",omitempty"`
}

// Span is a range of keys, both ends inclusive.
type Span struct{ From, Last []byte }

// Table reports whether the file has records, and not values.
func (n *Note) Table() bool { return !strings.HasSuffix(n.File, ValuesSuffix) }

// ValuesSuffix is that of the names of blob files.
const ValuesSuffix = ".blob"

// standIn is a block that stands for a damaged one, with its end.
func (b *Block) standIn(ofValues bool) ([]byte, error) {
	if ofValues {
		return values(b.Values, int(b.Length))
	}
	return records(b.Key, max(1, b.Sequence), int(b.Length))
}

// Notes are those of a store.
type Notes struct {
	fs  vfs.FS
	dir string

	mu   sync.Mutex // guards what follows; held while the file is written
	list map[string]Note
}

// ErrDamaged reports that the notes themselves cannot be read.
var ErrDamaged = errors.New("the file " + Name + " is damaged")

// Read reads the notes of a store's directory. There are none if there is no file, or,
// with ErrDamaged, if it is damaged.
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

// All are the notes, by the names of the files.
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

// Put makes a note durable, in place of the one of the same file.
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

// CopyTo writes the notes, if there are any, and links the files that were set aside
// into another directory.
func (n *Notes) CopyTo(dir string) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.list) == 0 {
		return nil
	}
	aside, to := n.fs.PathJoin(n.dir, AsideDir), n.fs.PathJoin(dir, AsideDir)
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
	_, err = file.Write(bytes.Repeat(append([]byte(checksum(text)+"\n"), text...), 2)) // one for the other
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, n.fs.Remove(path+".tmp"))
	}
	if err := n.fs.Rename(path+".tmp", path); err != nil {
		return err
	}
	return files.SyncDir(n.fs, dir)
}

// Check makes the blocks that are to stand for those of a note and reads the file with
// them. It fails if that cannot be done.
func (n *Notes) Check(note *Note) error {
	patched := New(n.fs)
	if err := patched.Patch(note); err != nil {
		return err
	}
	path := n.fs.PathJoin(n.dir, note.File)
	if !note.Table() {
		return nil // a block of values is read by nothing but its offset
	}
	gaps, err := files.ReadTable(patched, path, nil, func(files.Write) error { return nil })
	if err == nil && len(gaps) > 0 {
		err = gaps[0].Err
	}
	return err
}
