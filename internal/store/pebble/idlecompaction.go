package pebble

import (
	"context"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/store/pebble/pace"
)

const (
	// idleCheckEvery is the interval of checks whether the store is idle, while deleted records
	// may take space.
	idleCheckEvery = 10 * time.Second

	// A store is idle if there were at most quietWrites writes since the last check: under
	// load, its flushes trigger compactions anyway.
	quietWrites = 5000

	// idleRounds is how often L0 is compacted: the first compaction may only bring a
	// tombstone and what it deletes to the same level.
	idleRounds = 2

	// minDeletes is how many deletes are worth a compaction of L0.
	minDeletes = 200
)

// idleCompaction reclaims the space of deleted records while the store is idle. The
// tombstones are in the memtable then, or in a few tables of L0, and Pebble would compact
// neither before more is written, which may be never.
type idleCompaction struct {
	ctx  context.Context // ends with Close
	stop context.CancelFunc

	writes, deletes atomic.Int64 // since the store was opened
	looking         atomic.Bool  // a check is scheduled, or runs
	looks           pace.Delayed

	// The following fields are only used by the check.
	seen   int64 // writes at the last check
	merged int64 // deletes at the first of the latest compactions
	again  int   // compactions that are to follow that one
}

// noteWrites counts writes, and schedules a check if any of them deletes.
func (s *Store) noteWrites(writes, deletes int) {
	r := &s.idleCompaction
	r.writes.Add(int64(writes))
	if deletes == 0 {
		return
	}
	r.deletes.Add(int64(deletes))
	if !r.looking.Load() && !r.looking.Swap(true) {
		r.looks.After(idleCheckEvery, s.compactIfIdle)
	}
}

// compactIfIdle compacts L0 if the store is idle and enough was deleted, and schedules the next
// check.
func (s *Store) compactIfIdle() {
	r := &s.idleCompaction
	writes := r.writes.Load()
	quiet := writes-r.seen <= quietWrites
	r.seen = writes
	switch {
	case !quiet || s.tight(): // while the disk is short of space, Reclaim does it
	case r.again == 0 && r.deletes.Load()-r.merged < minDeletes:
		// The next delete sets the timer again.
		r.looking.Store(false)
		return
	default:
		deletes := r.deletes.Load()
		through, err := s.compactL0()
		if err != nil && r.ctx.Err() == nil {
			s.log.Warn("the space of what was deleted is given back later", "error", err.Error())
		}
		switch {
		case !through:
		case deletes-r.merged >= minDeletes:
			r.merged, r.again = deletes, idleRounds-1
		default:
			r.again--
		}
	}
	r.looks.After(idleCheckEvery, s.compactIfIdle)
}

// compactL0 flushes until L0 has enough sublevels for Pebble to compact it, with the records
// that its tombstones delete. It gives up under load, whose flushes have the same effect. The
// work is bounded by L0 and the overlapping tables in the level below; blob files are not read.
func (s *Store) compactL0() (through bool, err error) {
	r := &s.idleCompaction
	for range l0Sublevels + 1 {
		if r.writes.Load()-r.seen > quietWrites {
			return false, nil
		}
		if full, _ := s.flushes.state(); full {
			return false, nil // a flush behind one that is refused may wait for space, and Close for it
		}
		done, err := s.flushSublevel()
		if err != nil {
			return false, err
		}
		select {
		case <-done:
		case <-r.ctx.Done():
			return false, nil
		}
	}
	return true, nil
}

func (s *Store) flushSublevel() (done <-chan struct{}, err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.using.RUnlock()
	return s.addSublevel()
}

// end stops the checks.
func (r *idleCompaction) end() {
	r.looks.Refuse()
	r.stop()
	r.looks.End()
}
