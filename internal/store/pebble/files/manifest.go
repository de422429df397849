package files

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// ErrManifest reports an unreadable record of a manifest.
var ErrManifest = errors.New("unreadable record of a manifest")

// Table is a table as described by a manifest.
type Table struct {
	Level    int
	Number   uint64
	File     uint64 // of the .sst; others may share it
	Size     uint64
	Virtual  bool   // only its keys in [Smallest, Largest] belong to it
	Smallest []byte // user keys; Largest is exclusive with LargestExclusive
	Largest  []byte

	LargestExclusive bool
	LargestSequence  uint64

	Values []uint64 // its references: the numbers of the 0th, 1st, … blob file
}

// Version is the state that a manifest describes.
type Version struct {
	FirstLog uint64 // earlier logs are contained in tables
	Tables   map[TableID]Table
	Values   map[uint64]uint64 // number of the .blob file by the number that tables use
	// Ever has the blob files of every table that the manifest ever named, by the table's file;
	// EverValues is Values including removed ones.
	Ever       map[uint64][]uint64
	EverValues map[uint64]uint64
}

// LargestSequence is the largest sequence number in the tables of a level and of those
// below.
func (v *Version) LargestSequence(level int) (largest uint64) {
	for _, t := range v.Tables {
		if t.Level >= level {
			largest = max(largest, t.LargestSequence)
		}
	}
	return largest
}

// TableID identifies a table within a version.
type TableID struct {
	Level  int
	Number uint64
}

// ReadManifest reads the last version of a manifest. With past it continues after unreadable
// records.
func ReadManifest(fs vfs.FS, path string, past bool) (*Version, Extent, error) {
	v := &Version{
		Tables: map[TableID]Table{}, Values: map[uint64]uint64{}, Ever: map[uint64][]uint64{}, EverValues: map[uint64]uint64{},
	}
	var bad []int64
	e, err := readRecords(fs, path, 0, past, func(r Record) error {
		d := editDecoder{p: r.Data, v: v}
		if err := d.decode(); err != nil {
			bad = append(bad, r.Offset)
			if !past {
				return fmt.Errorf("%w at byte %d: %w", ErrManifest, r.Offset, err)
			}
		}
		return nil
	})
	e.Faults = append(e.Faults, bad...)
	return v, e, err
}

// Tags of Pebble's version edits.
const (
	tagComparer      = 1
	tagLog           = 2
	tagNextFile      = 3
	tagLastSequence  = 4
	tagPointer       = 5
	tagDeleted       = 6
	tagNew           = 7
	tagPrevLog       = 9
	tagNew2          = 100
	tagNew3          = 102
	tagNew4          = 103
	tagNew5          = 104
	tagNewBacking    = 105
	tagGoneBacking   = 106
	tagNewValues     = 107
	tagDeletedValues = 108

	fieldEnd     = 1
	fieldVirtual = 66
	fieldValues  = 69
	fieldBinding = 1 << 6 // an unknown field with this bit is an error

	// The last trailer of the exclusive end of a range: the greatest sequence and a range
	// deletion (15), or range keys (19 to 21).
	greatestSequence = 1<<56 - 1
	kindRangeDelete  = 15
)

type editDecoder struct {
	p   []byte
	v   *Version
	err error
}

func (d *editDecoder) fail(text string) {
	if d.err == nil {
		d.err = errors.New(text)
	}
	d.p = nil
}

func (d *editDecoder) number() uint64 {
	n, size := binary.Uvarint(d.p)
	if size <= 0 {
		d.fail("a number is cut short")
		return 0
	}
	d.p = d.p[size:]
	return n
}

func (d *editDecoder) bytes() []byte {
	n := d.number()
	if n > uint64(len(d.p)) {
		d.fail("bytes are cut short")
		return nil
	}
	b := bytes.Clone(d.p[:n])
	d.p = d.p[n:]
	return b
}

func (d *editDecoder) decode() error {
	// Tables that move are both deleted and new in one edit: deletions are applied first.
	type change struct {
		gone []TableID
		here []Table
	}
	var c change
	for len(d.p) > 0 {
		switch tag := d.number(); tag {
		case tagComparer:
			d.bytes()
		case tagLog:
			d.v.FirstLog = max(d.v.FirstLog, d.number())
		case tagNextFile, tagPrevLog, tagLastSequence, tagGoneBacking:
			d.number()
		case tagPointer:
			d.number()
			d.bytes()
		case tagDeleted:
			level := int(d.number())
			c.gone = append(c.gone, TableID{level, d.number()})
		case tagNew, tagNew2, tagNew3, tagNew4, tagNew5:
			c.here = append(c.here, d.table(tag))
		case tagNewBacking:
			d.number()
			d.number()
		case tagNewValues:
			id, file := d.number(), d.number()
			d.number()
			d.number()
			d.number()
			d.v.Values[id], d.v.EverValues[id] = file, file
		case tagDeletedValues:
			id, file := d.number(), d.number()
			if d.v.Values[id] == file {
				delete(d.v.Values, id)
			}
		default:
			d.fail(fmt.Sprintf("unknown tag %d", tag))
		}
	}
	if d.err != nil {
		return d.err
	}
	for _, id := range c.gone {
		delete(d.v.Tables, id)
	}
	for _, t := range c.here {
		d.v.Tables[TableID{t.Level, t.Number}] = t
		d.v.Ever[t.File] = t.Values
	}
	return nil
}

func (d *editDecoder) table(tag uint64) Table {
	t := Table{Level: int(d.number()), Number: d.number()}
	t.File = t.Number
	if tag == tagNew3 {
		d.number()
	}
	t.Size = d.number()
	if tag == tagNew5 {
		if len(d.p) == 0 {
			d.fail("a table is cut short")
			return t
		}
		points := d.p[0]&1 != 0
		d.p = d.p[1:]
		if points {
			d.bounds(&t)
		}
		d.bounds(&t)
	} else {
		d.bounds(&t)
	}
	if tag != tagNew {
		d.number()
		t.LargestSequence = d.number()
	}
	if tag != tagNew4 && tag != tagNew5 {
		return t
	}
	for d.err == nil {
		switch field := d.number(); {
		case field == fieldEnd:
			return t
		case field == fieldVirtual:
			t.Virtual, t.File = true, d.number()
		case field == fieldValues:
			d.number()
			n := d.number()
			for range n {
				if d.err != nil {
					break
				}
				t.Values = append(t.Values, d.number())
				d.number()
			}
		case field == 67 || field == 68: // synthetic prefix and suffix
			d.bytes()
		case field&fieldBinding != 0:
			d.fail(fmt.Sprintf("unknown field %d of a table", field))
		default:
			d.bytes()
		}
	}
	return t
}

// bounds reads the bounds of a table and extends its current ones.
func (d *editDecoder) bounds(t *Table) {
	smallest, largest := d.bytes(), d.bytes()
	if len(smallest) < 8 || len(largest) < 8 {
		d.fail("a table's bound is cut short")
		return
	}
	trailer := binary.LittleEndian.Uint64(largest[len(largest)-8:])
	smallest, largest = smallest[:len(smallest)-8], largest[:len(largest)-8]
	exclusive := trailer>>8 == greatestSequence && trailer&0xff >= kindRangeDelete
	if t.Smallest == nil || bytes.Compare(smallest, t.Smallest) < 0 {
		t.Smallest = smallest
	}
	if c := bytes.Compare(largest, t.Largest); t.Largest == nil || c > 0 || c == 0 && !exclusive {
		t.Largest, t.LargestExclusive = largest, exclusive
	}
}
