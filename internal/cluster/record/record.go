// Package record is the format of the records in a cell's replicated log, and the fence, by
// which every replica accepts or skips them. It is a pure state machine: all replicas decide
// alike on the same records in the same order.
//
// A cell is a part of the state with one owner and one log. A record names its cell, the
// epoch of the owner that wrote it, and a number that grows by one with each record that
// is accepted.
package record

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"godwit.dev/godwit/internal/mutation"
)

// ErrCorrupt reports bytes that are no record, or no fence. A replica must not skip such a
// record, but stop: others may be able to read it.
var ErrCorrupt = errors.New("cluster: corrupt record")

// Kind is what a record is for.
type Kind byte

// The kinds of record. Their numbers are part of the format.
const (
	Takeover Kind = 1 // its writer is the owner from here on
	Commit   Kind = 2 // a commit, or the last part of one
	Part     Kind = 3 // a part of a commit that goes on in the next record
	Confirm  Kind = 4 // changes nothing: its writer was the owner here
)

// MaxSize bounds an encoded record, in bytes. SoftSize is from which size on a commit continues
// in another record; a single write may be larger.
const (
	MaxSize  = 8 << 20
	SoftSize = 1 << 20
)

// maxOwner bounds the name of an owner, in bytes.
const maxOwner = 256

// Record is an entry of the log.
type Record struct {
	Kind   Kind
	Cell   uint16
	Epoch  uint64
	Number uint64          // of the record in its cell; of a Takeover the latest that its writer had
	Owner  string          // of a Takeover: who owns the cell from here on
	Batch  *mutation.Batch // of a Commit or a Part; else nil
}

const (
	version    = 1
	headerSize = 4 + 1 + 1 + 2 + 8 + 8 // checksum, version, kind, cell, epoch, number
	kindAt     = 4 + 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendTo encodes r behind buf: a CRC-32C over all that follows it, version, kind, cell,
// epoch, number; then the owner, or the encoded writes. Integers are big-endian.
func (r *Record) AppendTo(buf []byte) []byte {
	start := len(buf)
	buf = r.appendHead(buf)
	buf = append(buf, r.Owner...)
	if r.Batch != nil {
		buf = r.Batch.AppendTo(buf)
	}
	putChecksum(buf[start:])
	return buf
}

// appendHead encodes what stands before the owner, or the writes, with space for the checksum.
func (r *Record) appendHead(buf []byte) []byte {
	buf = append(buf, 0, 0, 0, 0, version, byte(r.Kind))
	buf = binary.BigEndian.AppendUint16(buf, r.Cell)
	buf = binary.BigEndian.AppendUint64(buf, r.Epoch)
	return binary.BigEndian.AppendUint64(buf, r.Number)
}

// putChecksum puts the checksum into an encoded record.
func putChecksum(encoded []byte) {
	binary.BigEndian.PutUint32(encoded, crc32.Checksum(encoded[4:], castagnoli))
}

// Writes are those of a commit, or of a part of one, that was just encoded: they alias it.
func Writes(encoded []byte) (*mutation.Batch, error) { return mutation.Decode(encoded[headerSize:]) }

// Decode reads what AppendTo wrote. The batch aliases p. Errors: ErrCorrupt, also for a
// version or kind that this program does not know.
func Decode(p []byte) (Record, error) {
	if len(p) < headerSize || len(p) > MaxSize {
		return Record{}, fmt.Errorf("%w: %d bytes", ErrCorrupt, len(p))
	}
	if binary.BigEndian.Uint32(p) != crc32.Checksum(p[4:], castagnoli) {
		return Record{}, fmt.Errorf("%w: checksum", ErrCorrupt)
	}
	if p[4] != version {
		return Record{}, fmt.Errorf("%w: version %d", ErrCorrupt, p[4])
	}
	r := Record{
		Kind:   Kind(p[kindAt]),
		Cell:   binary.BigEndian.Uint16(p[6:]),
		Epoch:  binary.BigEndian.Uint64(p[8:]),
		Number: binary.BigEndian.Uint64(p[16:]),
	}
	rest := p[headerSize:len(p):len(p)]
	switch r.Kind {
	case Takeover:
		if len(rest) == 0 || len(rest) > maxOwner {
			return Record{}, fmt.Errorf("%w: an owner of %d bytes", ErrCorrupt, len(rest))
		}
		r.Owner = string(rest)
	case Commit, Part:
		var err error
		if r.Batch, err = mutation.Decode(rest); err != nil {
			return Record{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
	case Confirm:
		if len(rest) > 0 {
			return Record{}, fmt.Errorf("%w: %d bytes behind a confirmation", ErrCorrupt, len(rest))
		}
	default:
		return Record{}, fmt.Errorf("%w: kind %d", ErrCorrupt, r.Kind)
	}
	return r, nil
}

// Split makes the records of a commit, encoded, of which the first has the given number:
// as many as keep each at a size in bytes, as SoftSize is one, or at one write. An empty
// commit is one record. Errors: a write that is larger than a record may be.
func Split(size int, cell uint16, epoch, number uint64, batches ...*mutation.Batch) ([][]byte, error) {
	all := 0
	for _, b := range batches {
		all += b.Size()
	}
	if all <= size && headerSize+all <= MaxSize { // as nearly every commit: each byte is copied once
		whole := Record{Kind: Commit, Cell: cell, Epoch: epoch, Number: number}
		encoded := whole.appendHead(make([]byte, 0, headerSize+all))
		for _, b := range batches {
			encoded = b.AppendTo(encoded)
		}
		putChecksum(encoded)
		return [][]byte{encoded}, nil
	}
	var out [][]byte
	var encoded []byte         // the record that is being made
	begin := func(first int) { // with room for a first write of that size
		part := Record{Cell: cell, Epoch: epoch, Number: number}
		encoded = part.appendHead(make([]byte, 0, headerSize+max(first, min(all, size))))
		number++
	}
	end := func(kind Kind) error {
		if len(encoded) > MaxSize {
			return fmt.Errorf("cluster: a record of %d bytes: %d at most", len(encoded), MaxSize)
		}
		encoded[kindAt] = byte(kind)
		putChecksum(encoded)
		out = append(out, encoded)
		return nil
	}
	for _, b := range batches {
		err := b.EachEncoded(func(write []byte) error {
			switch n := len(encoded) - headerSize; {
			case encoded == nil:
				begin(len(write))
			case n+len(write) > size:
				if err := end(Part); err != nil {
					return err
				}
				begin(len(write))
			}
			all -= len(write)
			encoded = append(encoded, write...)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if err := end(Commit); err != nil {
		return nil, err
	}
	return out, nil
}
