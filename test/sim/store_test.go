package sim

import (
	"log/slog"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/pebble"
)

const (
	smallMemTable = 256 << 10 // is flushed a few times in a history
	largeMemTable = 4 << 20
)

var memTables = []int64{smallMemTable, largeMemTable, largeMemTable}

// openStore opens the real store on a disk.
func openStore(mem *vfs.MemFS, d *disk, how settings, bug *storeBug, log *slog.Logger) (store.Store, error) {
	var f vfs.FS = errorfs.Wrap(mem, d)
	if bug != nil && bug.files != nil {
		f = bug.files(f)
	}
	var st *pebble.Store
	st, err := pebble.Open(storeDir, pebble.Options{
		FS: f, Logger: log, CacheBytes: 4 << 20, MemTableBytes: how.memTable, OnDiskFull: d.makeRoom,
		Fatal: func(err error) {
			if d.storeFailed(err); st != nil {
				go st.Close() // its timers do not end with the process
			}
		},
	})
	if err != nil {
		return nil, err
	}
	d.set(func(d *disk) { d.opened = true })
	s := &watchedStore{store: st, shadow: memory.New(), disk: d, bug: bug}
	if err := s.copy(); err != nil {
		return nil, err
	}
	if how.apart {
		return s, nil
	}
	return &committer{s}, nil
}

// watchedStore sits between the journal and the real store: where planted bugs change
// what is written, and where the machine may die between two batches.
//
// A store that has failed ends the process, which a bubble cannot do. What happens then is
// seen by nobody, and has to go on until the server stops: with a copy in memory.
type watchedStore struct {
	store  store.Store
	shadow *memory.Store
	disk   *disk
	bug    *storeBug // nil: none
}

// copy makes the shadow of a store that has been opened.
func (s *watchedStore) copy() error {
	all := new(mutation.Batch)
	it, err := s.store.Iter(nil, nil)
	if err != nil {
		return err
	}
	for it.Next() {
		all.Set(it.Key(), it.Value())
	}
	if err := it.Close(); err != nil {
		return err
	}
	return s.shadow.Apply(store.NoSync, all)
}

// or is what the store says or, if it has failed, what its shadow does.
func or[T any](s *watchedStore, f func(store.Store) (T, error)) (T, error) {
	if !s.disk.hasFailed() {
		got, err := f(s.store)
		if err == nil || !s.disk.hasFailed() {
			return got, err
		}
	}
	return f(s.shadow)
}

type found struct {
	value []byte
	ok    bool
}

func (s *watchedStore) Get(dst, key []byte) (value []byte, ok bool, err error) {
	got, err := or(s, func(s store.Store) (got found, err error) {
		got.value, got.ok, err = s.Get(dst, key)
		return got, err
	})
	return got.value, got.ok, err
}

func (s *watchedStore) Iter(lower, upper []byte) (store.Iterator, error) {
	return or(s, func(s store.Store) (store.Iterator, error) { return s.Iter(lower, upper) })
}

func (s *watchedStore) Snapshot() store.Snapshot {
	if s.disk.hasFailed() {
		return s.shadow.Snapshot()
	}
	return s.store.Snapshot()
}

func (s *watchedStore) Checkpoint(dir string) error { return s.store.Checkpoint(dir) }

func (s *watchedStore) Close() error { return s.store.Close() }

func (s *watchedStore) Apply(sync store.SyncMode, batches ...*mutation.Batch) error {
	return s.write(batches, func(st store.Store) error { return st.Apply(sync, batches...) })
}

// write has batches written as f does it.
func (s *watchedStore) write(batches []*mutation.Batch, f func(store.Store) error) (err error) {
	s.disk.tick()
	if s.bug != nil && s.bug.rewrite != nil {
		for i, b := range batches {
			batches[i] = s.bug.apply(b)
		}
	}
	if err := s.shadow.Apply(store.NoSync, batches...); err != nil {
		return err
	}
	if !s.disk.hasFailed() {
		s.disk.set(func(d *disk) { d.writing = true })
		err = f(s.store)
		s.disk.set(func(d *disk) { d.writing = false })
		if s.disk.hasFailed() {
			err = nil
		}
	}
	s.disk.tick()
	return err
}

// tick counts down to a crash before or behind a batch.
func (d *disk) tick() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.applies > 0 {
		if d.applies--; d.applies == 0 {
			d.crash(leavesNothing)
		}
	}
}

func (s *watchedStore) Sync() error {
	s.disk.wait()
	return s.synced(store.Store.Sync)
}

// synced waits for a sync.
func (s *watchedStore) synced(sync func(store.Store) error) (err error) {
	s.disk.set(func(d *disk) { d.syncing = true })
	defer s.disk.set(func(d *disk) { d.syncing = false })
	if s.disk.hasFailed() {
		return nil
	}
	if s.bug != nil && s.bug.sync != nil {
		sync = s.bug.sync
	}
	if err = sync(s.store); s.disk.hasFailed() {
		return nil
	}
	return err
}

// committer is a watchedStore that can sync what it applies, as the real store can.
type committer struct{ *watchedStore }

func (s *committer) Commit(batches ...*mutation.Batch) (durable func() error, err error) {
	if s.bug != nil && s.bug.sync != nil {
		return s.Sync, s.Apply(store.NoSync, batches...)
	}
	s.disk.set(func(d *disk) { d.syncing = true })
	err = s.write(batches, func(st store.Store) (err error) {
		durable, err = st.(store.Committer).Commit(batches...)
		return err
	})
	if err != nil || durable == nil {
		return nil, err
	}
	wait := durable
	return func() error {
		err := s.synced(func(store.Store) error { return wait() }) // it has begun
		s.disk.wait()
		return err
	}, nil
}
