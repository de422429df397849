// Package mark records, in a file beside the write-ahead log, up to where the log is durable.
// So a truncated or missing log is distinguished from a complete one.
package mark

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Name is the name of the file, in the store's directory.
const Name = "godwit-mark"

// Mark is a lower bound of the durable data.
type Mark struct {
	At       time.Time
	Clean    bool   // the store was closed
	Format   uint32 // of the store's directory
	Sequence uint64 // of the latest write known to be durable
	Logs     []File // not yet flushed to tables, in order
	// Manifests are the latest two.
	Manifests []File
}

// File is a file and its durable length.
type File struct {
	Number  uint64
	Durable int64 // bytes from its beginning
}

// The file has two slots of slotSize bytes, which are written alternately: a crash while one is
// written leaves the other. A slot: magic (8), checksum of the rest (4), its length (4),
// generation (8), and the mark.
const (
	slotSize = 4 << 10
	head     = 8 + 4 + 4 + 8
	magic    = "gdwtmark"

	// maxFiles bounds the files of a mark. If there are more logs, the latest are kept.
	maxFiles = 100
)

// Errors of Read.
var (
	// ErrNone: there is no mark.
	ErrNone = errors.New("there is no file " + Name)
	// ErrDamaged: neither slot can be read.
	ErrDamaged = errors.New("the file " + Name + " is damaged")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (m *Mark) append(p []byte) []byte {
	p = binary.BigEndian.AppendUint64(p, uint64(m.At.UnixMilli()))
	flags := byte(0)
	if m.Clean {
		flags = 1
	}
	p = append(p, flags)
	p = binary.AppendUvarint(p, uint64(m.Format))
	p = binary.AppendUvarint(p, m.Sequence)
	for _, files := range [][]File{m.Logs, m.Manifests} {
		files = files[max(0, len(files)-maxFiles):]
		p = binary.AppendUvarint(p, uint64(len(files)))
		for _, f := range files {
			p = binary.AppendUvarint(p, f.Number)
			p = binary.AppendUvarint(p, uint64(f.Durable))
		}
	}
	return p
}

func decode(p []byte) (*Mark, bool) {
	if len(p) < 9 {
		return nil, false
	}
	m := &Mark{At: time.UnixMilli(int64(binary.BigEndian.Uint64(p))).UTC(), Clean: p[8] == 1}
	p = p[9:]
	ok := true
	number := func() uint64 {
		n, size := binary.Uvarint(p)
		if size <= 0 {
			ok = false
			return 0
		}
		p = p[size:]
		return n
	}
	m.Format, m.Sequence = uint32(number()), number()
	for _, files := range []*[]File{&m.Logs, &m.Manifests} {
		n := number()
		for i := uint64(0); ok && i < n; i++ {
			*files = append(*files, File{Number: number(), Durable: int64(number())})
		}
	}
	return m, ok
}

// Read reads the latest mark in a store's directory. second says that only one of the two slots
// can be read although both were written, so that the mark may be one write older than the
// latest. Errors: ErrNone, ErrDamaged, the file system's.
func Read(f vfs.FS, dir string) (m *Mark, second bool, err error) {
	slots, err := read(f, dir)
	if err != nil {
		return nil, false, err
	}
	var latest *slot
	readable, damaged := 0, 0
	for i := range slots {
		s := &slots[i]
		switch {
		case s.mark != nil:
			readable++
			if latest == nil || s.generation > latest.generation {
				latest = s
			}
		case !s.empty:
			damaged++
		}
	}
	if latest == nil {
		return nil, false, ErrDamaged
	}
	return latest.mark, damaged > 0, nil
}

type slot struct {
	generation uint64
	mark       *Mark // nil: it cannot be read
	empty      bool  // nothing was ever written
}

func read(f vfs.FS, dir string) (slots [2]slot, err error) {
	file, err := f.Open(f.PathJoin(dir, Name))
	if errors.Is(err, fs.ErrNotExist) {
		return slots, ErrNone
	}
	if err != nil {
		return slots, err
	}
	defer func() { _ = file.Close() }()
	for i := range slots {
		var p [slotSize]byte
		if _, err := file.ReadAt(p[:], int64(i*slotSize)); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return slots, fmt.Errorf("reading %s: %w", Name, err)
		}
		slots[i] = readSlot(p[:])
	}
	return slots, nil
}

func readSlot(p []byte) slot {
	if p[0] == 0 && [slotSize]byte(p) == [slotSize]byte{} {
		return slot{empty: true}
	}
	if string(p[:8]) != magic {
		return slot{}
	}
	n := binary.BigEndian.Uint32(p[12:])
	if n > slotSize-head || binary.BigEndian.Uint32(p[8:]) != crc32.Checksum(p[12:head+n], castagnoli) {
		return slot{}
	}
	m, ok := decode(p[head : head+n])
	if !ok {
		return slot{}
	}
	return slot{generation: binary.BigEndian.Uint64(p[16:]), mark: m}
}

// Writer writes marks. It is not safe for concurrent use.
type Writer struct {
	file       vfs.File
	generation uint64
	buf        [slotSize]byte
}

// NewWriter opens or makes the file in a store's directory, for marks that are newer than any
// in it.
func NewWriter(f vfs.FS, dir string) (*Writer, error) {
	slots, err := read(f, dir)
	if err != nil && !errors.Is(err, ErrNone) {
		return nil, err
	}
	w := new(Writer)
	for _, s := range slots {
		w.generation = max(w.generation, s.generation)
	}
	if w.file, err = f.OpenReadWrite(f.PathJoin(dir, Name), vfs.WriteCategoryUnspecified); err != nil {
		return nil, err
	}
	if w.generation == 0 { // there was no readable one
		if _, err := w.file.WriteAt(make([]byte, 2*slotSize), 0); err != nil {
			return nil, errors.Join(err, w.file.Close())
		}
		d, err := f.OpenDir(dir)
		if err == nil {
			err = errors.Join(d.Sync(), d.Close())
		}
		if err != nil {
			return nil, errors.Join(err, w.file.Close())
		}
	}
	return w, nil
}

// Write makes a mark durable.
func (w *Writer) Write(m *Mark) error {
	w.generation++
	p := append(w.buf[:0], magic...)
	p = append(p, make([]byte, head-len(magic))...)
	p = m.append(p)
	binary.BigEndian.PutUint32(p[12:], uint32(len(p)-head))
	binary.BigEndian.PutUint64(p[16:], w.generation)
	binary.BigEndian.PutUint32(p[8:], crc32.Checksum(p[12:], castagnoli))
	p = append(p, make([]byte, slotSize-len(p))...)
	if _, err := w.file.WriteAt(p, int64(w.generation%2)*slotSize); err != nil {
		return err
	}
	return w.file.SyncData()
}

// Close closes the file.
func (w *Writer) Close() error { return w.file.Close() }
