// Package files reads the files of a Pebble store one by one, without the engine: its logs,
// manifests, tables and blob files. It only reads, and can skip damage.
package files

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/batchrepr"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// A log consists of blocks of logBlock bytes, which hold chunks; a record is one chunk or
// several. A chunk's header is: checksum (4), length (2), kind (1), and, except in manifests,
// the number of the log (4) and the length that was synced before (8).
const (
	logBlock      = 32 << 10
	legacyHeader  = 7
	recycleHeader = 11
	syncHeader    = 19

	recycledWhole = 5 // the kind of the chunk that closes a log
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is Pebble's masked form of a CRC-32C.
func Checksum(p []byte) uint32 {
	c := crc32.Checksum(p, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// Record is one record of a log or manifest.
type Record struct {
	Offset int64  // of its first chunk, in bytes
	Data   []byte // valid during the call
}

// Extent is the readable part of a log or manifest.
type Extent struct {
	Size   int64 // of the file, bytes
	Valid  int64 // length of the prefix without a fault, in bytes
	Closed bool  // it ends where its writer closed it
	// Synced is the length that was durable, according to later chunks: a file with less valid
	// data is damaged, and not torn by a crash. 0: unknown.
	Synced  int64
	Records int // read
	Faults  []int64
	// LastSequence is the sequence of the last write read; 0: none was.
	LastSequence uint64
}

// Clean reports whether the file ends where its writer stopped.
func (e *Extent) Clean() bool { return e.Closed || e.Valid == e.Size }

// chunks reads a log in blocks.
type chunks struct {
	r      io.Reader
	number uint32 // of the log; manifests have none
	past   bool   // continue past faults

	buf      [logBlock]byte
	n, at    int   // bytes in buf, and how many of them were read
	base     int64 // the offset of buf
	extent   Extent
	faulty   bool // something was skipped since the last chunk
	finished bool
}

// chunk kinds, modulo the width of the header.
const (
	whole = iota
	first
	middle
	last
)

// next returns the next valid chunk.
func (c *chunks) next() (kind int, offset int64, payload []byte, err error) {
	for !c.finished {
		if c.n-c.at < legacyHeader {
			if c.n == logBlock && zeros(c.buf[c.at:]) {
				c.skipPadding()
			}
			if err := c.fill(); err != nil {
				return 0, 0, nil, err
			}
			continue
		}
		p := c.buf[c.at:c.n]
		header, kind, ok := c.header(p)
		if header == 0 && ok {
			c.skipPadding()
			continue
		}
		if c.finished {
			break
		}
		end := header + int(binary.LittleEndian.Uint16(p[4:]))
		if ok && end <= len(p) && Checksum(p[6:end]) == binary.LittleEndian.Uint32(p) {
			offset = c.base + int64(c.at)
			c.at += end
			c.valid()
			if header == syncHeader {
				c.extent.Synced = max(c.extent.Synced, int64(binary.LittleEndian.Uint64(p[recycleHeader:])))
			}
			return kind, offset, p[header:end], nil
		}
		c.fault(ok, end, len(p))
	}
	return 0, 0, nil, io.EOF
}

// header is the length of a chunk's header; 0 and true: the rest of the block is zeros.
func (c *chunks) header(p []byte) (header, kind int, ok bool) {
	k := int(p[6])
	if k == 0 {
		return 0, 0, len(p) < syncHeader && zeros(p)
	}
	switch {
	case k > 12:
		return 0, 0, false
	case k <= 4:
		header = legacyHeader
	case k <= 8:
		header = recycleHeader
	default:
		header = syncHeader
	}
	if len(p) < header || c.number != 0 && header == legacyHeader {
		return 0, 0, false
	}
	if header > legacyHeader {
		switch n := binary.LittleEndian.Uint32(p[7:]); n {
		case c.number:
		case c.number + 1: // the end written by Close
			if binary.LittleEndian.Uint32(p) == 0 && binary.LittleEndian.Uint16(p[4:]) == 0 && k == recycledWhole {
				c.at += header
				c.valid()
				c.extent.Closed, c.finished = len(c.extent.Faults) == 0, true
			}
			return header, 0, false
		default: // of an earlier log in the same, recycled file
			return header, 0, false
		}
	}
	return header, (k - 1) % 4, true
}

// skipPadding skips the zeros behind the last chunk of a block. They are written and synced with
// it, and so belong to what is valid.
func (c *chunks) skipPadding() {
	c.at = c.n
	c.valid()
}

func zeros(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}

func (c *chunks) valid() {
	if len(c.extent.Faults) == 0 {
		c.extent.Valid = c.base + int64(c.at)
	}
}

// fault ends the reading, or skips the damage: one chunk if another follows it, or else the
// rest of the block.
func (c *chunks) fault(ok bool, end, rest int) {
	if !c.faulty {
		c.extent.Faults = append(c.extent.Faults, c.base+int64(c.at))
		c.faulty = true
	}
	if !c.past {
		c.finished = true
		return
	}
	if ok && end+legacyHeader <= rest {
		p := c.buf[c.at+end : c.n]
		save := *c
		header, _, fine := c.header(p)
		c.extent, c.finished, c.at = save.extent, save.finished, save.at
		if fine && header > 0 {
			if e := header + int(binary.LittleEndian.Uint16(p[4:])); e <= len(p) && Checksum(p[6:e]) == binary.LittleEndian.Uint32(p) {
				c.at += end
				return
			}
		}
	}
	c.at = c.n
}

func (c *chunks) fill() error {
	if c.n > 0 && c.n < logBlock {
		if c.at == c.n {
			c.valid()
		} else if !c.faulty { // shorter than a header
			c.extent.Faults = append(c.extent.Faults, c.base+int64(c.at))
		}
		c.finished = true
		return io.EOF
	}
	c.base += int64(c.n)
	n, err := io.ReadFull(c.r, c.buf[:])
	c.n, c.at = n, 0
	if n > 0 {
		return nil
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		err = io.EOF
	}
	c.finished = true
	return err
}

// readRecords calls f for each record. past: it continues after faults.
func readRecords(fs vfs.FS, path string, number uint32, past bool, f func(Record) error) (Extent, error) {
	file, err := fs.Open(path)
	if err != nil {
		return Extent{}, err
	}
	defer func() { _ = file.Close() }()
	c := &chunks{r: file, number: number, past: past}
	if info, err := file.Stat(); err == nil {
		c.extent.Size = info.Size()
	}
	var record []byte
	begin := int64(-1) // of the current record; negative: none
	for {
		kind, offset, payload, err := c.next()
		if errors.Is(err, io.EOF) {
			if begin >= 0 && len(c.extent.Faults) == 0 && !c.extent.Closed {
				c.extent.Valid = begin // a partial record
				c.extent.Faults = append(c.extent.Faults, begin)
			}
			return c.extent, nil
		}
		if err != nil {
			return c.extent, err
		}
		if c.faulty {
			begin, c.faulty = -1, false
		}
		switch {
		case kind == whole || kind == first:
			record, begin = append(record[:0], payload...), offset
		case begin < 0:
			continue
		default:
			record = append(record, payload...)
		}
		if kind == first || kind == middle {
			continue
		}
		c.extent.Records++
		err = f(Record{Offset: begin, Data: record})
		begin = -1
		if err != nil {
			return c.extent, err
		}
	}
}

// ReadLog calls f, if it is not nil, with each batch of a log, and the sequence of its first
// write. past: it continues after faults.
func ReadLog(fs vfs.FS, path string, number uint64, past bool, f func(sequence uint64, batch []byte) error) (Extent, error) {
	var latest uint64
	e, err := readRecords(fs, path, uint32(number), past, func(r Record) error {
		h, ok := batchrepr.ReadHeader(r.Data)
		if !ok || h.Count == 0 {
			return nil
		}
		latest = uint64(h.SeqNum) + uint64(h.Count) - 1
		if f == nil {
			return nil
		}
		return f(uint64(h.SeqNum), r.Data)
	})
	e.LastSequence = latest
	if err == nil && !past && !e.Clean() { // a chunk after a fault may say that it was durable
		var all Extent
		all, err = readRecords(fs, path, uint32(number), true, func(Record) error { return nil })
		e.Synced = max(e.Synced, all.Synced)
	}
	return e, err
}
