package pebble

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"godwit.dev/godwit/internal/clock"
)

// reclaim is the state of Reclaim.
type reclaim struct {
	applied atomic.Uint64 // calls of Apply that wrote
	flushed atomic.Uint64 // applied at the last Reclaim
	calls   atomic.Int64  // of Reclaim since anything was applied
	last    atomic.Int64  // UnixNano of the last Reclaim
}

// Reclaim begins to reclaim the space of deleted records, and does not wait for it. Without it
// a disk so full that writes are refused would stay full: Pebble compacts as tables are
// flushed, and a few deletes fill no memtable. It is to be called about once a second while the
// disk is short of space, and does ever less while nothing is written (see inRound). Errors:
// store.ErrClosed, and the failure of the store.
func (s *Store) Reclaim() error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.using.RUnlock()
	s.reclaim.last.Store(clock.System.Now().UnixNano())
	if applied := s.reclaim.applied.Load(); s.reclaim.flushed.Swap(applied) != applied {
		s.reclaim.calls.Store(0)
	}
	n := s.reclaim.calls.Add(1) - 1
	if !inRound(n / reclaimRound) {
		return nil
	}
	if n%reclaimRound == 0 {
		s.headroom.Retry()
	}
	_, err := s.addSublevel()
	return err
}

// reclaimRound is how many flushes compact L0 once.
const reclaimRound = l0Sublevels + 1

// inRound reports that L0 is to be compacted in a round: in the first two, as a compaction may
// only bring tombstones to the level of what they delete, and then ever more rarely, for as long
// as the disk stays full. Flushes that were slow may have made too few sublevels for a
// compaction, or a compaction may have been refused the space that there is now.
func inRound(round int64) bool { return round < idleRounds || round&(round-1) == 0 }

// addSublevel begins a flush that adds a sublevel to L0: with enough of them Pebble compacts
// L0. done is closed when the flush has ended.
func (s *Store) addSublevel() (done <-chan struct{}, err error) {
	err = s.guarded(func() error {
		// Tombstones at both ends of the key space make a table that overlaps all
		// others, and so one more sublevel. They delete nothing: there are no such keys.
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

// tightFor is how long after a Reclaim the disk counts as short of space.
const tightFor = 10 * time.Second

// tight reports that the disk is short of space.
func (s *Store) tight() bool {
	return clock.System.Now().UnixNano()-s.reclaim.last.Load() < int64(tightFor)
}
