// Package layout is the form of a queue in the store: the keys of its records, and the
// encoding of all records but messages.
package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"

	"godwit.dev/godwit/internal/keyspace"
)

// Incarnation identifies a queue within its shard, for one lifetime: a queue that is deleted and
// created again, or purged, gets a new one, so that old records cannot belong to it.
type Incarnation uint64

// Lane is a part of a queue whose records are contiguous in the key space, in order of sequence.
// FIFO message groups and fair queues' tenants have lanes of their own.
type Lane uint64

// The lanes of a queue without groups.
const (
	MainLane    Lane = 0 // accepted ready to be received
	DelayedLane Lane = 1 // accepted with a delay
	MovedLane   Lane = 2 // moved in from another queue, with its age and receive count

	GroupLanes Lane = 1 << 63 // the lowest lane of a group
)

// GroupLane is the lane of a message group: a hash of 63 bits. Groups that collide share a lane
// and are ordered as one group, which is correct, only slower. With ten million groups, one
// queue in 180,000 has a collision.
func GroupLane(group string) Lane {
	if group == "" {
		return MainLane
	}
	sum := sha256.Sum256([]byte(group))
	return GroupLanes | Lane(binary.BigEndian.Uint64(sum[:]))
}

// Grouped reports whether the lane is a group's.
func (l Lane) Grouped() bool { return l >= GroupLanes }

// Tag is the byte behind the incarnation in the keys of a kind of record.
type Tag byte

// The tags of a queue's records.
const (
	TagRecord  Tag = Tag(keyspace.Messages)        // lane, sequence → message
	TagLease   Tag = Tag(keyspace.Leases)          // sequence → state
	TagDueOf   Tag = Tag(keyspace.DueTimes)        // sequence → due time
	TagDue     Tag = Tag(keyspace.DueMessages)     // due time, sequence → state
	TagExpiry  Tag = Tag(keyspace.MessageExpiries) // sent time, sequence → lane; not for the main and the delayed lane, and in FIFO queues only for returned messages
	TagBucket  Tag = Tag(keyspace.DueSeconds)      // second → number of messages due in it
	TagHistory Tag = Tag(keyspace.Histories)       // sequence → history of attempts
	TagGroup   Tag = Tag(keyspace.Groups)          // lane of a group that is not empty → a message at or before its first
	TagListed  Tag = Tag(keyspace.ListedGroups)    // sequence of the first message of a group that can be received from → listing
	// The groups of a FIFO queue whose first message was returned, in the order of these
	// returns: due time, turn → lane, sequence.
	TagReturned Tag = Tag(keyspace.ReturnedGroups)
	TagHeld     Tag = Tag(keyspace.HeldMessages) // lane, sequence → state of a returned message of a FIFO queue
	TagTenant   Tag = Tag(keyspace.Tenants)      // lane of a tenant of a fair queue → its waiting messages, counted
)

// Keys builds the keys of one queue. The slices that its methods return share
// one buffer and are valid until the next call.
type Keys struct {
	prefix [11]byte
	buf    [32]byte
}

// NewKeys makes the keys of an incarnation in a shard.
func NewKeys(shard uint16, inc Incarnation) Keys {
	var k Keys
	binary.BigEndian.PutUint16(k.prefix[:], shard)
	k.prefix[2] = keyspace.Data
	binary.BigEndian.PutUint64(k.prefix[3:], uint64(inc))
	return k
}

func (k *Keys) tag(tag Tag) []byte {
	b := append(k.buf[:0], k.prefix[:]...)
	return append(b, byte(tag))
}

func (k *Keys) sequence(tag Tag, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(k.tag(tag), seq)
}

// Record is the key of a message.
func (k *Keys) Record(lane Lane, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(k.sequence(TagRecord, uint64(lane)), seq)
}

// Group is the key that reports that a group is not empty.
func (k *Keys) Group(lane Lane) []byte { return k.sequence(TagGroup, uint64(lane)) }

// Tenant is the key of the counts of a tenant of a fair queue.
func (k *Keys) Tenant(lane Lane) []byte { return k.sequence(TagTenant, uint64(lane)) }

// Listed is the key of a group's listing, under the sequence of its first message.
func (k *Keys) Listed(seq uint64) []byte { return k.sequence(TagListed, seq) }

// Returned is the key of a group whose first message was returned.
func (k *Keys) Returned(due int64, turn uint64) []byte { return k.timed(TagReturned, due, turn) }

// History is the key of a delivery's history of attempts.
func (k *Keys) History(seq uint64) []byte { return k.sequence(TagHistory, seq) }

// DueOf is the key of a scheduled message's due time.
func (k *Keys) DueOf(seq uint64) []byte { return k.sequence(TagDueOf, seq) }

// Due is the key of a scheduled message's state.
func (k *Keys) Due(due int64, seq uint64) []byte { return k.timed(TagDue, due, seq) }

// Lease is the key of a lease.
func (k *Keys) Lease(seq uint64) []byte { return k.sequence(TagLease, seq) }

// Expiry is the key by which a sweep finds a message that it does not find by its lane.
func (k *Keys) Expiry(sent int64, seq uint64) []byte { return k.timed(TagExpiry, sent, seq) }

// Bucket is the key of the number of messages due in a second.
func (k *Keys) Bucket(second int64) []byte { return k.sequence(TagBucket, uint64(second)) }

func (k *Keys) timed(tag Tag, ms int64, seq uint64) []byte {
	b := binary.BigEndian.AppendUint64(k.tag(tag), uint64(ms))
	return binary.BigEndian.AppendUint64(b, seq)
}

// Counters is the key of the counters.
func (k *Keys) Counters() []byte {
	b := append(k.buf[:0], k.prefix[:]...)
	b[2] = keyspace.Counters
	return b
}

// Span is a range of keys, [Lower, Upper). Its slices are its own.
type Span = keyspace.Span

// Of spans all records under a tag.
func (k *Keys) Of(tag Tag) Span { return keyspace.Prefix(k.tag(tag)) }

// HeldState is the key of the state of a returned message of a FIFO queue.
func (k *Keys) HeldState(lane Lane, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(k.sequence(TagHeld, uint64(lane)), seq)
}

// KeyLane reads the lane from a key of Records.
func KeyLane(key []byte) Lane { return Lane(binary.BigEndian.Uint64(key[len(key)-16:])) }

// All spans every record of the queue but its counters.
func (k *Keys) All() Span { return keyspace.Prefix(k.prefix[:]) }

// Lane spans the records of a lane from a sequence on.
func (k *Keys) Lane(lane Lane, from uint64) Span {
	return k.laneFrom(TagRecord, lane, from)
}

// Held spans the states of a group's returned messages from a sequence on.
func (k *Keys) Held(lane Lane, from uint64) Span { return k.laneFrom(TagHeld, lane, from) }

// HeldFrom spans the returned messages of all groups, lane by lane, from one on.
func (k *Keys) HeldFrom(lane Lane, from uint64) Span {
	return Span{Lower: bytes.Clone(k.HeldState(lane, from)), Upper: k.Of(TagHeld).Upper}
}

// RecordsFrom spans the messages from one on, lane by lane.
func (k *Keys) RecordsFrom(lane Lane, from uint64) Span {
	return Span{Lower: bytes.Clone(k.Record(lane, from)), Upper: k.Of(TagRecord).Upper}
}

func (k *Keys) laneFrom(tag Tag, lane Lane, from uint64) Span {
	s := keyspace.Prefix(k.sequence(tag, uint64(lane)))
	s.Lower = binary.BigEndian.AppendUint64(s.Lower, from)
	return s
}

// ListedFrom spans the listed groups, by their first messages, from a sequence on.
func (k *Keys) ListedFrom(seq uint64) Span {
	s := keyspace.Prefix(k.tag(TagListed))
	s.Lower = binary.BigEndian.AppendUint64(s.Lower, seq)
	return s
}

// ReturnedFrom spans the groups whose first message was returned, from (due, turn) on.
func (k *Keys) ReturnedFrom(due int64, turn uint64) Span {
	s := keyspace.Prefix(k.tag(TagReturned))
	s.Lower = binary.BigEndian.AppendUint64(s.Lower, uint64(due))
	s.Lower = binary.BigEndian.AppendUint64(s.Lower, turn)
	return s
}

// DueFrom spans the scheduled messages from (due, seq) on.
func (k *Keys) DueFrom(due int64, seq uint64) Span {
	s := keyspace.Prefix(k.tag(TagDue))
	s.Lower = binary.BigEndian.AppendUint64(s.Lower, uint64(due))
	s.Lower = binary.BigEndian.AppendUint64(s.Lower, seq)
	return s
}

// ExpiryFrom spans the messages outside the main and the delayed lane, by their
// sent times, from (sent, seq) on.
func (k *Keys) ExpiryFrom(sent int64, seq uint64) Span {
	s := keyspace.Prefix(k.tag(TagExpiry))
	s.Lower = binary.BigEndian.AppendUint64(s.Lower, uint64(sent))
	s.Lower = binary.BigEndian.AppendUint64(s.Lower, seq)
	return s
}

// AllCounters spans the counters of every queue of a shard.
func AllCounters(shard uint16) Span {
	return keyspace.Prefix(keyspace.Shard(shard, keyspace.Counters))
}

// KeySequence reads the sequence at the end of a key.
func KeySequence(key []byte) uint64 { return binary.BigEndian.Uint64(key[len(key)-8:]) }

// KeyTime reads the time from a key of a time and a sequence.
func KeyTime(key []byte) int64 { return int64(binary.BigEndian.Uint64(key[len(key)-16:])) }
