package shard

import (
	"sync"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// gatedStore is a store whose syncs can be held up.
type gatedStore struct {
	store.Store
	mu   sync.Mutex
	gate chan struct{} // nil: open
	// beforeIter runs before the next walk, once; may be nil.
	beforeIter func()
	applied    func() // runs after each Apply; may be nil
}

func newGatedStore() *gatedStore { return &gatedStore{Store: memory.New()} }

func (s *gatedStore) shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
}

func (s *gatedStore) open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gate)
	s.gate = nil
}

func (s *gatedStore) Sync() error {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return s.Store.Sync()
}

func (s *gatedStore) Apply(sync bool, batches ...*mutation.Batch) error {
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
