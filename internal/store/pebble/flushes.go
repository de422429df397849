package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble/pace"
)

// flushes are what makes writes durable where there is no log (Options.NoLog).
type flushes struct {
	only bool // there is no log
	ctx  context.Context
	stop context.CancelFunc // ends the waits for flushes

	throttle *pace.Throttle

	applied atomic.Uint64 // units in the memtable, or beyond it
	durable atomic.Uint64 // how many of them are known to be in tables

	mu      sync.Mutex    // guards what follows
	full    bool          // the latest flush found the disk full: Pebble tries it again and again
	refused chan struct{} // closed once a flush finds the disk full
}

// errFull reports a flush that the disk has no room for.
var errFull = fmt.Errorf("what is in memory cannot be flushed: %w", syscall.ENOSPC)

// begin prepares flushes for a store that is opened.
func (f *flushes) begin(o *Options) {
	f.only = o.NoLog
	f.ctx, f.stop = context.WithCancel(context.Background())
	f.refused = make(chan struct{})
}

// refuse notes that a flush finds the disk full; it may wait for space, or end.
func (f *flushes) refuse() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = true
	close(f.refused)
	f.refused = make(chan struct{})
}

// flushed notes the end of a flush: also that of nothing is one. It is called with Pebble's lock held.
func (f *flushes) flushed(err error) {
	if errors.Is(err, syscall.ENOSPC) {
		f.refuse()
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full = false
}

// state is whether the latest flush found the disk full, and what is closed once one does.
func (f *flushes) state() (full bool, refused <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.full, f.refused
}

// reached notes that so many units are in tables.
func (f *flushes) reached(units uint64) {
	for {
		d := f.durable.Load()
		if units <= d || f.durable.CompareAndSwap(d, units) {
			return
		}
	}
}

// flush makes everything applied so far durable. It waits for space on a full disk, until Close.
func (s *Store) flush() error {
	return s.flushUntil(nil, s.flushes.ctx.Done())
}

// tryFlush is flush, but gives up with errFull where the disk is full, and not at Close. Where
// there is a log, nothing waits for a flush.
func (s *Store) tryFlush() error {
	full, refused := s.flushes.state()
	if full && s.flushes.applied.Load() > s.flushes.durable.Load() {
		return errFull
	}
	return s.flushUntil(refused, nil)
}

// flushUntil makes everything applied so far durable. It gives up with errFull or store.ErrClosed
// when refused or ended is closed.
func (s *Store) flushUntil(refused, ended <-chan struct{}) error {
	f := &s.flushes
	units := f.applied.Load()
	if units <= f.durable.Load() {
		return nil
	}
	var done <-chan struct{}
	if err := s.guarded(func() (err error) {
		done, err = s.db.AsyncFlush()
		return err
	}); err != nil {
		return err
	}
	select {
	case <-done:
		f.reached(units)
		return nil
	case <-refused:
		return errFull
	case <-s.failure.happened:
		return s.failed()
	case <-ended:
		return store.ErrClosed
	}
}

// flushLast makes what is left durable before the store is closed, unless the disk is full.
func (s *Store) flushLast() error {
	if s.enter() != nil {
		return nil
	}
	defer s.using.RUnlock()
	return s.tryFlush()
}

var _ store.Flusher = (*Store)(nil)

// Flush implements store.Flusher. While the disk is full it begins nothing: Pebble does.
func (s *Store) Flush() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.using.RUnlock()
	if full, _ := s.flushes.state(); full {
		return nil
	}
	return s.guarded(func() error {
		_, err := s.db.AsyncFlush()
		return err
	})
}

// GetDurable implements store.Flusher: it reads tables only, so of a store with a log it may be
// behind what is durable. Errors: store.ErrDamaged.
func (s *Store) GetDurable(dst, key []byte) (value []byte, ok bool, err error) {
	if err := s.enter(); err != nil {
		return dst, false, err
	}
	defer s.using.RUnlock()
	defer s.repairs.views.Enter().Leave()
	it, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: key, UpperBound: append(bytes.Clone(key), 0), OnlyReadGuaranteedDurable: true,
	})
	if err == nil {
		if ok = it.First(); ok {
			value, err = it.ValueAndErr()
			dst = append(dst, value...)
		}
		err = errors.Join(err, it.Error(), it.Close())
	}
	if err != nil && isDamage(err) {
		err = fmt.Errorf("%w: %w", store.ErrDamaged, err)
	}
	return dst, ok && err == nil, err
}
