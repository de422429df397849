// Package accepted is what a shard remembers of the messages that its FIFO queues and
// topics have accepted, so that a duplicate is not accepted again.
//
// It is remembered for five minutes, whatever becomes of the messages. The records of all
// of a shard stand in common buckets of a minute, which go as one range. What a queue or
// topic accepts by one command is one record, numbered within its bucket, so that records
// are written side by side. An older version wrote one for each id, under the id.
package accepted

import (
	"encoding/binary"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// Log is that of a shard. Its methods are part of a command under way.
type Log struct {
	shard  *kernel.Shard
	engine *kernel.Kernel
	from   int64  // buckets before this minute have been dropped
	value  []byte // room for a record
}

// New makes the log of a shard.
func New(k *kernel.Kernel, sh *kernel.Shard) Log { return Log{shard: sh, engine: k} }

// Original is the message that was accepted under an id. Its zero value stands for none.
type Original struct {
	ID       message.ID
	Sequence uint64
	Found    bool
}

// Entry is what is remembered of a message.
type Entry struct {
	Dedup    dedup.ID
	ID       message.ID
	Sequence uint64
}

// The sizes of keys and records: a record is a time and its entries, each an id, a
// sequence and a message id; that of a single message a time, a sequence and a message
// id. maxEntries bounds what is read to find one of them.
const (
	bucketSize = 3 + 8 + 8
	numberSize = 8
	timeSize   = 8
	entrySize  = len(dedup.ID{}) + 8 + len(message.ID{})
	singleSize = timeSize + 8 + len(message.ID{})
	maxEntries = 64
)

// CheckRecord reports whether a record can be read.
func CheckRecord(value []byte) bool {
	n := len(value) - timeSize
	return n > 0 && n%entrySize == 0 && n/entrySize <= maxEntries
}

// CheckSingle reports whether the record of a single message can be read.
func CheckSingle(value []byte) bool { return len(value) == singleSize }

// bucket appends what the keys begin with of what a queue or topic accepted in a minute.
// A scope is the incarnation that stands for the queue or topic.
func bucket(key []byte, shard uint16, minute int64, scope layout.Incarnation) []byte {
	key = append(key, byte(shard>>8), byte(shard), keyspace.Duplicates)
	key = binary.BigEndian.AppendUint64(key, uint64(minute))
	return binary.BigEndian.AppendUint64(key, uint64(scope))
}

func prefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.Duplicates) }

// Load reads what a queue or topic accepted recently.
func (l *Log) Load(scope layout.Incarnation, now int64) *dedup.Window {
	l.shard.Readable()
	w := &dedup.Window{}
	for m := max(dedup.Minute(now-dedup.Life), 0); m <= dedup.Minute(now); m++ {
		err := store.Each(l.engine.Store, keyspace.Prefix(bucket(nil, l.shard.ID, m, scope)), func(key, value []byte) bool {
			if len(key) != bucketSize+numberSize {
				w.Single(m)
				return true
			}
			record := uint32(binary.BigEndian.Uint64(key[bucketSize:]))
			for entries := value[min(timeSize, len(value)):]; len(entries) >= entrySize; entries = entries[entrySize:] {
				w.Add(m, record, dedup.ID(entries))
			}
			return true
		})
		if err != nil {
			l.engine.Fatal(err)
		}
	}
	return w
}

// Recall finds what a queue or topic has accepted under an id.
func (l *Log) Recall(w *dedup.Window, scope layout.Incarnation, now int64, id dedup.ID) Original {
	for _, c := range w.Candidates(now, id) {
		l.shard.Readable()
		if o := l.read(c, scope, now, id); o.Found {
			return o
		}
	}
	return Original{}
}

// read looks for an id in a record.
func (l *Log) read(c dedup.Candidate, scope layout.Incarnation, now int64, id dedup.ID) (o Original) {
	key := bucket(make([]byte, 0, bucketSize+len(id)), l.shard.ID, c.Minute, scope)
	if c.Single {
		key = append(key, id[:]...)
	} else {
		key = binary.BigEndian.AppendUint64(key, uint64(c.Record))
	}
	value, ok, err := l.engine.Store.Get(nil, key)
	if err != nil {
		l.engine.Fatal(err)
	}
	if !ok || len(value) < timeSize || now-int64(binary.BigEndian.Uint64(value)) >= dedup.Life {
		return o
	}
	entries := value[timeSize:]
	if c.Single && CheckSingle(value) {
		return Original{ID: message.ID(entries[8:]), Sequence: binary.BigEndian.Uint64(entries), Found: true}
	}
	for ; !c.Single && len(entries) >= entrySize; entries = entries[entrySize:] {
		if rest := entries[len(id):]; dedup.ID(entries) == id {
			return Original{ID: message.ID(rest[8:]), Sequence: binary.BigEndian.Uint64(rest), Found: true}
		}
	}
	return o
}

// SurelyNew reports that nothing was accepted under an id before, in
// this command neither. In rare cases it is false for what is new.
func (l *Log) SurelyNew(w *dedup.Window, scope layout.Incarnation, now int64, id dedup.ID) bool {
	for _, c := range w.Candidates(now, id) {
		if !c.Single || l.read(c, scope, now, id).Found {
			return false
		}
	}
	return true
}

// Note remembers what was accepted, and drops the buckets that are over.
func (l *Log) Note(w *dedup.Window, scope layout.Incarnation, now int64, entries ...Entry) {
	if len(entries) == 0 {
		return
	}
	minute := dedup.Minute(now)
	for len(entries) > 0 {
		some := entries[:min(len(entries), maxEntries)]
		entries = entries[len(some):]
		number := w.Next(minute)
		var room [bucketSize + numberSize]byte
		key := binary.BigEndian.AppendUint64(bucket(room[:0], l.shard.ID, minute, scope), uint64(number))
		value := binary.BigEndian.AppendUint64(l.value[:0], uint64(now))
		for i := range some {
			e := &some[i]
			value = binary.BigEndian.AppendUint64(append(value, e.Dedup[:]...), e.Sequence)
			value = append(value, e.ID[:]...)
			w.Add(minute, number, e.Dedup)
		}
		l.shard.Batch.Set(key, value)
		l.value = value[:0]
	}
	if over := dedup.Minute(now - dedup.Life); over > l.from {
		l.shard.Batch.DeleteRange(prefix(l.shard.ID), binary.BigEndian.AppendUint64(prefix(l.shard.ID), uint64(over)))
		l.from = over
	}
}
