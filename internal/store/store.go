// Package store is the interface of the ordered key-value store that shards keep their state
// in. It is a thin driver interface: an engine applies batches and reads keys, and retries
// nothing. The conformance suite in storetest defines what an engine must do.
package store

import (
	"errors"

	"godwit.dev/godwit/internal/mutation"
)

// ErrClosed reports a use after Close.
var ErrClosed = errors.New("store: closed")

// ErrDamaged reports stored bytes that cannot be read.
var ErrDamaged = errors.New("the store is damaged")

// Damaged is a Store that reads past damage and reports it: a value that cannot be read is
// empty, and a key that cannot be read does not exist.
type Damaged interface {
	// DamageIn describes, as ErrDamaged, the damage found among the keys in [lower, upper) so
	// far; nil: none.
	DamageIn(lower, upper []byte) error
}

// Reader reads keys. A Reader that is a Store sees every batch applied so far;
// one that is a Snapshot sees those applied before it was taken.
type Reader interface {
	// Get appends the value at key to dst; ok is false if there is none.
	Get(dst, key []byte) (value []byte, ok bool, err error)
	// Iter iterates over the keys in [lower, upper) in ascending order. A nil upper is the end
	// of the key space. The caller closes it.
	Iter(lower, upper []byte) (Iterator, error)
}

// Iterator iterates over a range of keys, up with Next and Seek, or down with Prev: an iterator
// is used in one direction. Typical use:
//
//	for it.Next() { it.Key(); it.Value() }
//	err := it.Close()
type Iterator interface {
	// Next moves to the next key; the first call moves to the first.
	Next() bool
	// Prev moves to the key before; the first call moves to the last.
	Prev() bool
	// Seek moves to the first key from key on; key must not be below the current key. false:
	// there is none in the range.
	Seek(key []byte) bool
	// Key and Value are valid until the next call of Next, Prev, Seek or Close.
	Key() []byte
	Value() []byte
	// Close closes the iterator and returns the error that ended the iteration early, if any.
	Close() error
}

// SyncMode says whether Apply waits for the disk.
type SyncMode uint8

// The modes of Apply.
const (
	NoSync SyncMode = iota // it returns once the batches are visible
	Sync                   // it returns once they, and everything applied before, are durable
)

// Store is an ordered key-value store with atomic, durable batches. All methods may be called
// concurrently.
type Store interface {
	Reader
	// Apply makes the batches visible as one atomic unit: a crash keeps all of their writes or
	// none. Batches become durable in the order in which they were applied. The batches are not
	// kept.
	//
	// A failure leaves the store unusable: the caller must end the process.
	Apply(sync SyncMode, batches ...*mutation.Batch) error
	// Sync returns once everything applied so far is durable.
	Sync() error
	// Snapshot is an immutable view of the current state. The caller closes it.
	Snapshot() Snapshot
	// Checkpoint writes a copy of the store, openable on its own, into the
	// directory dir, which must not exist yet.
	Checkpoint(dir string) error
	// Close syncs and releases the store.
	Close() error
}

// Committer is a Store that can sync batches while it applies them.
type Committer interface {
	// Commit is Apply, and begins to make the batches, and everything applied before, durable.
	// durable returns once they are; it must be called once. Without any write, and after a
	// failure, it is nil.
	Commit(batches ...*mutation.Batch) (durable func() error, err error)
}

// Flusher is a Store that can make durable what was applied without anybody waiting for it. It is
// meant for one that keeps no log of its own.
type Flusher interface {
	// Flush begins to make everything applied so far durable, and does not wait.
	Flush() error
	// GetDurable is Get of a state that every crash keeps: of some batch and all before it.
	GetDurable(dst, key []byte) (value []byte, ok bool, err error)
}

// Stats are the statistics of a store on disk. Sizes are in bytes.
type Stats struct {
	DiskBytes                        uint64 // all files
	WALBytes, WALWritten             uint64 // of the write-ahead log: current size, and bytes written since the start
	MemTableBytes                    uint64 // write buffers
	Flushes, Compactions, Compacting int64  // completed, completed, and in progress
	CompactionDebt                   uint64 // bytes to be compacted
	L0Tables                         int64
	L0Sublevels                      int32
	CacheBytes                       int64
	CacheHits, CacheMisses           int64
	DamagedFiles, UnreadableRecords  int64 // found since the start; of the latter, places with one or several records
}

// Snapshot is a fixed view of a store.
type Snapshot interface {
	Reader
	Close() error
}
