// Package overlay is a store with uncommitted writes on top: what the owner of a cell has
// written is kept in memory, over the committed store, until the log has accepted it. So an
// owner that is replaced has not changed the committed store.
package overlay

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/tidwall/btree"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// item is the latest uncommitted write of a key. Its slices are immutable.
type item struct {
	key, value []byte
	number     uint64 // of the unit that wrote it
	deleted    bool
}

func less(a, b item) bool { return bytes.Compare(a.key, b.key) < 0 }

type tree = btree.BTreeG[item]

// rangeTombstone is a range of keys that the committed store has and that are deleted.
type rangeTombstone struct {
	lower, upper []byte
	number       uint64
}

// rangeTombstones hide keys of the committed store; what is in the tree lies above them.
type rangeTombstones []rangeTombstone

// end is where the range ends that a key is in; nil: it is in none.
func (ts rangeTombstones) end(key []byte) (end []byte) {
	for _, h := range ts {
		if bytes.Compare(h.lower, key) <= 0 && bytes.Compare(key, h.upper) < 0 && bytes.Compare(end, h.upper) < 0 {
			end = h.upper
		}
	}
	return end
}

// Store is a committed store with uncommitted units of writes on top. Units are written, and
// flushed, in the order of their numbers.
type Store struct {
	base store.Store

	closing sync.RWMutex // held by readers of snapshots of frozen; taken before mu

	mu         sync.RWMutex
	tree       *tree           // a persistent B-tree: a clone is a consistent view
	tombstones rangeTombstones // never changed in place
	pending    []unit
	frozen     store.Snapshot // what is read of the committed store; nil: the store itself
	closed     bool
}

// unit is the writes that are flushed together.
type unit struct {
	number uint64
	keys   [][]byte // of its writes, as the tree has them
}

// New lays an empty overlay over base. Closing it leaves base open.
func New(base store.Store) *Store {
	return &Store{base: base, tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

// Write adds a unit, whose number must be greater than those before. It copies the batches.
// Errors: store.ErrClosed, and of a batch that cannot be decoded.
func (s *Store) Write(number uint64, batches ...*mutation.Batch) error {
	kept := new(mutation.Batch)
	for _, b := range batches {
		kept.Append(b)
	}
	return s.Keep(number, kept)
}

// Keep is Write without the copy: the batches must not be changed until they are flushed.
func (s *Store) Keep(number uint64, batches ...*mutation.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	u := unit{number: number}
	for _, b := range batches {
		if err := b.Each(func(op mutation.Op, key, value []byte) error { return s.write(&u, op, key, value) }); err != nil {
			return err
		}
	}
	s.pending = append(s.pending, u)
	return nil
}

func (s *Store) write(u *unit, op mutation.Op, key, value []byte) error {
	put := func(i item) {
		s.tree.Set(i)
		u.keys = append(u.keys, i.key)
	}
	switch op {
	case mutation.Set:
		put(item{key: key, value: value, number: u.number})
	case mutation.Delete, mutation.SingleDelete:
		put(item{key: key, number: u.number, deleted: true})
	case mutation.DeleteRange:
		if bytes.Compare(key, value) >= 0 {
			return nil
		}
		var doomed []item
		s.tree.Ascend(item{key: key}, func(i item) bool {
			if bytes.Compare(i.key, value) >= 0 {
				return false
			}
			doomed = append(doomed, i)
			return true
		})
		for _, i := range doomed {
			s.tree.Delete(i)
		}
		s.tombstones = append(slices.Clip(s.tombstones), rangeTombstone{key, value, u.number})
	default:
		return fmt.Errorf("%w: unknown write %d", mutation.ErrCorrupt, op)
	}
	return nil
}

// Freeze detaches the overlay from the committed store: readers see a snapshot of that as it is
// now, under all uncommitted writes, which stay for good. Close releases the snapshot.
func (s *Store) Freeze() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed && s.frozen == nil {
		s.frozen = s.base.Snapshot()
	}
}

// reader is the committed store as readers see it.
func (s *Store) reader() store.Reader {
	if s.frozen != nil {
		return s.frozen
	}
	return s.base
}

// Flush has commit write the units up to a number to the committed store, and removes them from
// the overlay, atomically for readers. Calls must not overlap. Nobody waits for commit, which may
// take as long as a disk is full: until it has ended the units lie above what it writes, and hide
// whether that is there. Errors: commit's.
func (s *Store) Flush(number uint64, commit func() error) error {
	if err := commit(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen != nil {
		return nil
	}
	for len(s.pending) > 0 && s.pending[0].number <= number {
		for _, key := range s.pending[0].keys {
			if i, ok := s.tree.Delete(item{key: key}); ok && i.number > number {
				s.tree.Set(i) // rare: only for keys that every commit writes
			}
		}
		s.pending = s.pending[1:]
	}
	if len(s.pending) == 0 {
		s.pending = nil
	}
	if len(s.tombstones) > 0 {
		s.tombstones = slices.DeleteFunc(slices.Clone(s.tombstones), func(h rangeTombstone) bool { return h.number <= number })
	}
	return nil
}

// Get implements store.Reader.
func (s *Store) Get(dst, key []byte) (value []byte, ok bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return dst, false, store.ErrClosed
	}
	return get(s.tree, s.tombstones, s.reader(), dst, key)
}

func get(t *tree, ts rangeTombstones, base store.Reader, dst, key []byte) (value []byte, ok bool, err error) {
	if i, ok := t.Get(item{key: key}); ok {
		if i.deleted {
			return dst, false, nil
		}
		return append(dst, i.value...), true, nil
	}
	if ts.end(key) != nil {
		return dst, false, nil
	}
	return base.Get(dst, key)
}

// Iter implements store.Reader.
func (s *Store) Iter(lower, upper []byte) (store.Iterator, error) {
	s.mu.Lock() // a copy changes the original's bookkeeping
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	return iter(s.view(), s.tombstones, s.reader(), lower, upper)
}

// view is the tree as it is now; nil: it is empty.
func (s *Store) view() *tree {
	if s.tree.Len() == 0 {
		return nil
	}
	return s.tree.Copy()
}

func iter(t *tree, ts rangeTombstones, base store.Reader, lower, upper []byte) (store.Iterator, error) {
	it, err := base.Iter(lower, upper)
	if err != nil || t == nil && len(ts) == 0 {
		return it, err
	}
	return newIterator(t, ts, it, lower, upper), nil
}

// Snapshot implements store.Store. That of a closed store answers every read with
// store.ErrClosed.
func (s *Store) Snapshot() store.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return closed{}
	}
	v := &snapshot{over: s, tree: s.tree.Copy(), tombstones: s.tombstones}
	if v.base = s.frozen; s.frozen == nil {
		v.base, v.own = s.base.Snapshot(), true
	}
	return v
}

type snapshot struct {
	over       *Store
	base       store.Snapshot
	own        bool // base is its own to close; else the store may close it under it
	tombstones rangeTombstones

	mu   sync.Mutex
	tree *tree // nil: closed
}

// hold keeps a base that is the store's open until it is released.
func (v *snapshot) hold() (release func()) {
	if v.own {
		return func() {}
	}
	v.over.closing.RLock()
	return v.over.closing.RUnlock
}

// view is the tree; nil: it was closed, or the store was.
func (v *snapshot) view() *tree {
	v.over.mu.RLock()
	defer v.over.mu.RUnlock()
	if v.over.closed {
		return nil
	}
	return v.tree
}

// Get implements store.Reader.
func (v *snapshot) Get(dst, key []byte) (value []byte, ok bool, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.hold()()
	t := v.view()
	if t == nil {
		return dst, false, store.ErrClosed
	}
	return get(t, v.tombstones, v.base, dst, key)
}

// Iter implements store.Reader.
func (v *snapshot) Iter(lower, upper []byte) (store.Iterator, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.hold()()
	t := v.view()
	if t == nil {
		return nil, store.ErrClosed
	}
	return iter(t.Copy(), v.tombstones, v.base, lower, upper)
}

// Close implements store.Snapshot.
func (v *snapshot) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tree = nil
	if !v.own {
		return nil
	}
	return v.base.Close()
}

// closed is a snapshot of a closed store.
type closed struct{}

func (closed) Get(dst, _ []byte) ([]byte, bool, error)  { return dst, false, store.ErrClosed }
func (closed) Iter(_, _ []byte) (store.Iterator, error) { return nil, store.ErrClosed }
func (closed) Close() error                             { return nil }

// Close has all further reads and writes fail. Uncommitted writes are forgotten here; the log may
// accept them all the same. A second Close does nothing.
func (s *Store) Close() {
	s.closing.Lock()
	defer s.closing.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.frozen != nil {
		_ = s.frozen.Close() // nothing was written through it
		s.frozen = nil
	}
}

// DamageIn implements store.Damaged.
func (s *Store) DamageIn(lower, upper []byte) error {
	if d, ok := s.base.(store.Damaged); ok {
		return d.DamageIn(lower, upper)
	}
	return nil
}
