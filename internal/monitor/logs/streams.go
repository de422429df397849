package logs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/mutation"
)

// Stream is a log stream. The times are epoch milliseconds; First, Last and
// Ingested are nil until it has an event.
type Stream struct {
	Name                  string
	Created               int64
	First, Last, Ingested *int64 // the first and last event, and when the last one came
}

// CreateStream makes a stream. It fails with ResourceNotFound and
// ResourceAlreadyExists.
func (l *Logs) CreateStream(_ context.Context, group arn.ARN, name string) error {
	g, err := l.find(group)
	if err != nil {
		return err
	}
	if err := l.createStream(g.id, name); err != nil {
		return err
	}
	l.log.Sync()
	return nil
}

func (l *Logs) createStream(group uint64, name string) error {
	defer l.guard.Unlock(l.lock(group))
	if _, err := l.totals(group); err != nil {
		return err
	}
	if _, ok, err := l.reader.Get(nil, textKey(kindStream, group, name)); err != nil || ok {
		if ok {
			err = fault.New(fault.ResourceAlreadyExists, "The specified log stream already exists")
		}
		return err
	}
	var b mutation.Batch
	l.addStream(&b, group, name)
	l.apply(&b)
	return nil
}

// addStream makes a stream that does not exist; the group's lock is held.
func (l *Logs) addStream(b *mutation.Batch, group uint64, name string) streamRecord {
	s := streamRecord{id: l.take(1), created: l.now()}
	b.Set(textKey(kindStream, group, name), s.encode())
	b.Set(key(kindName, group, s.id), []byte(name))
	b.Set(key(kindLatest, group, s.last, s.id), []byte(name))
	return s
}

// DeleteStream removes a stream. Its events are not seen any more, and their space
// is given back in the background. It fails with ResourceNotFound, and with
// ValidationFailed while the group is protected.
func (l *Logs) DeleteStream(_ context.Context, group arn.ARN, name string) error {
	l.sink.flush()
	g, err := l.unprotected(group)
	if err != nil {
		return err
	}
	if err := l.deleteStream(g.id, name); err != nil {
		return err
	}
	l.log.Sync()
	l.sweep()
	return nil
}

func (l *Logs) deleteStream(group uint64, name string) error {
	defer l.guard.Unlock(l.lock(group))
	s, err := l.stream(group, name)
	if err != nil {
		return err
	}
	var b mutation.Batch
	b.Delete(textKey(kindStream, group, name))
	b.Delete(key(kindName, group, s.id))
	b.SingleDelete(key(kindLatest, group, s.last, s.id))
	b.Set(key(kindDoomed, group, s.id), nil)
	l.apply(&b)
	return nil
}

// StreamOrder says which streams are listed, and how.
type StreamOrder struct {
	Prefix     string // of the name; empty with ByLast
	ByLast     bool   // by the last event, not by the name
	Descending bool
}

// Streams lists the streams of a group. What comes after a page is named by next,
// which is empty if nothing does.
func (l *Logs) Streams(_ context.Context, group arn.ARN, o StreamOrder, p Page) (found []Stream, next string, err error) {
	l.settle()
	g, err := l.find(group)
	if err != nil {
		return nil, "", err
	}
	base := key(kindStream, g.id)
	if o.ByLast {
		base = key(kindLatest, g.id)
	}
	low := append(bytes.Clone(base), o.Prefix...)
	high := behind(low)
	if p.After != "" {
		place := append(bytes.Clone(base), p.After...)
		if o.Descending {
			high = minKey(high, place)
		} else {
			low = maxKey(low, append(place, 0))
		}
	}
	walk := l.each
	if o.Descending {
		walk = l.eachDown
	}
	at, more := "", false
	var failed error
	err = walk(low, high, func(k, v []byte) bool {
		if len(found) == p.Limit {
			more = true
			return false
		}
		name := string(k[10:])
		if o.ByLast {
			name = string(v)
			if v, _, failed = l.reader.Get(nil, textKey(kindStream, g.id, name)); failed != nil {
				return false
			}
		}
		s, ok := decodeStream(v)
		if !ok { // removed meanwhile
			return true
		}
		at = string(k[10:])
		found = append(found, s.stream(name))
		return true
	})
	if more {
		next = at
	}
	return found, next, errors.Join(failed, err)
}

func (s streamRecord) stream(name string) Stream {
	out := Stream{Name: name, Created: int64(s.created)}
	if s.ingested != 0 {
		first, last, ingested := int64(s.first), int64(s.last), int64(s.ingested)
		out.First, out.Last, out.Ingested = &first, &last, &ingested
	}
	return out
}

func minKey(a, b []byte) []byte {
	if a != nil && bytes.Compare(a, b) < 0 {
		return a
	}
	return b
}

func maxKey(a, b []byte) []byte {
	if bytes.Compare(a, b) > 0 {
		return a
	}
	return b
}

// doomedStep is how many events of a removed stream go in one commit.
const doomedStep = 2000

// sweep gives the space of removed streams back, in the background.
func (l *Logs) sweep() {
	l.doomed.Store(true)
	if !l.sweeping.CompareAndSwap(false, true) {
		return
	}
	l.goBackground(func() {
		for l.doomed.Swap(false) {
			l.sweepDoomed()
		}
		l.sweeping.Store(false)
		if l.doomed.Load() { // one that came in between
			l.sweep()
		}
	})
}

func (l *Logs) sweepDoomed() {
	type stream struct{ group, id uint64 }
	for l.stopping.Err() == nil {
		var all []stream
		err := l.each(key(kindDoomed), behind(key(kindDoomed)), func(k, _ []byte) bool {
			all = append(all, stream{number(k, 0), number(k, 1)})
			return len(all) < 1000
		})
		if err != nil || len(all) == 0 {
			return
		}
		for _, s := range all {
			for at, more := (position{}), true; more && l.stopping.Err() == nil; {
				if at, more, err = l.sweepStream(s.group, s.id, at); err != nil {
					return // the next start goes on
				}
			}
		}
	}
}

// sweepStream removes some events of a stream, from a place on; reached is where
// to go on if there is more.
func (l *Logs) sweepStream(group, id uint64, at position) (reached position, more bool, err error) {
	defer l.guard.Unlock(l.lock(group))
	t, err := l.totals(group)
	if err != nil {
		return at, false, nil //nolint:nilerr // the group is gone, and all with it
	}
	places, reached, done, err := l.index(group, id, at, last, doomedStep)
	if err != nil {
		return at, false, err
	}
	var b mutation.Batch
	gone := map[uint64]bucket{}
	err = l.read(group, places, func(p position, e stored) bool {
		n := gone[p.hour()]
		n.add(bucket{uint64(len(e.message)), 1})
		gone[p.hour()] = n
		b.SingleDelete(eventKey(group, p))
		return true
	})
	if err != nil {
		return at, false, err
	}
	for _, p := range places {
		b.SingleDelete(indexKey(group, id, p))
	}
	for h, n := range gone {
		v, _, err := l.reader.Get(nil, key(kindBucket, group, h))
		if err != nil {
			return at, false, err
		}
		held := decodeBucket(v)
		held.sub(n)
		b.Set(key(kindBucket, group, h), held.encode())
		t.sub(n)
		l.disk.Add(-n.disk())
	}
	if done {
		b.Delete(key(kindDoomed, group, id))
	}
	b.Set(key(kindTotals, group), t.encode())
	l.apply(&b)
	return reached, !done, nil
}

// stored is an event as it is kept. The message is valid until the next one is
// read.
type stored struct {
	stream, ingested uint64
	message          []byte
}

func (e stored) encode() []byte {
	v := make([]byte, 0, 16+len(e.message))
	v = binary.BigEndian.AppendUint64(v, e.stream)
	v = binary.BigEndian.AppendUint64(v, e.ingested)
	return append(v, e.message...)
}

func decodeStored(v []byte) (e stored, ok bool) {
	if len(v) < 16 {
		return e, false
	}
	return stored{binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:]), v[16:]}, true
}
