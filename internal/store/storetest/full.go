package storetest

import (
	"sync"
	"sync/atomic"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Full is a store whose disk can become full: its writes then wait for space, as Pebble's do.
type Full struct {
	store.Store
	full, waits atomic.Bool
	space       chan struct{} // closed once there is some
	free        func()
}

// NewFull is a store with space.
func NewFull(st store.Store) *Full {
	f := &Full{Store: st, space: make(chan struct{})}
	f.free = sync.OnceFunc(func() { close(f.space) })
	return f
}

// Fill has the writes that begin from now on wait.
func (f *Full) Fill() { f.full.Store(true) }

// Waits reports that a write waits, or has waited.
func (f *Full) Waits() bool { return f.waits.Load() }

// Free lets writes continue, for good. It may be called more than once.
func (f *Full) Free() { f.free() }

// Apply implements store.Store.
func (f *Full) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	if f.full.Load() {
		f.waits.Store(true)
		<-f.space
	}
	return f.Store.Apply(sync, batches...)
}
