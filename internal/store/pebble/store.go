// Package pebble keeps a store on disk with Pebble, a log-structured merge
// tree with a write-ahead log, or without one (Options.NoLog).
//
// Invariants: a directory that Open accepts holds our format file; the store
// refuses every use after its first failure, and the process ends with it.
package pebble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble/badblocks"
	"godwit.dev/godwit/internal/store/pebble/durable"
	"godwit.dev/godwit/internal/store/pebble/headroom"
	"godwit.dev/godwit/internal/store/pebble/pace"
	"godwit.dev/godwit/internal/store/pebble/pause"
)

// Store is a store on disk. Close must come after its iterators and snapshots
// are closed.
type Store struct {
	db       *pebble.DB
	fs       vfs.FS
	dir      string
	headroom *headroom.FS
	lock     *pebble.Lock

	durable     *durable.FS
	blocks      *badblocks.FS
	damage      damage
	describe    func(key []byte) string
	compactions *pause.Compactions

	log *slog.Logger

	dropped        dropped
	idleCompaction idleCompaction
	reclaim        reclaim
	repairs        repairs
	gate           gate
	flushes        flushes

	failure failure

	// Held for reading during each call, so that Close waits for it: Pebble panics if it
	// is closed during a call.
	using  sync.RWMutex
	closed bool
}

// failure is the first failure, after which the store cannot be used.
type failure struct {
	first    atomic.Pointer[error]
	happened chan struct{} // closed once there is one
	fatal    func(error)
}

var (
	_ store.Store     = (*Store)(nil)
	_ store.Committer = (*Store)(nil)
)

// enter begins a call; unless it fails, s.using.RUnlock ends the call.
func (s *Store) enter() error {
	s.using.RLock()
	if s.closed {
		s.using.RUnlock()
		return store.ErrClosed
	}
	if err := s.failed(); err != nil {
		s.using.RUnlock()
		return err
	}
	return nil
}

// fail records the first failure and reports it.
func (s *Store) fail(err error) {
	if s.failure.first.CompareAndSwap(nil, &err) {
		close(s.failure.happened)
		s.gate.change(func() {})
		s.failure.fatal(err)
	}
}

func (s *Store) failed() error {
	if err := s.failure.first.Load(); err != nil {
		return fmt.Errorf("store: failed: %w", *err)
	}
	return nil
}

// Get implements store.Reader.
func (s *Store) Get(dst, key []byte) (value []byte, ok bool, err error) {
	if err := s.enter(); err != nil {
		return dst, false, err
	}
	defer s.using.RUnlock()
	if s.damage.any.Load() {
		defer s.repairs.views.Enter().Leave()
	}
	return s.get(s.db, dst, key)
}

func get(r pebble.Reader, dst, key []byte) ([]byte, bool, error) {
	v, closer, err := r.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return dst, false, nil
	}
	if err != nil {
		return dst, false, err
	}
	dst = append(dst, v...)
	return dst, true, closer.Close()
}

// Iter implements store.Reader.
func (s *Store) Iter(lower, upper []byte) (store.Iterator, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.using.RUnlock()
	return s.iter(s.db, lower, upper)
}

func (s *Store) iter(r pebble.Reader, lower, upper []byte) (store.Iterator, error) {
	if upper != nil && bytes.Compare(lower, upper) >= 0 {
		return none{}, nil // Pebble takes an empty bound for no bound
	}
	if len(lower) == 0 {
		lower = nil // Pebble's own checks fail for an empty bound
	}
	if s.damage.any.Load() {
		upper = hidden(upper)
	}
	open := s.repairs.views.Enter()
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		open.Leave()
		return nil, err
	}
	return &iterator{s: s, it: it, lower: lower, upper: upper, open: open}, nil
}

// none is the iterator of an empty range.
type none struct{}

func (none) Next() bool       { return false }
func (none) Prev() bool       { return false }
func (none) Seek([]byte) bool { return false }
func (none) Key() []byte      { return nil }
func (none) Value() []byte    { return nil }
func (none) Close() error     { return nil }

// Apply implements store.Store.
func (s *Store) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.using.RUnlock()
	logged := sync == store.Sync && !s.flushes.only
	pb, err := s.apply(batches, func(pb *pebble.Batch) error {
		if logged {
			return pb.Commit(pebble.Sync)
		}
		return pb.Commit(pebble.NoSync)
	})
	if err != nil {
		return err
	}
	if pb != nil {
		if logged {
			s.reached(pb)
		}
		err = pb.Close()
	}
	if sync == store.Sync && (pb == nil || !logged) {
		err = errors.Join(err, s.sync())
	}
	return err
}

// Commit implements store.Committer. The log is written and synced by Pebble's own
// goroutine, while the caller's puts the writes into the memtable.
func (s *Store) Commit(batches ...*mutation.Batch) (durable func() error, err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.using.RUnlock()
	pb, err := s.apply(batches, func(pb *pebble.Batch) error {
		if s.flushes.only {
			return pb.Commit(pebble.NoSync)
		}
		return s.db.ApplyNoSyncWait(pb, pebble.Sync)
	})
	if pb == nil || err != nil {
		return nil, err
	}
	if s.flushes.only {
		return s.Sync, pb.Close()
	}
	return func() error {
		if err := s.enter(); err != nil {
			return err
		}
		defer s.using.RUnlock()
		if err := s.guarded(pb.SyncWait); err != nil {
			return err
		}
		s.reached(pb)
		return pb.Close()
	}, nil
}

// reached notes that a batch is durable.
func (s *Store) reached(pb *pebble.Batch) {
	s.durable.Reached(uint64(pb.SeqNum()) + uint64(pb.Count()) - 1)
}

// apply converts batches to one of Pebble's, which the caller closes, and commits it. It is nil
// if there is nothing to write.
func (s *Store) apply(batches []*mutation.Batch, commit func(*pebble.Batch) error) (*pebble.Batch, error) {
	s.admit()
	s.repairs.writing.RLock()
	defer s.repairs.writing.RUnlock()
	size, count, deletes, ranges := 0, 0, 0, false
	for _, b := range batches {
		size += b.Size()
		count += b.Len()
		deletes += b.Deletes()
		ranges = ranges || b.Ranges()
	}
	if count == 0 {
		return nil, nil
	}
	s.noteWrites(count, deletes)
	var pb *pebble.Batch
	if ranges {
		pb = s.db.NewBatch()
		for _, b := range batches {
			if err := b.Each(func(op mutation.Op, key, value []byte) error { return add(pb, op, key, value) }); err != nil {
				return nil, errors.Join(err, pb.Close()) // corrupt: nothing was written
			}
		}
	} else {
		// Pebble owns the memory, and reuses that of a batch for a later one: with powers of
		// two more of them fit.
		pb = s.db.NewBatchWithSize(1<<bits.Len(uint(batchHeader+size)), pebble.WithMaxRetainedSizeBytes(maxRetained))
		repr := pb.Repr()
		for _, b := range batches {
			repr = b.AppendTo(repr)
		}
		binary.LittleEndian.PutUint32(repr[batchHeader-4:], uint32(count))
		if err := pb.SetRepr(repr); err != nil {
			return nil, errors.Join(err, pb.Close()) // corrupt: nothing was written
		}
	}
	s.reclaim.applied.Add(1)
	if err := s.guarded(func() error { return commit(pb) }); err != nil {
		return nil, err
	}
	if s.flushes.only {
		s.flushes.applied.Add(1)
	}
	if ranges {
		s.dropRanges(batches)
	}
	return pb, nil
}

// maxRetained bounds the buffer of a batch that Pebble reuses for a later one, in bytes.
const maxRetained = 4 << 20

// batchHeader is the length of the head of Pebble's batches: eight bytes for
// Pebble, and the count of writes.
const batchHeader = 12

// Batches are copied as they are, since both encode a write alike: this does not compile if the
// kinds differ.
var _ = [1]struct{}{}[(pebble.InternalKeyKindSet^pebble.InternalKeyKind(mutation.Set))|
	(pebble.InternalKeyKindDelete^pebble.InternalKeyKind(mutation.Delete))|
	(pebble.InternalKeyKindSingleDelete^pebble.InternalKeyKind(mutation.SingleDelete))]

// add adds a write to a batch, except empty ranges.
func add(pb *pebble.Batch, op mutation.Op, key, value []byte) error {
	switch op {
	case mutation.Set:
		return pb.Set(key, value, nil)
	case mutation.Delete:
		return pb.Delete(key, nil)
	case mutation.SingleDelete:
		return pb.SingleDelete(key, nil)
	case mutation.DeleteRange:
		if bytes.Compare(key, value) >= 0 {
			return nil // an empty range
		}
		return pb.DeleteRange(key, value, nil)
	default:
		return fmt.Errorf("%w: unknown write %d", mutation.ErrCorrupt, op)
	}
}

// commit makes a batch durable.
func (s *Store) commit(pb *pebble.Batch) error {
	options := pebble.Sync
	if s.flushes.only {
		options = pebble.NoSync
	}
	if err := s.guarded(func() error { return pb.Commit(options) }); err != nil || !s.flushes.only {
		return err
	}
	s.flushes.applied.Add(1)
	return s.flush()
}

// guarded makes a call that writes, and reports any failure to Fatal. Pebble reports some
// failures by a call of Fatalf and then success, some by a panic, few by an error.
func (s *Store) guarded(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			s.fail(fmt.Errorf("pebble: %v", p))
		} else if err != nil {
			s.fail(err)
		}
		if f := s.failed(); f != nil {
			err = f
		}
	}()
	return call()
}

// Sync implements store.Store.
func (s *Store) Sync() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.using.RUnlock()
	return s.sync()
}

// sync appends an empty record to the write-ahead log and syncs it, and with it all records
// before. Without a log it flushes.
func (s *Store) sync() error {
	if s.flushes.only {
		return s.flush()
	}
	pb := s.db.NewBatch()
	if err := pb.LogData(nil, nil); err != nil {
		return err
	}
	if err := s.guarded(func() error { return pb.Commit(pebble.Sync) }); err != nil {
		return err
	}
	s.durable.Reached(uint64(pb.SeqNum()) - 1) // it has none of its own
	return pb.Close()
}

// Snapshot implements store.Store. Every read of a closed or failed store's snapshot fails with
// the error.
func (s *Store) Snapshot() store.Snapshot {
	if err := s.enter(); err != nil {
		return &snapshot{store: s}
	}
	defer s.using.RUnlock()
	open := s.repairs.views.Enter()
	return &snapshot{store: s, view: s.db.NewSnapshot(), open: open}
}

type snapshot struct {
	store *Store
	view  *pebble.Snapshot // nil: closed
	open  *pace.View
}

func (v *snapshot) enter() error {
	if err := v.store.enter(); err != nil {
		return err
	}
	if v.view == nil {
		v.store.using.RUnlock()
		return store.ErrClosed
	}
	return nil
}

func (v *snapshot) Get(dst, key []byte) (value []byte, ok bool, err error) {
	if err := v.enter(); err != nil {
		return dst, false, err
	}
	defer v.store.using.RUnlock()
	return v.store.get(v.view, dst, key)
}

func (v *snapshot) Iter(lower, upper []byte) (store.Iterator, error) {
	if err := v.enter(); err != nil {
		return nil, err
	}
	defer v.store.using.RUnlock()
	return v.store.iter(v.view, lower, upper)
}

// Close implements store.Snapshot. A second Close does nothing.
func (v *snapshot) Close() error {
	v.store.using.RLock()
	defer v.store.using.RUnlock()
	view := v.view
	v.view = nil
	if view == nil {
		return nil
	}
	v.open.Leave()
	if v.store.closed {
		return nil
	}
	return view.Close()
}

// Checkpoint implements store.Store. Tables are hard links where dir is on
// the same file system. Without a log it fails where the disk is full.
func (s *Store) Checkpoint(dir string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.using.RUnlock()
	if err := s.tryFlush(); err != nil { // a checkpoint has tables and logs, and no memtables
		return fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	if err := s.db.Checkpoint(dir, pebble.WithFlushedWAL()); err != nil {
		return fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	// Last, so that a truncated checkpoint is refused.
	if err := errors.Join(s.repairs.notes.CopyTo(dir), writeMark(s.fs, dir), writeFormat(s.fs, dir)); err != nil {
		return fmt.Errorf("checkpoint %s: %w", dir, err)
	}
	return nil
}

// Close implements store.Store. It waits for calls in progress; a second Close does nothing.
func (s *Store) Close() error {
	s.gate.close()
	s.flushes.throttle.Close()
	left := s.flushLast() // while there is headroom
	s.flushes.stop()
	s.dropped.end()
	s.idleCompaction.end()
	s.repairs.end()
	s.headroom.Close() // calls in progress may wait for a flush
	s.using.Lock()
	defer s.using.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	if left == nil && s.failed() == nil {
		left = s.tryFlush() // what calls have applied meanwhile
	}
	err := s.db.Close()
	return errors.Join(left, err, s.durable.Close(err == nil && s.failed() == nil), s.lock.Close(), s.failed())
}
