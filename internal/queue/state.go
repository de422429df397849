package queue

import (
	"encoding/binary"
	"fmt"
	"math"

	"godwit.dev/godwit/internal/queue/layout"
)

// never is the due time of a lease that does not run out by itself.
const never = math.MaxInt64

const (
	flagMoving   = 1 << iota // on its way to the dead-letter queue
	flagStay                 // the dead-letter queue would not have it: deliver it here once more
	flagHistory              // a history record exists
	flagLater                // was scheduled for later, and counts in the bucket of its due second
	flagTask                 // with flagMoving: a move task carries it, not the dead-letter rule
	flagReturned             // of a group that blocks: received, and to be received again
)

// state is what changes about a message that is scheduled or leased. Times are
// epoch milliseconds.
type state struct {
	seq      uint64
	due      int64 // when it can be received, or when its lease runs out
	sent     int64
	first    int64 // first receive; 0 before
	received int64 // latest receive; 0 before
	receives uint32
	epoch    uint32 // of the shard at the latest receive
	lane     layout.Lane
	tenant   layout.Lane // the group's, wherever the message stands; MainLane without one
	flags    uint8
	slot     int32 // index in the lease heap; -1 outside
}

// place is a place in the order of scheduled messages.
type place struct {
	due int64
	seq uint64
}

// before orders scheduled messages by (due time, sequence).
func (s *state) before(due int64, seq uint64) bool {
	return s.due < due || s.due == due && s.seq < seq
}

const stateSize = 8 + 8 + 8 + 8 + 4 + 4 + 8 + 8 + 1

// appendTo encodes all but the sequence, which is in the key.
func (s *state) appendTo(buf []byte) []byte {
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.due))
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.sent))
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.first))
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.received))
	buf = binary.BigEndian.AppendUint32(buf, s.receives)
	buf = binary.BigEndian.AppendUint32(buf, s.epoch)
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.lane))
	buf = binary.BigEndian.AppendUint64(buf, uint64(s.tenant))
	return append(buf, s.flags)
}

func decodeState(seq uint64, p []byte) (state, error) {
	if len(p) != stateSize {
		return state{}, fmt.Errorf("%w: state of %d bytes", layout.ErrCorrupt, len(p))
	}
	return state{
		seq:      seq,
		due:      int64(binary.BigEndian.Uint64(p)),
		sent:     int64(binary.BigEndian.Uint64(p[8:])),
		first:    int64(binary.BigEndian.Uint64(p[16:])),
		received: int64(binary.BigEndian.Uint64(p[24:])),
		receives: binary.BigEndian.Uint32(p[32:]),
		epoch:    binary.BigEndian.Uint32(p[36:]),
		lane:     layout.Lane(binary.BigEndian.Uint64(p[40:])),
		tenant:   layout.Lane(binary.BigEndian.Uint64(p[48:])),
		flags:    p[56],
		slot:     -1,
	}, nil
}

// counters are the persistent part of a machine, written with each commit that
// touches the queue.
type counters struct {
	next       uint64 // the next sequence
	head       uint64 // fresh messages of the main lane are at or above it
	fresh      uint64 // of the main lane
	scheduled  uint64
	leased     uint64
	lowMain    uint64 // no record of the main lane is below it
	lowDelayed uint64 // nor one of the delayed lane below this
}

// groupCounters are those of a queue that has groups.
type groupCounters struct {
	fresh    uint64 // of all groups
	returned uint64
	listed   uint64 // groups that something can be received from
}

const (
	countersSize      = 7 * 8
	groupCountersSize = 3 * 8
)

func (c *counters) all() [7]*uint64 {
	return [...]*uint64{&c.next, &c.head, &c.fresh, &c.scheduled, &c.leased, &c.lowMain, &c.lowDelayed}
}

func (c *groupCounters) all() [3]*uint64 { return [...]*uint64{&c.fresh, &c.returned, &c.listed} }

func appendCounters(buf []byte, all ...*uint64) []byte {
	for _, v := range all {
		buf = binary.BigEndian.AppendUint64(buf, *v)
	}
	return buf
}

func decodeCounters(p []byte, all ...*uint64) {
	for i, v := range all {
		*v = binary.BigEndian.Uint64(p[8*i:])
	}
}
