// Package deduplog is a shard's deduplication log: which messages its FIFO queues and topics
// have accepted in the last five minutes, whatever has become of them since.
//
// The records of all queues and topics of a shard are in buckets of one minute, so that one
// range tombstone drops all that expired in a minute.
package deduplog

import (
	"encoding/binary"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// Log is the deduplication log of a shard. Its methods are called in a command of the shard.
type Log struct {
	shard  *kernel.Shard
	kernel *kernel.Kernel
	from   int64 // buckets before this minute have been dropped
}

// New makes the log of a shard.
func New(k *kernel.Kernel, sh *kernel.Shard) Log { return Log{shard: sh, kernel: k} }

// Original is the message that was accepted first under a deduplication id.
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

// key is the key of what a queue or topic accepted under an id in a minute since the epoch.
// scope identifies the queue or topic in the log: an incarnation.
func key(shard uint16, minute int64, scope layout.Incarnation, id dedup.ID) []byte {
	key := append(make([]byte, 0, keySize), prefix(shard)...)
	key = binary.BigEndian.AppendUint64(key, uint64(minute))
	key = binary.BigEndian.AppendUint64(key, uint64(scope))
	return append(key, id[:]...)
}

func prefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.Duplicates) }

// maxLoaded bounds the records of a bucket that Load reads into its filter. For a bucket with
// more, every send looks into the store, until the bucket expires.
const maxLoaded = 50_000

// Load makes the in-memory filters of what a queue or topic accepted in the last dedup.Life.
func (l *Log) Load(scope layout.Incarnation, now int64) *dedup.Window {
	l.shard.FlushAppended()
	w := &dedup.Window{}
	for m := dedup.Minute(now - dedup.Life); m <= dedup.Minute(now); m++ {
		bucket := key(l.shard.ID, m, scope, dedup.ID{})
		bucket = bucket[:len(bucket)-len(dedup.ID{})]
		n := 0
		err := store.EachOf(l.kernel.Store, keyspace.KindDuplicate, keyspace.Prefix(bucket), func(k *keyspace.Key, _ []byte) error {
			if n++; n > maxLoaded {
				w.Unknown(m)
				return store.ErrStop
			}
			w.Add(m, dedup.ID(k.Bytes(keyspace.PartID)))
			return nil
		})
		if err != nil {
			l.kernel.Fatal(err)
		}
	}
	return w
}

// Recall finds what a queue or topic has accepted under an id in the last dedup.Life before
// now, in epoch milliseconds.
func (l *Log) Recall(w *dedup.Window, scope layout.Incarnation, now int64, id dedup.ID) Original {
	for _, c := range w.Candidates(now, id) {
		if c.Added {
			l.shard.FlushAppended()
		}
		if o := l.read(c.Minute, scope, now, id); o.Found {
			return o
		}
	}
	return Original{}
}

func (l *Log) read(minute int64, scope layout.Incarnation, now int64, id dedup.ID) Original {
	value, ok, err := l.kernel.Store.Get(nil, key(l.shard.ID, minute, scope, id))
	if err != nil {
		l.kernel.Fatal(err)
	}
	if ok && len(value) == recordSize && now-int64(binary.BigEndian.Uint64(value)) < dedup.Life {
		return Original{ID: message.ID(value[16:]), Sequence: binary.BigEndian.Uint64(value[8:]), Found: true}
	}
	return Original{}
}

// SurelyNew reports that nothing was accepted under an id before, not in this command
// either. It may rarely be false for a new id, by a false positive of a filter: unlike Recall
// it does not flush the journal to find out.
func (l *Log) SurelyNew(w *dedup.Window, scope layout.Incarnation, now int64, id dedup.ID) bool {
	for _, c := range w.Candidates(now, id) {
		if c.Added || l.read(c.Minute, scope, now, id).Found {
			return false
		}
	}
	return true
}

// Note records what was accepted under an id, and drops the buckets that have expired.
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
