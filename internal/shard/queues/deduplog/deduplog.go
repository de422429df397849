// Package deduplog is a shard's deduplication log: which messages its FIFO queues and topics
// have accepted in the last five minutes, whatever has become of them since.
//
// The records of all queues and topics of a shard are in buckets of one minute, so that one
// range tombstone drops all that expired in a minute. A message that was accepted alone has a
// record by its id, which is a hash, so that the store has it anywhere in its bucket. Messages
// that were accepted together have one record, behind those of the batches before: that costs
// the store less than a tenth a message.
package deduplog

import (
	"encoding/binary"
	"iter"
	"slices"

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

	windows  map[*dedup.Window]struct{} // that may have something
	expireAt int64                      // when they are to be looked at, in epoch milliseconds; 0: there are none
}

// New makes the log of a shard.
func New(k *kernel.Kernel, sh *kernel.Shard) Log {
	return Log{shard: sh, kernel: k, windows: map[*dedup.Window]struct{}{}}
}

// Original is the message that was accepted first under a deduplication id.
type Original struct {
	ID       message.ID
	Sequence uint64
	Found    bool
}

// Entry is a message that was accepted under a deduplication id.
type Entry struct {
	Dedup    dedup.ID
	ID       message.ID
	Sequence uint64
}

// The sizes of records, in bytes. A record has a time, and behind it a sequence and a message id;
// in that of a batch these follow the id they were accepted under, for each message.
const (
	timeSize   = 8
	resultSize = 8 + len(message.ID{})
	recordSize = timeSize + resultSize
	entrySize  = len(dedup.ID{}) + resultSize
)

// keySize is the size of a key.
const keySize = 3 + 8 + 8 + len(dedup.ID{})

// CheckRecord reports whether a record can be read.
func CheckRecord(value []byte) bool { return len(value) == recordSize }

// CheckBatch reports whether the record of a batch can be read.
func CheckBatch(value []byte) bool {
	return len(value) > timeSize && (len(value)-timeSize)%entrySize == 0
}

// bucket is the beginning of the keys of what a queue or topic accepted in a minute since the
// epoch. scope identifies the queue or topic in the log: an incarnation.
func bucket(shard uint16, tag byte, minute int64, scope layout.Incarnation) []byte {
	key := append(make([]byte, 0, keySize), keyspace.Shard(shard, tag)...)
	key = binary.BigEndian.AppendUint64(key, uint64(minute))
	return binary.BigEndian.AppendUint64(key, uint64(scope))
}

// key is the key of what was accepted under an id.
func key(shard uint16, minute int64, scope layout.Incarnation, id dedup.ID) []byte {
	return append(bucket(shard, keyspace.Duplicates, minute, scope), id[:]...)
}

// batchKey is the key of the batch that begins with the message of a sequence number.
func batchKey(shard uint16, minute int64, scope layout.Incarnation, first uint64) []byte {
	return binary.BigEndian.AppendUint64(bucket(shard, keyspace.DuplicateBatches, minute, scope), first)
}

// maxLoaded bounds the records of a bucket that Load reads into its filter, but for those of
// batches. For a bucket with more, every send looks into the store, until the bucket expires.
const maxLoaded = 50_000

// Load makes what is in memory of what a queue or topic accepted in the last dedup.Life.
func (l *Log) Load(scope layout.Incarnation, now int64) *dedup.Window {
	l.shard.FlushAppended()
	w := &dedup.Window{}
	for m := dedup.Minute(now - dedup.Life); m <= dedup.Minute(now); m++ {
		if err := l.load(w, scope, m); err != nil {
			l.kernel.Fatal(err)
		}
	}
	l.watch(w, now)
	return w
}

// expireTime is the time between two looks at what of the windows has ended, in milliseconds: a queue
// that is not used any more would keep it.
const expireTime = dedup.Life + 60_000

// watch has a window looked at that may have got something.
func (l *Log) watch(w *dedup.Window, now int64) {
	l.windows[w] = struct{}{}
	if l.expireAt == 0 {
		l.expireAt = now + expireTime
	}
}

// Forget drops a window that is used no more.
func (l *Log) Forget(w *dedup.Window) { delete(l.windows, w) }

// NextDue is when Expire has something to do, in epoch milliseconds; 0: never.
func (l *Log) NextDue() int64 { return l.expireAt }

// Expire frees the memory of what has ended, if it is due.
func (l *Log) Expire(now int64) {
	if l.expireAt == 0 || now < l.expireAt {
		return
	}
	l.expireAt = 0
	for w := range l.windows {
		if w.Expire(now); w.Len() == 0 {
			delete(l.windows, w)
			continue
		}
		l.expireAt = now + expireTime
	}
}

func (l *Log) load(w *dedup.Window, scope layout.Incarnation, minute int64) error {
	n := 0
	single := keyspace.Prefix(bucket(l.shard.ID, keyspace.Duplicates, minute, scope))
	if err := store.EachOf(l.kernel.Store, keyspace.KindDuplicate, single, func(k *keyspace.Key, _ []byte) error {
		if n++; n > maxLoaded {
			w.Unknown(minute)
			return store.ErrStop
		}
		w.Add(minute, dedup.ID(k.Bytes(keyspace.PartID)))
		return nil
	}); err != nil {
		return err
	}
	batches := keyspace.Prefix(bucket(l.shard.ID, keyspace.DuplicateBatches, minute, scope))
	return store.EachOf(l.kernel.Store, keyspace.KindDuplicateBatch, batches, func(k *keyspace.Key, value []byte) error {
		first, _ := k.Number(keyspace.PartSequence)
		for e := range entries(value) {
			w.AddBatched(minute, first, e.Dedup)
		}
		return nil
	})
}

// entries are those of a batch's record.
func entries(value []byte) iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		if !CheckBatch(value) {
			return
		}
		for part := range slices.Chunk(value[timeSize:], entrySize) {
			id, result := part[:len(dedup.ID{})], part[len(dedup.ID{}):]
			if !yield(Entry{Dedup: dedup.ID(id), Sequence: binary.BigEndian.Uint64(result), ID: message.ID(result[8:])}) {
				return
			}
		}
	}
}

// Recall finds what a queue or topic has accepted under an id in the last dedup.Life before
// now, in epoch milliseconds.
func (l *Log) Recall(w *dedup.Window, scope layout.Incarnation, now int64, id dedup.ID) Original {
	for _, c := range w.Candidates(now, id) {
		if c.Added {
			l.shard.FlushAppended()
		}
		if o := l.read(c, scope, now, id); o.Found {
			return o
		}
	}
	return Original{}
}

func (l *Log) read(c dedup.Candidate, scope layout.Incarnation, now int64, id dedup.ID) Original {
	at, readable := key(l.shard.ID, c.Minute, scope, id), CheckRecord
	if c.Batched {
		at, readable = batchKey(l.shard.ID, c.Minute, scope, c.First), CheckBatch
	}
	value, ok, err := l.kernel.Store.Get(nil, at)
	if err != nil {
		l.kernel.Fatal(err)
	}
	if !ok || !readable(value) || now-int64(binary.BigEndian.Uint64(value)) >= dedup.Life {
		return Original{}
	}
	if !c.Batched {
		return Original{ID: message.ID(value[timeSize+8:]), Sequence: binary.BigEndian.Uint64(value[timeSize:]), Found: true}
	}
	for e := range entries(value) {
		if e.Dedup == id {
			return Original{ID: e.ID, Sequence: e.Sequence, Found: true}
		}
	}
	return Original{}
}

// SurelyNew reports that nothing was accepted under an id before, not in this command
// either. It may rarely be false for a new id, by a false positive of a filter: unlike Recall
// it does not flush the journal to find out.
func (l *Log) SurelyNew(w *dedup.Window, scope layout.Incarnation, now int64, id dedup.ID) bool {
	for _, c := range w.Candidates(now, id) {
		if c.Added || l.read(c, scope, now, id).Found {
			return false
		}
	}
	return true
}

// Note records what a command has accepted, at least one message, in the order of its sequence
// numbers, and drops the buckets that have expired.
func (l *Log) Note(w *dedup.Window, scope layout.Incarnation, now int64, accepted ...Entry) {
	l.watch(w, now)
	minute := dedup.Minute(now)
	value := binary.BigEndian.AppendUint64(make([]byte, 0, timeSize+len(accepted)*entrySize), uint64(now))
	if first := accepted[0].Sequence; len(accepted) > 1 && w.TakesBatch(minute, first) {
		for _, e := range accepted {
			value = e.appendResult(append(value, e.Dedup[:]...))
			w.AddBatched(minute, first, e.Dedup)
		}
		l.shard.Batch.Set(batchKey(l.shard.ID, minute, scope, first), value)
	} else {
		for _, e := range accepted {
			l.shard.Batch.Set(key(l.shard.ID, minute, scope, e.Dedup), e.appendResult(value[:timeSize]))
			w.Add(minute, e.Dedup)
		}
	}
	if over := dedup.Minute(now - dedup.Life); over > l.from {
		for _, tag := range []byte{keyspace.Duplicates, keyspace.DuplicateBatches} {
			from := keyspace.Shard(l.shard.ID, tag)
			l.shard.Batch.DeleteRange(from, binary.BigEndian.AppendUint64(slices.Clone(from), uint64(over)))
		}
		l.from = over
	}
}

func (e *Entry) appendResult(b []byte) []byte {
	return append(binary.BigEndian.AppendUint64(b, e.Sequence), e.ID[:]...)
}
