package shard_test

import (
	"sync"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// gatedStore is a store whose syncs can be held up, and which reports reads and writes.
type gatedStore struct {
	storetest.Gated
	mu sync.Mutex
	// beforeIter runs before the next walk, once; may be nil.
	beforeIter func()
	applied    func() // runs after each Apply; may be nil
}

func newGatedStore() *gatedStore {
	return &gatedStore{Gated: storetest.Gated{Store: memory.New()}}
}

func (s *gatedStore) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	err := s.Store.Apply(sync, batches...)
	if s.applied != nil {
		s.applied()
	}
	return err
}

func (s *gatedStore) Iter(lower, upper []byte) (store.Iterator, error) {
	s.mu.Lock()
	f := s.beforeIter
	s.beforeIter = nil
	s.mu.Unlock()
	if f != nil {
		f()
	}
	return s.Store.Iter(lower, upper)
}
