package metrics

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// age moves points that are too old for their resolution to the next one, and drops those that
// are too old for the last. Moved points are only valid once the floor is written: a crash
// before leaves both, of which one is read.
func (s *Store) age(now int64) error {
	due := false
	s.shard.RunLazy(func() {
		if due = now-s.maintain >= hour; due {
			s.maintain = now
		}
	})
	if !due {
		return nil
	}
	step := func(f func() error) error {
		_, err := s.shard.Run(journal.Lazy, func(*kernel.Tx) error { return f() })
		return err
	}
	for res := range byte(len(resolutions)) {
		for more := true; more; {
			if err := step(func() (err error) { more, err = s.ageBucket(res, now); return err }); err != nil {
				return err
			}
		}
	}
	return cmp.Or(step(func() error { return s.dropSeconds(now) }), step(func() error { return s.unlist(now) }))
}

// ageBucket is age of the oldest bucket of a resolution. more says that there may be
// another.
func (s *Store) ageBucket(res byte, now int64) (more bool, err error) {
	r := &resolutions[res]
	bucket, ok, err := s.firstBucket(res)
	if err != nil {
		return false, err
	}
	end := (bucket + 1) * r.bucket
	if !ok || end > now-r.keep {
		return false, nil
	}
	floor, err := readFloor(s.reader, res)
	if err != nil {
		return false, err
	}
	if int(res)+1 < len(resolutions) && end > floor {
		if err := s.coarsen(res, bucket); err != nil {
			return false, err
		}
		s.shard.Batch.Set(floorKey(res), binary.BigEndian.AppendUint32(nil, uint32(end)))
	}
	s.shard.Batch.DeleteRange(bucketPrefix(res, bucket), bucketPrefix(res, bucket+1))
	return true, nil
}

func (s *Store) firstBucket(res byte) (bucket int64, ok bool, err error) {
	it, err := s.reader.Iter(pointPrefix(res), pointPrefix(res+1))
	if err != nil {
		return 0, false, err
	}
	if it.Next() {
		bucket, _, _, ok = splitPoint(it.Key())
	}
	return bucket, ok, it.Close()
}

// coarsen writes the points of a bucket as points of the next resolution.
func (s *Store) coarsen(res byte, bucket int64) error {
	snapshot := s.reader.Snapshot()
	it, err := snapshot.Iter(bucketPrefix(res, bucket), bucketPrefix(res, bucket+1))
	if err != nil {
		return errors.Join(err, snapshot.Close())
	}
	batch := &s.shard.Batch
	var point Set
	var of id
	var at int64
	step := resolutions[res+1].step
	write := func(least int) {
		if point.Count > 0 {
			batch.Set(pointKey(res+1, of, at), point.encode())
			point = Set{}
		}
		if batch.Size() > least {
			s.shard.AppendPartial(journal.Lazy)
		}
	}
	for it.Next() {
		_, series, minute, ok := splitPoint(it.Key())
		if !ok {
			continue
		}
		if start := minute - minute%step; series != of || start != at {
			write(flushBytes)
			of, at = series, start
		}
		if set, ok := readSet(s.shard.Logger, it.Value()); ok {
			point.Merge(&set)
		}
	}
	write(0)
	if err := errors.Join(it.Close(), snapshot.Close()); err != nil {
		return fmt.Errorf("old metrics cannot be summed up: %w", err)
	}
	return nil
}

// readFloor is the minute before which points of a resolution are in the next.
func readFloor(r store.Reader, res byte) (int64, error) {
	value, ok, err := r.Get(nil, floorKey(res))
	if err != nil || !ok || len(value) != 4 {
		return 0, err
	}
	return int64(binary.BigEndian.Uint32(value)), nil
}

// unlist removes series without points from the list, once a day.
func (s *Store) unlist(now int64) error {
	if now-s.unlisted < day {
		return nil
	}
	s.unlisted = now
	if err := s.dropSteady(now); err != nil {
		return err
	}
	return s.drop(tagSeries, func(value []byte) bool { return seenIn(value) < now-Retention })
}
