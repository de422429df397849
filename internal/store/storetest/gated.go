package storetest

import (
	"errors"
	"sync"

	"godwit.dev/godwit/internal/store"
)

// Gated is a store whose syncs can be held up, and made to fail.
type Gated struct {
	store.Store
	Failing error // of each sync, if it is not nil

	mu   sync.Mutex
	gate chan struct{} // nil: open
}

// Shut holds up the syncs that begin from now on.
func (s *Gated) Shut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gate = make(chan struct{})
}

// Open lets syncs continue.
func (s *Gated) Open() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.gate)
	s.gate = nil
}

// Sync implements store.Store.
func (s *Gated) Sync() error {
	s.mu.Lock()
	gate := s.gate
	s.mu.Unlock()
	if gate != nil {
		<-gate
	}
	return errors.Join(s.Failing, s.Store.Sync())
}
