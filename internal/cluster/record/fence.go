package record

import (
	"encoding/binary"
	"fmt"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
)

// Fence is the state of a cell's log as of a position: who owns the cell (a fencing token, its
// epoch), and which record comes next.
type Fence struct {
	Epoch    uint64
	Number   uint64 // of the latest record that was accepted
	Position uint64 // of the same in the log
	Owner    string // since when the epoch began; empty: nobody has ever owned the cell
}

// Accept decides on the next record of the cell's log, and advances the fence if it is accepted:
// a takeover by a higher epoch, or the record that follows in the current epoch without a gap.
// All others are to be skipped: they are of an owner that was replaced, of another cell, or
// duplicates.
func (f *Fence) Accept(cell uint16, position uint64, r *Record) bool {
	switch {
	case r.Cell != cell:
		return false
	case r.Kind == Takeover:
		if r.Epoch <= f.Epoch {
			return false
		}
		f.Epoch, f.Owner = r.Epoch, r.Owner
	case r.Epoch != f.Epoch || r.Number != f.Number+1:
		return false
	}
	f.Number++
	f.Position = position
	return true
}

// Lacks reports that the writer of a takeover, the next record of the cell's log, had seen more
// records than this replica, which has read the whole log so far. So the replica has started
// from an incomplete store, and must not continue.
func (f *Fence) Lacks(cell uint16, r *Record) bool {
	return r.Cell == cell && r.Kind == Takeover && r.Epoch > f.Epoch && r.Number > f.Number
}

// Key is where a replica keeps the fence of a cell.
func Key(cell uint16) []byte {
	return []byte{keyspace.ClusterSpace, keyspace.ClusterFences, byte(cell >> 8), byte(cell)}
}

const fenceSize = 1 + 8 + 8 + 8

// Put writes the fence: with what it has accepted, as one atomic unit.
func (f *Fence) Put(b *mutation.Batch, cell uint16) {
	v := make([]byte, 0, fenceSize+len(f.Owner))
	v = append(v, version)
	v = binary.BigEndian.AppendUint64(v, f.Epoch)
	v = binary.BigEndian.AppendUint64(v, f.Number)
	v = binary.BigEndian.AppendUint64(v, f.Position)
	b.Set(Key(cell), append(v, f.Owner...))
}

// DecodeFence reads what Put wrote. Errors: ErrCorrupt.
func DecodeFence(v []byte) (Fence, error) {
	if len(v) < fenceSize || len(v) > fenceSize+maxOwner || v[0] != version {
		return Fence{}, fmt.Errorf("%w: a fence of %d bytes", ErrCorrupt, len(v))
	}
	return Fence{
		Epoch:    binary.BigEndian.Uint64(v[1:]),
		Number:   binary.BigEndian.Uint64(v[9:]),
		Position: binary.BigEndian.Uint64(v[17:]),
		Owner:    string(v[fenceSize:]),
	}, nil
}
