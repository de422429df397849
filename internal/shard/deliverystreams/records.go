package deliverystreams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/sorted"
	"godwit.dev/godwit/internal/store"
)

// chunkBytes is about the size of a chunk: far less than a commit may hold.
const chunkBytes = 512 << 10

// sealedChunk is a chunk before it has a number.
type sealedChunk struct {
	deliverystream.Chunk

	records []byte
}

// Put adds records to a delivery stream, all or none, and returns their ids once they are
// durable. The end of ctx does not interrupt it. Errors: deliverystream.ErrNoStream, deliverystream.ErrFull,
// kernel.ErrFull.
func (m *Module) Put(ctx context.Context, a arn.ARN, records []deliverystream.Record) (ids []string, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.kernel.Full() {
		return nil, kernel.ErrFull
	}
	s, dependsOn, err := m.taking(a)
	if err != nil {
		m.kernel.Journal.Await(dependsOn)
		return nil, err
	}
	chunks, size, err := m.seal(s, records)
	if err != nil {
		return nil, err
	}
	var first uint64
	var now int64
	err = m.shard.RunDurableReads(func(*kernel.Tx) error {
		buf, err := m.find(a)
		if err != nil {
			return err
		}
		if buf.Number != s.Number { // it was deleted and created again meanwhile
			return deliverystream.ErrNoStream.With(s.Name, s.Account)
		}
		if buf.all.weight+size > m.options.MaxBytes {
			return deliverystream.ErrFull
		}
		now = m.shard.Now()
		if buf.next == buf.first || buf.batch != nil && buf.next == buf.batch.To+1 {
			buf.oldest = now
		}
		first = buf.next
		for i := range chunks {
			if i > 0 {
				m.shard.AppendPartial(journal.Eager)
			}
			chunk := &chunks[i]
			chunk.Arrival = now
			m.shard.Batch.Set(numberKey(keyspace.FirehoseChunks, buf.Number, buf.next), chunk.Encode())
			m.shard.Batch.Set(numberKey(keyspace.FirehoseRecords, buf.Number, buf.next), chunk.records)
			buf.next++
			buf.all.add(&chunk.Chunk)
		}
		m.schedule(buf)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return recordIDs(s.Number, now, first, len(records)), nil
}

// taking finds a stream for a put. A refusal depends on a commit.
func (m *Module) taking(a arn.ARN) (s *deliverystream.Stream, dependsOn *journal.Commit, err error) {
	dependsOn, err = m.shard.Run(journal.Lazy, func(tx *kernel.Tx) error {
		tx.DependOn(m.shard.Stream.Last())
		buf, err := m.find(a)
		if err == nil && m.fault != nil {
			if err = m.fault(a); fault.KindOf(err) == fault.Throttled {
				err = deliverystream.ErrFull
			}
		}
		if err == nil {
			s = buf.Stream
		}
		return err
	})
	return s, dependsOn, err
}

// seal makes chunks of records.
func (m *Module) seal(s *deliverystream.Stream, records []deliverystream.Record) (chunks []sealedChunk, size int64, err error) {
	place := recordContext(s)
	deliverystream.Split(records, chunkBytes, func(part []deliverystream.Record, bytes int) {
		var kept []byte
		kept, sealErr := m.sealer.Seal(deliverystream.AppendRecords(make([]byte, 0, bytes+4*len(part)), part), place)
		err = errors.Join(err, sealErr)
		c := sealedChunk{deliverystream.Chunk{Records: uint32(len(part)), Bytes: uint32(bytes)}, kept}
		size += weight(&c.Chunk)
		chunks = append(chunks, c)
	})
	return chunks, size, err
}

func recordContext(s *deliverystream.Stream) []byte {
	return seal.Context("records of a delivery stream", s.Account, s.Region, s.Name, strconv.FormatUint(s.Number, 10))
}

// recordIDs makes the ids of the records of a put.
func recordIDs(number uint64, now int64, first uint64, records int) []string {
	ids := make([]string, records)
	head := fmt.Sprintf("%013d%013d%018d", now, number, first)
	for i := range ids {
		ids[i] = fmt.Sprintf("%s%012d", head, i)
	}
	return ids
}

// schedule sets when a stream's next batch is due, in a transaction.
func (m *Module) schedule(buf *buffer) {
	m.due.Remove(buf)
	if buf.busy {
		return
	}
	pending := buf.next > buf.first
	if buf.batch != nil {
		buf.at = buf.batch.Next
	} else if size, interval := buf.Hints(); pending {
		buf.at = buf.oldest + interval.Milliseconds()
		if m.enough(buf.all, size) {
			buf.at = buf.oldest
		}
	} else {
		return
	}
	buf.at = max(buf.at, buf.pausedUntil)
	m.due.Push(buf)
}

// NextDue implements kernel.Lifecycle.
func (m *Module) NextDue() int64 {
	if m.deliver == nil || len(m.due) == 0 {
		return 0
	}
	return max(m.due[0].at, 1)
}

// ticked bounds the streams whose delivery one tick starts.
const ticked = 100

// Tick implements kernel.Lifecycle: it starts the delivery of the streams that are due.
func (m *Module) Tick(now int64) {
	for n := 0; n < ticked && m.deliver != nil && len(m.due) > 0 && m.due[0].at <= now; n++ {
		buf := m.due[0]
		m.due.Remove(buf)
		buf.busy = true
		of, deliver := deliverystream.Instance{Stream: buf.ARN(), Number: buf.Number}, m.deliver
		m.kernel.GoBackground(func() { deliver(of) })
	}
}

// Start sets the function that delivers a stream's batches, until Next gives none. It is called
// in the background, with the clock held, concurrently for several streams but not for one.
// outage reports the injected outage of a stream; it may be nil.
func (m *Module) Start(deliver func(deliverystream.Instance), outage func(a arn.ARN) error) {
	m.shard.RunLazy(func() {
		m.deliver, m.fault = deliver, outage
		m.shard.Arm()
	})
}

// Running ends when deliveries are to.
func (m *Module) Running() context.Context { return m.kernel.Running }

// Next is the batch to be delivered now, which is durable when Next returns; nil: none is due,
// and the delivery of the stream ends. It also ends with an error, after which nothing of the
// stream is tried for a while.
func (m *Module) Next(t deliverystream.Instance) (*deliverystream.Stream, *deliverystream.Batch, error) {
	s, b, err := m.next(t)
	if err == nil {
		return s, b, nil
	}
	m.shard.RunLazy(func() {
		if buf := m.instance(t); buf != nil {
			buf.busy, buf.pausedUntil = false, m.shard.Now()+unreadablePause.Milliseconds()
			m.schedule(buf)
			m.shard.Arm()
		}
	})
	return nil, nil, err
}

// unreadablePause is for how long a stream whose records cannot be read is not delivered.
const unreadablePause = 2 * time.Minute

// instance finds a delivery stream, with the lock held; nil: it was deleted.
func (m *Module) instance(t deliverystream.Instance) *buffer {
	if buf := m.streams[t.Stream]; buf != nil && buf.Number == t.Number {
		return buf
	}
	return nil
}

func (m *Module) next(t deliverystream.Instance) (*deliverystream.Stream, *deliverystream.Batch, error) {
	var s *deliverystream.Stream
	var b *deliverystream.Batch
	var from, to uint64
	m.shard.RunLazy(func() {
		buf := m.instance(t)
		if buf == nil {
			return
		}
		buf.busy = false
		m.schedule(buf)
		if buf.place == sorted.Outside || buf.at > m.shard.Now() || m.shard.Closed {
			m.shard.Arm()
			return
		}
		m.due.Remove(buf)
		buf.busy = true
		s, b, from, to = buf.Stream, buf.batch, buf.first, buf.next
	})
	if s == nil || b != nil {
		return s, b, nil
	}
	// Meanwhile chunks may be added behind these, but none is removed: the stream is busy.
	formed, err := m.form(s, from, to)
	if err != nil {
		return nil, nil, err
	}
	there := false
	err = m.run(func() error {
		if buf := m.instance(t); buf != nil {
			there = true
			formed.Begun = m.shard.Now()
			buf.batch, buf.taken, buf.oldest = &formed.Batch, formed.sum, formed.behind
			if buf.oldest == 0 && buf.next > to {
				buf.oldest = formed.Begun // about the first that was added meanwhile
			}
			m.shard.Batch.Set(numberKey(keyspace.FirehoseBatches, buf.Number), buf.batch.Encode())
		}
		return nil
	})
	if err != nil || !there {
		return nil, nil, err
	}
	return s, &formed.Batch, nil
}

// formed is a new batch.
type formed struct {
	deliverystream.Batch

	sum    sum
	behind int64 // when the first chunk behind it was put; 0: there is none
}

// form makes a batch of the first chunks of a stream.
func (m *Module) form(s *deliverystream.Stream, from, to uint64) (*formed, error) {
	size, _ := s.Hints()
	b := &formed{Batch: deliverystream.Batch{ID: uuid.NewString(), From: from, Version: s.Version}}
	err := store.EachOf(m.reader, keyspace.KindFirehoseChunk, keyspace.Span{
		Lower: numberKey(keyspace.FirehoseChunks, s.Number, from), Upper: numberKey(keyspace.FirehoseChunks, s.Number, to),
	}, func(k *keyspace.Key, value []byte) error {
		c, err := deliverystream.DecodeChunk(value)
		if err != nil { // its records may be readable
			c = deliverystream.Chunk{Arrival: s.Created.UnixMilli()}
		}
		if m.enough(b.sum, size) {
			b.behind = c.Arrival
			return store.ErrStop
		}
		if b.To == 0 {
			b.Oldest = c.Arrival
		}
		b.To, _ = k.Number(keyspace.PartSequence)
		b.Records += int64(c.Records)
		b.Bytes += int64(c.Bytes)
		b.sum.add(&c)
		return nil
	})
	if b.To == 0 { // their records are missing
		b.To, b.Oldest = to-1, s.Created.UnixMilli()
	}
	return b, err
}

// Read calls f with the records of a batch, chunk by chunk, and the time of their put in epoch
// milliseconds. The records are valid until f returns. Unreadable chunks are left out, and
// counted in unreadable. Errors: f's, and the store's.
func (m *Module) Read(s *deliverystream.Stream, b *deliverystream.Batch, f func(arrival int64, records []deliverystream.Record) error) (unreadable int, err error) {
	place := recordContext(s)
	var records []deliverystream.Record
	arrivals, err := m.reader.Iter(numberKey(keyspace.FirehoseChunks, s.Number, b.From), numberKey(keyspace.FirehoseChunks, s.Number, b.To+1))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, arrivals.Close()) }()
	more := arrivals.Next()
	err = store.Each(m.reader, keyspace.Span{
		Lower: numberKey(keyspace.FirehoseRecords, s.Number, b.From), Upper: numberKey(keyspace.FirehoseRecords, s.Number, b.To+1),
	}, func(key, value []byte) error {
		arrival := b.Oldest
		number, err := sequenceIn(key, keyspace.KindFirehoseRecords)
		if err != nil {
			return err
		}
		at := uint64(0)
		for ; more; more = arrivals.Next() {
			if at, err = sequenceIn(arrivals.Key(), keyspace.KindFirehoseChunk); err != nil {
				return err
			}
			if at >= number { // the records of those before are lost
				break
			}
		}
		if more && at == number {
			if c, err := deliverystream.DecodeChunk(arrivals.Value()); err == nil {
				arrival = c.Arrival
			}
		}
		kept, openErr := m.sealer.Open(value, place)
		if openErr == nil {
			records, openErr = deliverystream.DecodeRecords(records[:0], kept)
		}
		if openErr != nil {
			unreadable++
			return nil
		}
		return f(arrival, records)
	})
	return unreadable, err
}

// sequenceIn is the sequence in the key of a chunk, or of its records.
func sequenceIn(key []byte, kind keyspace.ID) (sequence uint64, err error) {
	k, err := keyspace.ParseAs(kind, key)
	if err == nil {
		sequence, _ = k.Number(keyspace.PartSequence)
	}
	return sequence, err
}

// Save persists the progress of a batch's delivery.
func (m *Module) Save(s *deliverystream.Stream, b *deliverystream.Batch) error {
	return m.run(func() error {
		if buf := m.streams[s.ARN()]; buf != nil && buf.Number == s.Number && buf.batch != nil && buf.batch.ID == b.ID {
			buf.batch = b
			m.shard.Batch.Set(numberKey(keyspace.FirehoseBatches, buf.Number), b.Encode())
		}
		return nil
	})
}

// Done removes a batch that was delivered, and its records.
func (m *Module) Done(s *deliverystream.Stream, b *deliverystream.Batch) error {
	return m.run(func() error {
		buf := m.streams[s.ARN()]
		if buf == nil || buf.Number != s.Number || buf.batch == nil || buf.batch.ID != b.ID {
			return nil
		}
		out := &m.shard.Batch
		out.Delete(numberKey(keyspace.FirehoseBatches, buf.Number))
		out.DeleteRange(numberKey(keyspace.FirehoseChunks, buf.Number, b.From), numberKey(keyspace.FirehoseChunks, buf.Number, b.To+1))
		out.DeleteRange(numberKey(keyspace.FirehoseRecords, buf.Number, b.From), numberKey(keyspace.FirehoseRecords, buf.Number, b.To+1))
		buf.all.weight -= buf.taken.weight
		buf.all.data -= buf.taken.data
		buf.batch, buf.taken, buf.first = nil, sum{}, b.To+1
		return nil
	})
}
