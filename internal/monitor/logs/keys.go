package logs

import (
	"encoding/binary"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/monitor/logs/subscription"
)

// Tags of keys, after keyspace.LogSpace. Numbers are big-endian, so that keys are in their
// order; group and stream are ids, which are never reused.
const (
	tagSequence = keyspace.LogSequence    // → the upper bound of used ids and sequences
	tagClock    = keyspace.LogClock       // → the time of the latest commit, epoch milliseconds; by earlier versions
	tagGroup    = keyspace.LogGroups      // account 0 region 0 name → groupRecord
	tagTotals   = keyspace.LogTotals      // group → totals
	tagStream   = keyspace.LogStreams     // group name → streamRecord
	tagName     = keyspace.LogStreamNames // group stream → the stream's name
	tagLatest   = keyspace.LogLatest      // group time stream → the stream's name, by the time of its last event
	tagEvent    = keyspace.LogEvents      // group time sequence → stream, ingestion, message
	tagIndex    = keyspace.LogIndex       // group hour stream time sequence → nothing
	tagBucket   = keyspace.LogBuckets     // group hour → bucket
	tagOldest   = keyspace.LogOldest      // hour group → nothing, for each bucket
	tagDue      = keyspace.LogExpiries    // hour group → nothing: when its next events expire
	tagDeleted  = keyspace.LogDeleted     // group stream → nothing: its events are yet to be removed
	tagPut      = keyspace.LogPuts        // group sequence → subscription.Put: its events are yet to be handed over
	tagCursor   = keyspace.LogCursors     // group filter → next sequence, account 0 region 0 name of the group
)

// hour is the width of a bucket, in milliseconds: its events expire together.
const hour = 3_600_000

func key(tag byte, numbers ...uint64) []byte {
	k := make([]byte, 0, 2+8*len(numbers)+16)
	k = append(k, keyspace.LogSpace, tag)
	for _, n := range numbers {
		k = binary.BigEndian.AppendUint64(k, n)
	}
	return k
}

// number is the nth number of a key.
func number(k []byte, n int) uint64 { return binary.BigEndian.Uint64(k[2+8*n:]) }

func streamKey(group uint64, name string) []byte { return append(key(tagStream, group), name...) }

func groupKey(a arn.ARN) []byte {
	name, _ := a.LogGroupName()
	return append(groupPrefix(a.Region, a.Account), name...)
}

func groupPrefix(region, account string) []byte {
	return append(key(tagGroup), account+"\x00"+region+"\x00"...)
}

// groupOf decodes the name of a group in its key.
func groupOf(k []byte) arn.ARN {
	parts := strings.SplitN(string(k[2:]), "\x00", 3)
	return arn.LogGroup(parts[1], parts[0], parts[2])
}

// behind is the end of all keys with a prefix, whose last byte is not 0xff.
func behind(prefix []byte) []byte {
	for n, b := range slices.Backward(prefix) {
		if b != 0xff {
			return append(append([]byte{}, prefix[:n]...), b+1)
		}
	}
	return nil
}

// position is the position of an event in its group: events are ordered by time, those of one
// time by arrival.
type position struct{ time, sequence uint64 }

func (p position) less(q position) bool {
	return p.time < q.time || p.time == q.time && p.sequence < q.sequence
}

// next is the next position.
func (p position) next() position { return position{p.time, p.sequence + 1} }

func (p position) hour() uint64 { return p.time / hour }

var last = position{1<<63 - 1, 1<<64 - 1}

func eventKey(group uint64, p position) []byte { return key(tagEvent, group, p.time, p.sequence) }

func indexKey(group, stream uint64, p position) []byte {
	return key(tagIndex, group, p.hour(), stream, p.time, p.sequence)
}

// groupRecord is the record of a group by name.
type groupRecord struct {
	id      uint64
	created int64 // epoch milliseconds
	details []byte
}

// details of a group, which are rarely read, as JSON.
type details struct {
	Class      string                `json:"class,omitempty"`
	Protected  bool                  `json:"protected,omitempty"`
	Tags       map[string]string     `json:"tags,omitempty"`
	Filters    []MetricFilter        `json:"metricFilters,omitempty"`       // by name
	Subscribed []subscription.Filter `json:"subscriptionFilters,omitempty"` // by name
}

func (g groupRecord) encode() []byte {
	v := binary.BigEndian.AppendUint64(nil, g.id)
	v = binary.BigEndian.AppendUint64(v, uint64(g.created))
	return append(v, g.details...)
}

func decodeGroup(v []byte) (g groupRecord, ok bool) {
	if len(v) < 16 {
		return g, false
	}
	return groupRecord{binary.BigEndian.Uint64(v), int64(binary.BigEndian.Uint64(v[8:])), v[16:]}, true
}

// totals are the values that change with every put to a group. They exist if and only if the
// group does.
type totals struct {
	retention uint64 // days; 0: for ever
	due       uint64 // the hour of the group's tagDue; 0: none
	bucket
}

// bucket is the size of a group, or of an hour of one.
type bucket struct{ bytes, events uint64 }

// The size of an event in addition to its message, in bytes: for AWS's storedBytes, and
// approximately of its keys on disk.
const (
	eventOverhead = 26
	diskOverhead  = 100
)

func (b bucket) disk() int64 { return int64(b.bytes + diskOverhead*b.events) }

func (b bucket) stored() int64 { return int64(b.bytes + eventOverhead*b.events) }

func (b *bucket) add(o bucket) { b.bytes, b.events = b.bytes+o.bytes, b.events+o.events }

// sub subtracts o, but not below zero.
func (b *bucket) sub(o bucket) {
	b.bytes, b.events = b.bytes-min(b.bytes, o.bytes), b.events-min(b.events, o.events)
}

func (b bucket) encode() []byte { return numbers(b.bytes, b.events) }

func (t totals) encode() []byte { return numbers(t.retention, t.due, t.bytes, t.events) }

func decodeTotals(v []byte) (t totals, ok bool) {
	if len(v) != 32 {
		return t, false
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(v[8*i:]) }
	return totals{n(0), n(1), bucket{n(2), n(3)}}, true
}

const bucketSize = 8 + 8

func decodeBucket(v []byte) (b bucket) {
	if len(v) == bucketSize {
		b = bucket{binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:])}
	}
	return b
}

// streamRecord is the record of a stream by name. Times are epoch milliseconds; first, last and
// ingested are 0 until it has an event.
type streamRecord struct {
	id                             uint64
	created, first, last, ingested uint64
}

func (s streamRecord) encode() []byte { return numbers(s.id, s.created, s.first, s.last, s.ingested) }

func decodeStream(v []byte) (s streamRecord, ok bool) {
	if len(v) != 40 {
		return s, false
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(v[8*i:]) }
	return streamRecord{n(0), n(1), n(2), n(3), n(4)}, true
}

func numbers(all ...uint64) []byte {
	v := make([]byte, 0, 8*len(all))
	for _, n := range all {
		v = binary.BigEndian.AppendUint64(v, n)
	}
	return v
}
