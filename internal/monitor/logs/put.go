package logs

import (
	"errors"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
)

// Event is an event to be put.
type Event struct {
	Time    int64 // epoch milliseconds, 0 or more
	Message string
}

// Bounds of the time of an event relative to now, and of the time span of one call. Source: the
// API reference, "PutLogEvents".
const (
	maxAge   = 14 * 24 * time.Hour
	maxAhead = 2 * time.Hour
	maxSpan  = 24 * time.Hour
)

// Rejected are the events of a call that were rejected: those before TooOld or before Expired,
// and from TooNew on. nil: none.
type Rejected struct{ TooOld, Expired, TooNew *int }

// Put adds events, ordered by time, to a stream. They are durable on return. It fails with
// ResourceNotFound; with InvalidParameter if the events span a day or more; and with
// InsufficientStorage.
func (l *Logs) Put(group arn.ARN, stream string, events []Event) (r Rejected, err error) {
	if l.kernel.Full() {
		return r, ErrFull
	}
	var g groupRecord
	err = l.run(func() error {
		var err error
		if g, err = l.find(group); err == nil {
			events, r, err = l.put(group, g.id, stream, events, false)
		}
		return err
	})
	if err == nil {
		l.measure(group, g, events, false)
	}
	return r, err
}

// put writes events, in a transaction, and returns those that were not rejected. own says that they
// are the server's: the stream is made if it does not exist, and no event is rejected for its time.
func (l *Logs) put(of arn.ARN, group uint64, stream string, events []Event, own bool) (kept []Event, r Rejected, err error) {
	t, err := l.totals(group)
	if err != nil {
		return nil, r, err
	}
	var b mutation.Batch
	s, err := l.stream(group, stream)
	if errors.Is(err, ErrNoStream) && own {
		s, err = l.addStream(&b, group, stream), nil
	}
	if err != nil {
		return nil, r, err
	}
	if !own {
		if events, r, err = admit(events, clock.Time(l.shard.Now()), t.retention); err != nil {
			return nil, r, err
		}
	}
	if len(events) == 0 {
		l.apply(&b)
		return events, r, nil
	}
	sequence := l.take(len(events))
	ingested := l.now()
	var added bucket
	for from := 0; from < len(events); { // one bucket after the other
		h := uint64(events[from].Time) / hour
		var here bucket
		to := from
		for ; to < len(events) && uint64(events[to].Time)/hour == h; to++ {
			p := position{uint64(events[to].Time), sequence + uint64(to)}
			b.Set(eventKey(group, p), stored{s.id, ingested, []byte(events[to].Message)}.encode())
			b.Set(indexKey(group, s.id, p), nil)
			here.add(bucket{uint64(len(events[to].Message)), 1})
		}
		if err := l.fill(&b, group, h, here); err != nil {
			return nil, r, err
		}
		added.add(here)
		from = to
	}
	first, latest := uint64(events[0].Time), uint64(events[len(events)-1].Time)
	if s.ingested == 0 || latest > s.last {
		b.SingleDelete(key(tagLatest, group, s.last, s.id))
		b.Set(key(tagLatest, group, max(latest, s.last), s.id), []byte(stream))
		s.last = max(latest, s.last)
	}
	if s.ingested == 0 || first < s.first {
		s.first = first
	}
	s.ingested = ingested
	b.Set(streamKey(group, stream), s.encode())
	l.note(&b, of, group, s.id, sequence, events)
	before := t
	t.add(added)
	if t.retention > 0 {
		if d := dueOf(first/hour, t.retention); t.due == 0 || d < t.due {
			l.moveDue(&b, group, &t, d)
		}
	}
	l.writeTotals(&b, group, before, t)
	l.apply(&b)
	l.trim()
	return events, r, nil
}

// fill adds to the size of a bucket.
func (l *Logs) fill(b *mutation.Batch, group, h uint64, more bucket) error {
	v, ok, err := l.reader.Get(nil, key(tagBucket, group, h))
	if err != nil {
		return err
	}
	held := decodeBucket(v)
	held.add(more)
	b.Set(key(tagBucket, group, h), held.encode())
	if !ok {
		b.Set(key(tagOldest, h, group), nil)
	}
	return nil
}

// admit removes the events that are too old or too far in the future.
func admit(events []Event, now time.Time, retention uint64) (kept []Event, r Rejected, err error) {
	oldest, newest := now.Add(-maxAge).UnixMilli(), now.Add(maxAhead).UnixMilli()
	expired := int64(0)
	if retention > 0 {
		expired = now.UnixMilli() - int64(retention)*24*hour
	}
	from, to := 0, len(events)
	for from < to && events[from].Time < max(oldest, expired) {
		from++
	}
	for to > from && events[to-1].Time > newest {
		to--
	}
	if kept = events[from:to]; len(kept) > 0 && kept[len(kept)-1].Time-kept[0].Time > maxSpan.Milliseconds() {
		return nil, r, ErrSpan
	}
	old := 0
	for old < from && events[old].Time < oldest {
		old++
	}
	if old > 0 {
		r.TooOld = &old
	}
	if from > old {
		r.Expired = &from
	}
	if to < len(events) {
		r.TooNew = &to
	}
	return kept, r, nil
}
