package metrics

import (
	"encoding/binary"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/store"
)

// Values put by the second are stored so for three hours, in addition to their minutes. Those
// of half an hour are removed as one range.
const (
	keepSeconds  = 3 * hour * perMinute
	secondBucket = hour * perMinute / 2
)

func secondPrefix(bucket int64) []byte {
	return binary.BigEndian.AppendUint32([]byte{prefix, tagSecond}, uint32(bucket))
}

// secondKey is the key of the point of a series and a second.
func secondKey(series id, second int64) []byte {
	k := append(secondPrefix(second/secondBucket), series[:]...)
	return binary.BigEndian.AppendUint32(k, uint32(second))
}

// seconds is EachAndZeros for periods that are shorter than a minute.
func (s *Store) seconds(m Metric, unit string, p Periods, z Zeros, f func(start int64, set *Set)) error {
	series := idOf(seriesKey(&m, unit))
	last := min(p.end(), max(s.furthest.Load()+1, z.To)*perMinute)
	low := max(p.From, s.kernel.Clock.Now().Unix()-keepSeconds)
	if low >= last {
		return nil
	}
	fine, err := s.fine(m, unit, series, low, last)
	if err != nil {
		return err
	}
	merged := merger{periods: p, f: f}
	minutes := Periods{(low + perMinute - 1) / perMinute, (last + perMinute - 1) / perMinute, 1}
	err = s.minutes(m, unit, minutes, z, func(minute int64, set *Set) {
		start := minute * perMinute
		for ; len(fine) > 0 && fine[0].at < start; fine = fine[1:] {
			merged.add(fine[0].at, &fine[0].set)
		}
		if len(fine) == 0 || fine[0].at >= start+perMinute {
			merged.add(start, set)
		}
	})
	if err != nil {
		return err
	}
	for i := range fine {
		merged.add(fine[i].at, &fine[i].set)
	}
	merged.end()
	return nil
}

// fine are the points by the second of a series in [from, to), in order.
func (s *Store) fine(m Metric, unit string, series id, from, to int64) ([]point, error) {
	recent, err := s.recent(m, unit, series, true, from, to)
	if err != nil {
		return nil, err
	}
	var all []point
	for bucket := from / secondBucket; bucket*secondBucket < to; bucket++ {
		low, high := max(from, bucket*secondBucket), min(to, (bucket+1)*secondBucket)
		span := keyspace.Span{Lower: secondKey(series, low), Upper: append(secondKey(series, high-1), 0)}
		err := store.Each(s.reader, span, func(key, value []byte) error {
			at := int64(binary.BigEndian.Uint32(key[len(key)-4:]))
			for ; len(recent) > 0 && recent[0].at < at; recent = recent[1:] {
				all = append(all, recent[0])
			}
			if len(recent) > 0 && recent[0].at == at {
				return nil // memory has all of it
			}
			if set, ok := readSet(s.kernel.Logger, value); ok {
				all = append(all, point{at, set})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return append(all, recent...), nil
}

// dropSeconds removes the expired points by the second, at a minute.
func (s *Store) dropSeconds(now int64) error {
	low, high := secondPrefix(0), secondPrefix((now*perMinute-keepSeconds)/secondBucket)
	it, err := s.reader.Iter(low, high)
	if err != nil {
		return err
	}
	some := it.Next()
	if err := it.Close(); err != nil || !some {
		return err
	}
	s.shard.Batch.DeleteRange(low, high)
	return nil
}
