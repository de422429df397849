package layout

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/fair"
)

// ErrCorrupt reports stored bytes that are no record of a queue.
var ErrCorrupt = errors.New("layout: corrupt record")

// Never is the due time of a lease that does not run out by itself.
const Never = math.MaxInt64

// Flags are what a State says by a bit.
type Flags uint8

// The flags of a State.
const (
	Moving       Flags = 1 << iota // being moved to another queue
	MoveRejected                   // the dead-letter queue refused it: it can be received here once more
	History                        // a history record exists
	Later                          // was not due when it was scheduled, and is counted in the bucket of its due second
	Task                           // with Moving: it is moved by a move task, not by maxReceiveCount
	Returned                       // of a FIFO queue: received, and to be received again
)

// State is the mutable state of a message that is scheduled or leased. Times are epoch
// milliseconds.
type State struct {
	Sequence uint64 // in the key
	Due      int64  // when it can be received, or when its lease runs out
	Sent     int64
	First    int64 // first receive; 0 before
	Received int64 // latest receive; 0 before
	Receives uint32
	Epoch    uint32 // of the shard at the latest receive
	Lane     Lane
	Tenant   Lane // the lane of its group, whatever its own is; MainLane without a group
	Flags    Flags
	// Turn is the number of the message's latest receive, which grows with each receive
	// from the queue: it orders the messages of a FIFO queue that are returned at the
	// same time. 0: it was received by an older version.
	Turn uint64
	// Size is that of the message's record, in bytes; 0: an older version did not note it.
	Size uint32
}

const (
	stateSize = 8 + 8 + 8 + 8 + 4 + 4 + 8 + 8 + 1
	turnSize  = 8
	sizeSize  = 4
)

// Is reports whether a flag is set.
func (s *State) Is(f Flags) bool { return s.Flags&f != 0 }

// Compare orders scheduled messages by (due time, sequence).
func (s State) Compare(o State) int {
	return cmp.Or(cmp.Compare(s.Due, o.Due), cmp.Compare(s.Sequence, o.Sequence))
}

// Append encodes all but the sequence, which is in the key.
func (s *State) Append(buf []byte) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.Due))
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.Sent))
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.First))
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.Received))
	buf = binary.BigEndian.AppendUint32(buf, s.Receives)
	buf = binary.BigEndian.AppendUint32(buf, s.Epoch)
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.Lane))
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.Tenant))
	buf = append(buf, byte(s.Flags))
	if s.Turn != 0 {
		buf = binary.BigEndian.AppendUint64(buf, s.Turn)
	}
	if s.Size != 0 {
		buf = binary.BigEndian.AppendUint32(buf, s.Size)
	}
	return buf
}

// DecodeState reads the record of a State at its key.
func DecodeState(key, p []byte) (State, error) {
	var turn, size bool // which of these fields it has
	switch n := len(p); {
	case len(key) < 8:
		return State{}, fmt.Errorf("%w: state at a key of %d bytes", ErrCorrupt, len(key))
	case n == stateSize:
	case n == stateSize+sizeSize:
		size = true
	case n == stateSize+turnSize:
		turn = true
	case n == stateSize+turnSize+sizeSize:
		turn, size = true, true
	default:
		return State{}, fmt.Errorf("%w: state of %d bytes", ErrCorrupt, n)
	}
	s := State{
		Sequence: KeySequence(key),
		Due:      int64(binary.BigEndian.Uint64(p)),
		Sent:     int64(binary.BigEndian.Uint64(p[8:])),
		First:    int64(binary.BigEndian.Uint64(p[16:])),
		Received: int64(binary.BigEndian.Uint64(p[24:])),
		Receives: binary.BigEndian.Uint32(p[32:]),
		Epoch:    binary.BigEndian.Uint32(p[36:]),
		Lane:     Lane(binary.BigEndian.Uint64(p[40:])),
		Tenant:   Lane(binary.BigEndian.Uint64(p[48:])),
		Flags:    Flags(p[56]),
	}
	if turn {
		s.Turn = binary.BigEndian.Uint64(p[stateSize:])
	}
	if size {
		s.Size = binary.BigEndian.Uint32(p[len(p)-sizeSize:])
	}
	if turn != (s.Turn != 0) || size != (s.Size != 0) {
		return State{}, fmt.Errorf("%w: state without what it has room for", ErrCorrupt)
	}
	return s, nil
}

// Counters are the numbers of a queue, written with each commit that touches it.
type Counters struct {
	Next       uint64 // the next sequence
	Head       uint64 // fresh messages of the main lane are at or above it
	Fresh      uint64 // of the main lane
	Scheduled  uint64
	Leased     uint64
	LowMain    uint64 // no record of the main lane is below it
	LowDelayed uint64 // nor one of the delayed lane below this
	Grouped    uint64 // fresh messages of all groups
	Returned   uint64 // of FIFO queues
	Listed     uint64 // listed groups, without
	Back       uint64 // those of a FIFO queue whose first message was returned
	Turn       uint64 // of the latest receive from a FIFO queue; 0: this version has received nothing
	// HeldAges is 1 if the index of expiries of a FIFO queue has returned messages only; 0:
	// it has all messages, as an older version wrote it.
	HeldAges uint64
	// Bytes is one more than the size of all messages' records, in bytes; 0: an older
	// version did not count it.
	Bytes uint64
}

func (c *Counters) all() [14]*uint64 {
	return [...]*uint64{
		&c.Next, &c.Head, &c.Fresh, &c.Scheduled, &c.Leased, &c.LowMain, &c.LowDelayed, &c.Grouped, &c.Returned, &c.Listed,
		&c.Back, &c.Turn,
		&c.HeldAges,
		&c.Bytes,
	}
}

// How many counters older versions had: always of each queue, and more of FIFO queues alone.
const (
	always  = 10
	older   = 12
	unsized = 13
)

// Append encodes the counters.
func (c *Counters) Append(buf []byte) []byte {
	all := c.all()
	n := len(all)
	switch {
	case c.Bytes != 0:
	case c.HeldAges != 0:
		n = unsized
	case c.Back == 0 && c.Turn == 0:
		n = always
	default:
		n = older
	}
	for _, n := range all[:n] {
		buf = binary.AppendUvarint(buf, *n)
	}
	return buf
}

// DecodeCounters reads what Append wrote.
func DecodeCounters(p []byte) (c Counters, err error) {
	for i, n := range c.all() {
		if (i == always || i == older || i == unsized) && len(p) == 0 {
			break
		}
		v, size := binary.Uvarint(p)
		if size <= 0 {
			return Counters{}, fmt.Errorf("%w: counters", ErrCorrupt)
		}
		*n, p = v, p[size:]
	}
	if len(p) > 0 {
		return Counters{}, fmt.Errorf("%w: counters", ErrCorrupt)
	}
	return c, nil
}

// Listing is the record of a listed group: of its first message.
type Listing struct {
	Lane     Lane
	At       int64 // when it was sent, or, returned, when it can be received
	Returned bool
}

const listingSize = 8 + 8 + 1

// PutListing writes a listing at a key.
func PutListing(b *mutation.Batch, key []byte, l Listing) {
	var buf [listingSize]byte
	binary.BigEndian.PutUint64(buf[:], uint64(l.Lane))
	binary.BigEndian.PutUint64(buf[8:], uint64(l.At))
	if l.Returned {
		buf[16] = 1
	}
	b.Set(key, buf[:])
}

// DecodeListing reads what PutListing wrote.
func DecodeListing(p []byte) (Listing, error) {
	if len(p) != listingSize {
		return Listing{}, fmt.Errorf("%w: listing of %d bytes", ErrCorrupt, len(p))
	}
	return Listing{
		Lane: Lane(binary.BigEndian.Uint64(p)), At: int64(binary.BigEndian.Uint64(p[8:])), Returned: p[16] != 0,
	}, nil
}

// PutReturned writes the record of a group whose first message was returned: its lane, and the
// sequence of that message.
func PutReturned(b *mutation.Batch, key []byte, lane Lane, seq uint64) {
	var buf [16]byte
	binary.BigEndian.PutUint64(buf[:], uint64(lane))
	binary.BigEndian.PutUint64(buf[8:], seq)
	b.Set(key, buf[:])
}

// DecodeReturned reads what PutReturned wrote.
func DecodeReturned(p []byte) (lane Lane, seq uint64, err error) {
	if len(p) != 16 {
		return 0, 0, fmt.Errorf("%w: listing of %d bytes", ErrCorrupt, len(p))
	}
	return Lane(binary.BigEndian.Uint64(p)), binary.BigEndian.Uint64(p[8:]), nil
}

// PutWait writes the counts of a tenant at a key, or deletes them if they are zero.
func PutWait(b *mutation.Batch, key []byte, w fair.Wait) {
	if w.Messages == 0 {
		b.Delete(key)
		return
	}
	var buf [2 * binary.MaxVarintLen64]byte
	b.Set(key, binary.AppendUvarint(binary.AppendUvarint(buf[:0], uint64(w.Messages)), uint64(w.Scheduled)))
}

// DecodeWait reads what PutWait wrote; of any other record it is zero.
func DecodeWait(p []byte) (w fair.Wait) {
	messages, n := binary.Uvarint(p)
	if n <= 0 {
		return w
	}
	scheduled, m := binary.Uvarint(p[n:])
	if m <= 0 {
		return w
	}
	return fair.Wait{Messages: int64(messages), Scheduled: int64(scheduled)}
}

// PutState writes a state at a key.
func PutState(b *mutation.Batch, key []byte, s *State) {
	var buf [stateSize + turnSize + sizeSize]byte
	b.Set(key, s.Append(buf[:0]))
}

// PutNumber writes a record that is one number: a due time, a count, a lane or a sequence.
func PutNumber(b *mutation.Batch, key []byte, n uint64) {
	var buf [8]byte
	binary.BigEndian.PutUint64(buf[:], n)
	b.Set(key, buf[:])
}

// Number reads what PutNumber wrote; 0 for anything else.
func Number(value []byte) uint64 {
	if len(value) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(value)
}

// PutCount writes a count at a key, or deletes it if it is 0.
func PutCount(b *mutation.Batch, key []byte, n int64) {
	if n == 0 {
		b.Delete(key)
		return
	}
	PutNumber(b, key, uint64(n))
}
