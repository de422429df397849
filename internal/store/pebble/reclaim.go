package pebble

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/clock"
)

// reclaim is what Reclaim has to know.
type reclaim struct {
	applied atomic.Uint64 // calls of Apply that wrote
	flushed atomic.Uint64 // applied at the last Reclaim
	layered atomic.Int64  // calls of Reclaim since anything was applied
	last    atomic.Int64  // UnixNano of the last Reclaim
}

// Reclaim begins to give the space of what was deleted back. A disk so full
// that nothing is taken in would else stay full: Pebble tidies up as tables
// are written, and a few deletes fill no write buffer and make no layers. It is
// to be called about once a second while the disk is short of room, and does
// nothing once all that was written has been merged.
func (s *Store) Reclaim() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.using.RUnlock()
	s.reclaim.last.Store(clock.System.Now().UnixNano())
	if applied := s.reclaim.applied.Load(); s.reclaim.flushed.Swap(applied) != applied {
		s.reclaim.layered.Store(0)
		s.room.Retry()
	}
	if s.reclaim.layered.Add(1) > layers+1 {
		return nil
	}
	_, err := s.layer()
	return err
}

// layer begins a flush that makes one more layer of young tables, of which enough
// are merged with what they delete. done is closed when it is on disk.
func (s *Store) layer() (done <-chan struct{}, err error) {
	err = s.guarded(func() error {
		// Two deletions of nothing, at the ends of the key space, make a table that
		// lies over all others, and so one more layer.
		b := s.db.NewBatch()
		for _, end := range [][]byte{{0}, {0xff, 0xff, 0xff}} {
			if err := b.Delete(end, nil); err != nil {
				return err
			}
		}
		if err := b.Commit(pebble.NoSync); err != nil {
			return err
		}
		done, err = s.db.AsyncFlush()
		return err
	})
	return done, err
}

// tightFor is how long after a Reclaim the disk is taken to be short of room.
const tightFor = 10 * time.Second

// tight reports that the disk is short of room.
func (s *Store) tight() bool {
	return clock.System.Now().UnixNano()-s.reclaim.last.Load() < int64(tightFor)
}
