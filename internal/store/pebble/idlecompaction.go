package pebble

import (
	"context"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/store/pebble/pace"
)

const (
	// idleCheckEvery is how often it is checked whether the store is idle, while
	// anything that was deleted may take space.
	idleCheckEvery = 10 * time.Second

	// A store is idle if there were at most quietWrites writes since the last look:
	// under load, the tables that it makes are merged anyway.
	quietWrites = 5000

	// rounds is how often they are merged: the first merge may only bring together a
	// delete and what it deletes.
	rounds = 2

	// minDeletes is how many deletes are worth a merge of the youngest tables.
	minDeletes = 200
)

// idleMerge reclaims the space of deleted records while the store is idle. The
// deletes are in the write buffer then, or in a few young tables, and Pebble would
// merge neither before more is written, which may be never.
type idleMerge struct {
	ctx  context.Context // ends with Close
	stop context.CancelFunc

	writes, deletes atomic.Int64 // all that there were
	looking         atomic.Bool  // a timer is set, or a look under way
	looks           pace.Delayed

	// What follows is the look's.
	seen   int64 // writes at the last look
	merged int64 // deletes at the first merge
	again  int   // merges that are to follow that
}

// note counts writes, and schedules a look if any of them deletes.
func (s *Store) note(writes, deletes int) {
	r := &s.idleMerge
	r.writes.Add(int64(writes))
	if deletes == 0 {
		return
	}
	r.deletes.Add(int64(deletes))
	if !r.looking.Load() && !r.looking.Swap(true) {
		r.looks.After(idleCheckEvery, s.look)
	}
}

// look merges the youngest tables if the store is idle and enough was deleted.
func (s *Store) look() {
	r := &s.idleMerge
	writes := r.writes.Load()
	quiet := writes-r.seen <= quietWrites
	r.seen = writes
	switch {
	case !quiet || s.tight(): // Reclaim does the same
	case r.again == 0 && r.deletes.Load()-r.merged < minDeletes:
		// The next delete sets the timer again.
		r.looking.Store(false)
		return
	default:
		deletes := r.deletes.Load()
		through, err := s.mergeYoung()
		if err != nil && r.ctx.Err() == nil {
			s.log.Warn("the space of what was deleted is given back later", "error", err.Error())
		}
		switch {
		case !through:
		case deletes-r.merged >= minDeletes:
			r.merged, r.again = deletes, rounds-1
		default:
			r.again--
		}
	}
	r.looks.After(idleCheckEvery, s.look)
}

// mergeYoung flushes until L0 has so many sublevels that Pebble compacts it, and with it
// what its tombstones delete. It gives up under load, whose flushes do that as well. The work is bounded by the youngest tables and what lies directly
// below them; values that stand apart from their keys are not read for it.
func (s *Store) mergeYoung() (through bool, err error) {
	r := &s.idleMerge
	for range layers + 1 {
		if r.writes.Load()-r.seen > quietWrites {
			return false, nil
		}
		done, err := s.oneLayer()
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

func (s *Store) oneLayer() (done <-chan struct{}, err error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.using.RUnlock()
	return s.layer()
}

// end stops the looks.
func (r *idleMerge) end() {
	r.looks.Refuse()
	r.stop()
	r.looks.End()
}
