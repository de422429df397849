package pebble

import (
	"bytes"
	"context"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store/pebble/pace"
)

const (
	// droppedAfter is how long after the latest DeleteRange a range is compacted. By then
	// Pebble has flushed the tombstone and dropped the tables that it covers completely,
	// without reading them. A range that is trimmed continually is left to ordinary
	// compactions.
	droppedAfter = flushRangeTombstones + 10*time.Second

	// minDropped is how many bytes a range must still take to be compacted.
	minDropped = 1 << 20

	// maxDropped bounds how many ranges wait. The space of those beyond is reclaimed by
	// ordinary compactions.
	maxDropped = 1024
)

// dropped reclaims the space of deleted ranges. Pebble alone leaves them in L0 until L0 has
// enough sublevels to be compacted, which may be never.
type dropped struct {
	ctx  context.Context // ends with Close
	stop context.CancelFunc
	tidy pace.Delayed

	mu     sync.Mutex               // guards what follows
	ranges map[string]*droppedRange // by their lower ends
}

type droppedRange struct {
	upper []byte
	due   time.Time
}

// dropRanges schedules the compaction of the ranges that batches delete.
func (s *Store) dropRanges(batches []*mutation.Batch) {
	for _, b := range batches {
		// All were read without an error before.
		_ = b.Each(func(op mutation.Op, lower, upper []byte) error {
			if op == mutation.DeleteRange && bytes.Compare(lower, upper) < 0 {
				s.dropRange(lower, upper)
			}
			return nil
		})
	}
}

func (s *Store) dropRange(lower, upper []byte) {
	d := &s.dropped
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.ranges[string(lower)]
	if !ok {
		if len(d.ranges) >= maxDropped {
			return
		}
		if d.ranges == nil {
			d.ranges = map[string]*droppedRange{}
		}
		r = new(droppedRange)
		d.ranges[string(lower)] = r
	}
	if bytes.Compare(upper, r.upper) > 0 {
		r.upper = bytes.Clone(upper)
	}
	r.due = clock.System.Now().Add(droppedAfter)
	d.tidy.After(droppedAfter, s.compactDropped)
}

// compactDropped compacts the ranges that are due, one after the other.
func (s *Store) compactDropped() {
	d := &s.dropped
	d.mu.Lock()
	now, next := clock.System.Now(), droppedAfter
	due := map[string]*droppedRange{}
	for lower, r := range d.ranges {
		if left := r.due.Sub(now); left > 0 {
			next = min(next, left)
			continue
		}
		due[lower] = r
		delete(d.ranges, lower)
	}
	d.mu.Unlock()
	for lower, r := range due {
		if d.ctx.Err() != nil {
			return
		}
		if err := s.Compact([]byte(lower), r.upper, minDropped); err != nil && d.ctx.Err() == nil {
			s.log.Warn("the space of what was deleted is given back later", "error", err.Error())
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.ranges) > 0 {
		d.tidy.After(next, s.compactDropped)
	}
}

// Compact compacts the range [lower, upper) if its tables have least bytes or more, so that
// deleted keys there take no space. Errors: those of Pebble; Close cuts it short.
func (s *Store) Compact(lower, upper []byte, least uint64) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.using.RUnlock()
	size, err := s.db.EstimateDiskUsage(lower, upper)
	if err != nil || size < least {
		return err
	}
	return s.db.Compact(s.dropped.ctx, lower, upper, false)
}

// usedLogs bounds how many old logs Pebble keeps to recycle.
const usedLogs = 4

// Forget compacts the range [lower, upper) and replaces the logs, so that no file contains
// overwritten or deleted data of the range, such as a secret. Pebble removes the obsolete files
// soon after.
func (s *Store) Forget(lower, upper []byte) error {
	if err := s.Compact(lower, upper, 0); err != nil {
		return err
	}
	if s.flushes.only {
		return nil // no log has anything
	}
	if err := s.enter(); err != nil {
		return err
	}
	defer s.using.RUnlock()
	return s.durable.WithoutRecycling(func() error {
		for range usedLogs + 1 { // each begins a log, in place of the oldest of those
			if err := s.db.Flush(); err != nil {
				return err
			}
		}
		return nil
	})
}

// end stops the compactions.
func (d *dropped) end() {
	d.tidy.Refuse()
	d.stop()
	d.tidy.End()
}
