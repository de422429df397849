package mutation

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
)

// MaxFramedBatch is the largest encoded FramedBatch, in bytes.
const MaxFramedBatch = 4 << 20

// StepBytes is the size of a batch, in bytes, at which a command with many changes leaves the
// rest to another commit. The difference to MaxFramedBatch is for the last change.
const StepBytes = 1 << 20

const headerSize = 4 + 2 + 4 + 8 + 4 // checksum, stream, epoch, sequence, count

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// FramedBatch is one stream's share of one of the journal's commits, which may have those of
// several streams. It is the unit of replay by a standby.
type FramedBatch struct {
	Stream   uint16 // a shard's has the shard's number; see keyspace.Streams
	Epoch    uint32 // grows with each start of the stream's owner
	Sequence uint64 // grows by one with each framed batch of the stream
	Batch    Batch
}

// AppendTo encodes f after buf: a CRC-32C of everything after it, stream, epoch, sequence,
// count, writes. Integers are big-endian. The caller must keep it within MaxFramedBatch bytes.
func (f *FramedBatch) AppendTo(buf []byte) []byte {
	start := len(buf)
	buf = append(buf, 0, 0, 0, 0)
	buf = binary.BigEndian.AppendUint16(buf, f.Stream)
	buf = binary.BigEndian.AppendUint32(buf, f.Epoch)
	buf = binary.BigEndian.AppendUint64(buf, f.Sequence)
	buf = binary.BigEndian.AppendUint32(buf, uint32(f.Batch.count))
	buf = append(buf, f.Batch.buf...)
	binary.BigEndian.PutUint32(buf[start:], crc32.Checksum(buf[start+4:], castagnoli))
	return buf
}

// DecodeFramedBatch decodes the encoding of AppendTo. The batch aliases p, and copies it when it
// is added to. Any changed or missing byte is ErrCorrupt.
func DecodeFramedBatch(p []byte) (*FramedBatch, error) {
	if len(p) < headerSize || len(p) > MaxFramedBatch {
		return nil, fmt.Errorf("%w: framed batch of %d bytes", ErrCorrupt, len(p))
	}
	if binary.BigEndian.Uint32(p) != crc32.Checksum(p[4:], castagnoli) {
		return nil, fmt.Errorf("%w: checksum", ErrCorrupt)
	}
	f := &FramedBatch{
		Stream:   binary.BigEndian.Uint16(p[4:]),
		Epoch:    binary.BigEndian.Uint32(p[6:]),
		Sequence: binary.BigEndian.Uint64(p[10:]),
	}
	b, err := Decode(p[headerSize:])
	if err != nil {
		return nil, err
	}
	if uint64(b.count) != uint64(binary.BigEndian.Uint32(p[18:])) {
		return nil, fmt.Errorf("%w: count", ErrCorrupt)
	}
	f.Batch = *b
	return f, nil
}

// Decode decodes the encoding of Batch.AppendTo. The batch aliases p, and copies it when it is
// added to. Errors: ErrCorrupt.
func Decode(p []byte) (*Batch, error) {
	b := &Batch{buf: slices.Clip(p)} // appended writes must not overwrite the caller's memory
	err := each(b.buf, func(op Op, _, _ []byte) error {
		switch b.count++; op {
		case Delete, SingleDelete:
			b.deletes++
		case DeleteRange:
			b.ranges++
		case Set:
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}
