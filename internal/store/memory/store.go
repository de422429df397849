// Package memory keeps a store in memory, for tests and development: after Close only its
// checkpoints are left.
package memory

import (
	"bytes"
	"fmt"
	"slices"
	"sync"

	"github.com/tidwall/btree"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// item is a key with its value. Both slices are immutable.
type item struct{ key, value []byte }

func less(a, b item) bool { return bytes.Compare(a.key, b.key) < 0 }

type tree = btree.BTreeG[item]

// Store is a store in memory.
type Store struct {
	mu     sync.RWMutex
	tree   *tree // copy-on-write: a copy is a view and costs nothing
	closed bool
}

var _ store.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store {
	return &Store{tree: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})}
}

// Get implements store.Reader.
func (s *Store) Get(dst, key []byte) (value []byte, ok bool, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return dst, false, store.ErrClosed
	}
	value, ok = get(s.tree, dst, key)
	return value, ok, nil
}

func get(t *tree, dst, key []byte) (value []byte, ok bool) {
	i, ok := t.Get(item{key: key})
	return append(dst, i.value...), ok
}

// Iter implements store.Reader.
func (s *Store) Iter(lower, upper []byte) (store.Iterator, error) {
	t, err := s.view()
	if err != nil {
		return nil, err
	}
	return newIterator(t, lower, upper), nil
}

// view is a copy of the current tree. Copying changes the original's bookkeeping, hence the
// write lock.
func (s *Store) view() (*tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed
	}
	return s.tree.Copy(), nil
}

type iterator struct {
	it      btree.IterG[item]
	lower   []byte
	upper   []byte
	started bool
	item    item
}

func newIterator(t *tree, lower, upper []byte) *iterator {
	return &iterator{it: t.Iter(), lower: bytes.Clone(lower), upper: bytes.Clone(upper)}
}

func (i *iterator) Next() bool {
	var more bool
	if i.started {
		more = i.it.Next()
	} else {
		i.started = true
		more = i.it.Seek(item{key: i.lower})
	}
	return i.moved(more)
}

func (i *iterator) Prev() bool {
	var more bool
	switch {
	case i.started:
		more = i.it.Prev()
	case i.upper == nil || !i.it.Seek(item{key: i.upper}):
		more = i.it.Last()
	default:
		more = i.it.Prev()
	}
	i.started = true
	if !more {
		return false
	}
	i.item = i.it.Item()
	return bytes.Compare(i.item.key, i.lower) >= 0
}

func (i *iterator) Seek(key []byte) bool {
	i.started = true
	return i.moved(i.it.Seek(item{key: slices.MaxFunc([][]byte{key, i.lower}, bytes.Compare)}))
}

func (i *iterator) moved(more bool) bool {
	if !more {
		return false
	}
	i.item = i.it.Item()
	return i.upper == nil || bytes.Compare(i.item.key, i.upper) < 0
}

func (i *iterator) Key() []byte   { return i.item.key }
func (i *iterator) Value() []byte { return i.item.value }

func (i *iterator) Close() error {
	i.it.Release()
	return nil
}

// Apply implements store.Store. Nothing is durable, synced or not.
func (s *Store) Apply(_ store.SyncMode, batches ...*mutation.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	next := s.tree.Copy()
	for _, b := range batches {
		err := b.Each(func(op mutation.Op, key, value []byte) error { return apply(next, op, key, value) })
		if err != nil {
			return err
		}
	}
	s.tree = next
	return nil
}

func apply(t *tree, op mutation.Op, key, value []byte) error {
	switch op {
	case mutation.Set:
		t.Set(item{key: bytes.Clone(key), value: bytes.Clone(value)})
	case mutation.Delete, mutation.SingleDelete:
		t.Delete(item{key: key})
	case mutation.DeleteRange:
		var doomed []item
		t.Ascend(item{key: key}, func(i item) bool {
			if bytes.Compare(i.key, value) >= 0 {
				return false
			}
			doomed = append(doomed, i)
			return true
		})
		for _, i := range doomed {
			t.Delete(i)
		}
	default:
		return fmt.Errorf("%w: unknown write %d", mutation.ErrCorrupt, op)
	}
	return nil
}

// Sync implements store.Store.
func (s *Store) Sync() error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	return nil
}

// Snapshot implements store.Store. Every read of a closed store's snapshot fails with
// store.ErrClosed.
func (s *Store) Snapshot() store.Snapshot {
	t, err := s.view()
	if err != nil {
		return &snapshot{store: s}
	}
	return &snapshot{store: s, tree: t}
}

type snapshot struct {
	store *Store
	mu    sync.RWMutex
	tree  *tree // nil: closed
}

func (v *snapshot) open() (*tree, error) {
	v.store.mu.RLock()
	defer v.store.mu.RUnlock()
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.tree == nil || v.store.closed {
		return nil, store.ErrClosed
	}
	return v.tree, nil
}

func (v *snapshot) Get(dst, key []byte) (value []byte, ok bool, err error) {
	t, err := v.open()
	if err != nil {
		return dst, false, err
	}
	value, ok = get(t, dst, key)
	return value, ok, nil
}

func (v *snapshot) Iter(lower, upper []byte) (store.Iterator, error) {
	t, err := v.open()
	if err != nil {
		return nil, err
	}
	return newIterator(t, lower, upper), nil
}

func (v *snapshot) Close() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tree = nil
	return nil
}

// Close implements store.Store. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.tree = true, nil
	return nil
}
