// Package accepted is what a shard remembers of the messages that its FIFO queues and
// topics have accepted, so that a duplicate is not accepted again.
//
// It is remembered for five minutes, whatever becomes of the messages. The records of all
// of a shard stand in common buckets of a minute, which go as one range.
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
	from   int64 // buckets before this minute have been dropped
}

// New makes the log of a shard.
func New(k *kernel.Kernel, sh *kernel.Shard) Log { return Log{shard: sh, engine: k} }

// Original is the message that was accepted under an id. Its zero value stands for none.
type Original struct {
	ID       message.ID
	Sequence uint64
	Found    bool
}

// recordSize is the size of a record: a time, a sequence and a message id.
const recordSize = 8 + 8 + len(message.ID{})

// keySize is the size of a key.
const keySize = 3 + 8 + 8 + len(dedup.ID{})

// CheckRecord reports whether a record can be read.
func CheckRecord(value []byte) bool { return len(value) == recordSize }

// key is that of what a queue or topic accepted in a minute under an id. A scope is the
// incarnation that stands for the queue or topic.
func key(shard uint16, minute int64, scope layout.Incarnation, id dedup.ID) []byte {
	key := append(make([]byte, 0, keySize), prefix(shard)...)
	key = binary.BigEndian.AppendUint64(key, uint64(minute))
	key = binary.BigEndian.AppendUint64(key, uint64(scope))
	return append(key, id[:]...)
}

func prefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.Duplicates) }

// maxLoaded bounds the records of a bucket that are read into its filter. Of a
// bucket with more, from before a restart, every send has to look into the store.
const maxLoaded = 50_000

// Load reads what a queue or topic accepted recently.
func (l *Log) Load(scope layout.Incarnation, now int64) *dedup.Window {
	l.shard.Readable()
	w := &dedup.Window{}
	for m := dedup.Minute(now - dedup.Life); m <= dedup.Minute(now); m++ {
		bucket := key(l.shard.ID, m, scope, dedup.ID{})
		bucket = bucket[:len(bucket)-len(dedup.ID{})]
		n := 0
		err := store.Each(l.engine.Store, keyspace.Prefix(bucket), func(key, _ []byte) bool {
			if n++; n > maxLoaded {
				w.Unknown(m)
				return false
			}
			w.Add(m, dedup.ID(key[len(bucket):]))
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
		if c.Added {
			l.shard.Readable()
		}
		if o := l.read(c.Minute, scope, now, id); o.Found {
			return o
		}
	}
	return Original{}
}

func (l *Log) read(minute int64, scope layout.Incarnation, now int64, id dedup.ID) Original {
	value, ok, err := l.engine.Store.Get(nil, key(l.shard.ID, minute, scope, id))
	if err != nil {
		l.engine.Fatal(err)
	}
	if ok && len(value) == recordSize && now-int64(binary.BigEndian.Uint64(value)) < dedup.Life {
		return Original{ID: message.ID(value[16:]), Sequence: binary.BigEndian.Uint64(value[8:]), Found: true}
	}
	return Original{}
}

// SurelyNew reports that nothing was accepted under an id before, in
// this command neither. In rare cases it is false for what is new.
func (l *Log) SurelyNew(w *dedup.Window, scope layout.Incarnation, now int64, id dedup.ID) bool {
	for _, c := range w.Candidates(now, id) {
		if c.Added || l.read(c.Minute, scope, now, id).Found {
			return false
		}
	}
	return true
}

// Note remembers what was accepted, and drops the buckets that are over.
func (l *Log) Note(w *dedup.Window, scope layout.Incarnation, now int64, id dedup.ID, o Original) {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, recordSize), uint64(now))
	value = binary.BigEndian.AppendUint64(value, o.Sequence)
	l.shard.Batch.Set(key(l.shard.ID, dedup.Minute(now), scope, id), append(value, o.ID[:]...))
	w.Add(dedup.Minute(now), id)
	if over := dedup.Minute(now - dedup.Life); over > l.from {
		l.shard.Batch.DeleteRange(prefix(l.shard.ID), binary.BigEndian.AppendUint64(prefix(l.shard.ID), uint64(over)))
		l.from = over
	}
}
