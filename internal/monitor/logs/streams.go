package logs

import (
	"bytes"
	"encoding/binary"
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Stream is a log stream. The times are epoch milliseconds; First, Last and
// Ingested are nil until it has an event.
type Stream struct {
	Name                  string
	Created               int64
	First, Last, Ingested *int64 // the first and last event, and when the last one came
}

// CreateStream makes a stream. It fails with ResourceNotFound, ResourceAlreadyExists and
// InsufficientStorage.
func (l *Logs) CreateStream(group arn.ARN, name string) error {
	if l.kernel.Full() {
		return ErrFull
	}
	return l.run(func() error {
		g, err := l.find(group)
		if err != nil {
			return err
		}
		return l.createStream(g.id, name)
	})
}

func (l *Logs) createStream(group uint64, name string) error {
	if _, err := l.totals(group); err != nil {
		return err
	}
	if _, ok, err := l.reader.Get(nil, streamKey(group, name)); err != nil || ok {
		if ok {
			err = ErrStreamExists
		}
		return err
	}
	var b mutation.Batch
	l.addStream(&b, group, name)
	l.apply(&b)
	return nil
}

// addStream makes a stream that does not exist.
func (l *Logs) addStream(b *mutation.Batch, group uint64, name string) streamRecord {
	s := streamRecord{id: l.take(1), created: l.now()}
	b.Set(streamKey(group, name), s.encode())
	b.Set(key(tagName, group, s.id), []byte(name))
	b.Set(key(tagLatest, group, s.last, s.id), []byte(name))
	return s
}

// DeleteStream removes a stream. Its events are hidden at once, and their space is reclaimed in
// the background. It fails with ResourceNotFound, and with ValidationFailed while the group is
// protected.
func (l *Logs) DeleteStream(group arn.ARN, name string) error {
	l.sink.flush()
	return l.run(func() error {
		g, err := l.unprotected(group)
		if err != nil {
			return err
		}
		return l.deleteStream(g.id, name)
	})
}

func (l *Logs) deleteStream(group uint64, name string) error {
	s, err := l.stream(group, name)
	if err != nil {
		return err
	}
	var b mutation.Batch
	b.Delete(streamKey(group, name))
	b.Delete(key(tagName, group, s.id))
	b.SingleDelete(key(tagLatest, group, s.last, s.id))
	b.Set(key(tagDeleted, group, s.id), nil)
	l.apply(&b)
	l.sweep()
	return nil
}

// StreamOrder selects streams, and their order.
type StreamOrder struct {
	Prefix     string // of the name; empty with ByLast
	ByLast     bool   // by the last event, not by the name
	Descending bool
}

// Streams lists the streams of a group. next is where to continue; empty: there are no others.
func (l *Logs) Streams(group arn.ARN, o StreamOrder, p Page) (found []Stream, next string, err error) {
	l.sink.flush()
	defer l.shard.AwaitReads()
	g, err := l.find(group)
	if err != nil {
		return nil, "", err
	}
	base := key(tagStream, g.id)
	if o.ByLast {
		base = key(tagLatest, g.id)
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
	err = walk(low, high, func(k, v []byte) error {
		if len(found) == p.Limit {
			more = true
			return store.ErrStop
		}
		name := string(k[10:])
		if o.ByLast {
			name = string(v)
			if v, _, err = l.reader.Get(nil, streamKey(g.id, name)); err != nil {
				return err
			}
		}
		s, ok := decodeStream(v)
		if !ok { // removed meanwhile
			return nil
		}
		at = string(k[10:])
		found = append(found, s.stream(name))
		return nil
	})
	if more {
		next = at
	}
	return found, next, err
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

// sweepStep is how many events of a deleted stream one commit removes.
const sweepStep = 2000

// sweep reclaims the space of deleted streams, step by step in the background.
func (l *Logs) sweep() {
	if l.sweeping {
		return
	}
	l.sweeping = true
	var s deletedStream
	l.inSteps(&l.sweeping, func() (more bool) {
		more, err := l.sweepNext(&s)
		if err != nil { // the next start continues
			l.shard.Logger.Error("the space of a deleted log stream cannot be given back", "error", err)
			return false
		}
		return more
	})
}

// inSteps runs step in the background, each time in a transaction, until it returns false.
// running is true meanwhile, under the shard's lock.
func (l *Logs) inSteps(running *bool, step func() bool) {
	l.kernel.InSteps(func() bool {
		more := false
		l.shard.RunLazy(func() {
			more = step()
			*running = more
		})
		return more
	})
}

// deletedStream is a deleted stream, and how many of its events are removed.
type deletedStream struct {
	group, id uint64
	at        position
}

// sweepNext removes some events of a deleted stream: of s, or of the first one if s has none
// left.
func (l *Logs) sweepNext(s *deletedStream) (more bool, err error) {
	if s.id == 0 {
		err := l.each(key(tagDeleted), behind(key(tagDeleted)), func(k, _ []byte) error {
			*s = deletedStream{group: number(k, 0), id: number(k, 1)}
			return store.ErrStop
		})
		if err != nil || s.id == 0 {
			return false, err
		}
	}
	t, err := l.totals(s.group)
	if errors.Is(err, ErrNoGroup) { // the whole group was deleted meanwhile
		*s = deletedStream{}
		return true, nil
	}
	if err != nil {
		return false, err
	}
	places, reached, done, err := l.index(s.group, s.id, s.at, last, sweepStep)
	if err != nil {
		return false, err
	}
	var b mutation.Batch
	gone := map[uint64]bucket{}
	err = l.read(s.group, places, func(p position, e stored) error {
		n := gone[p.hour()]
		n.add(bucket{uint64(len(e.message)), 1})
		gone[p.hour()] = n
		b.SingleDelete(eventKey(s.group, p))
		return nil
	})
	if err != nil {
		return false, err
	}
	for _, p := range places {
		b.SingleDelete(indexKey(s.group, s.id, p))
	}
	before := t
	for h, n := range gone {
		v, _, err := l.reader.Get(nil, key(tagBucket, s.group, h))
		if err != nil {
			return false, err
		}
		held := decodeBucket(v)
		held.sub(n)
		b.Set(key(tagBucket, s.group, h), held.encode())
		t.sub(n)
	}
	l.writeTotals(&b, s.group, before, t)
	s.at = reached
	if done {
		b.Delete(key(tagDeleted, s.group, s.id))
		*s = deletedStream{}
	}
	l.apply(&b)
	return true, nil
}

// stored is an event in its stored form. The message is valid until the next one is read.
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
