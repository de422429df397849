package deliverystream

import (
	"encoding/binary"
)

// Record is a record of a stream.
type Record struct {
	Data []byte
	// Line says that it is a line of its own in objects: it gets a line feed, unless it ends
	// with one.
	Line bool
}

// AppendRecords appends the stored form of records: each after a number with its length and
// whether it is a line.
func AppendRecords(dst []byte, records []Record) []byte {
	for _, r := range records {
		head := uint64(len(r.Data)) << 1
		if r.Line {
			head |= 1
		}
		dst = append(binary.AppendUvarint(dst, head), r.Data...)
	}
	return dst
}

// DecodeRecords decodes the stored form. The records alias kept.
func DecodeRecords(records []Record, kept []byte) ([]Record, error) {
	for len(kept) > 0 {
		head, n := binary.Uvarint(kept)
		if n <= 0 || head>>1 > uint64(len(kept)-n) {
			return nil, ErrRecord
		}
		end := n + int(head>>1)
		records = append(records, Record{Data: kept[n:end:end], Line: head&1 != 0})
		kept = kept[end:]
	}
	return records, nil
}

// AppendTo appends a record in the form of an object's content.
func (r *Record) AppendTo(dst []byte, delimiter string) []byte {
	dst = append(dst, r.Data...)
	if r.Line && (len(r.Data) == 0 || r.Data[len(r.Data)-1] != '\n') && delimiter == "" {
		return append(dst, '\n')
	}
	return append(dst, delimiter...)
}

// Chunk has the properties of records that are stored together.
type Chunk struct {
	Arrival int64 // epoch milliseconds
	Records uint32
	Bytes   uint32 // of the records' data
}

// chunkSize is the size of a chunk's record.
const chunkSize = 8 + 4 + 4

// Encode encodes the record of a chunk.
func (c *Chunk) Encode() []byte {
	v := binary.BigEndian.AppendUint64(make([]byte, 0, chunkSize), uint64(c.Arrival))
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(v, c.Records), c.Bytes)
}

// DecodeChunk decodes the record.
func DecodeChunk(v []byte) (c Chunk, err error) {
	if len(v) != chunkSize {
		return c, ErrRecord
	}
	return Chunk{int64(binary.BigEndian.Uint64(v)), binary.BigEndian.Uint32(v[8:]), binary.BigEndian.Uint32(v[12:])}, nil
}

// Split divides records into parts of approximately so many bytes, at least one record in each.
func Split(records []Record, about int, f func(part []Record, bytes int)) {
	from, size := 0, 0
	for i := range records {
		if i > from && size+len(records[i].Data) > about {
			f(records[from:i], size)
			from, size = i, 0
		}
		size += len(records[i].Data)
	}
	if from < len(records) {
		f(records[from:], size)
	}
}
