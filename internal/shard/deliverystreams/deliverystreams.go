// Package deliverystreams keeps delivery streams, and their records until these are delivered. In this
// package a stream is a delivery stream of Firehose, not a stream of the journal.
//
// Invariants: a record is durable before Put returns; it is in the store until its whole batch
// was delivered; a batch is durable before the first attempt, so that further attempts, also
// after a crash, have the same records and the same name; memory holds counts of records, but
// no records.
package deliverystreams

import (
	"encoding/binary"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliverystream"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/sorted"
	"godwit.dev/godwit/internal/store"
)

// Options configure a Module.
type Options struct {
	// MaxStreams bounds the streams of an account in a region; 0: no bound.
	MaxStreams int
	// MaxBytes bounds the undelivered bytes of a stream; 0: 1 GiB.
	MaxBytes int64
}

// Module keeps delivery streams. It is a module of the kernel, with a shard of its own.
type Module struct {
	kernel.NopLifecycle
	kernel  *kernel.Kernel
	options Options
	shard   *kernel.Shard // whose lock guards what follows
	reader  journal.Reader
	sealer  *seal.Sealer

	streams map[arn.ARN]*buffer
	scopes  map[scope]*sorted.List[string] // the names of their streams
	due     sorted.Heap[*buffer]           // streams with undelivered records that are not being delivered
	deliver func(deliverystream.Instance)  // nil: before Start
	fault   func(a arn.ARN) error          // the injected outage of a stream; nil: there are none
}

type scope struct{ account, region string }

// buffer is a stream with the counts of its undelivered records.
type buffer struct {
	*deliverystream.Stream

	first, next uint64 // of its chunks: [first, next)
	all         sum    // of the chunks, those of the batch included
	taken       sum    // of the batch
	oldest      int64  // when the first record that is in no batch was put, epoch milliseconds
	batch       *deliverystream.Batch
	busy        bool  // its batch is being delivered
	pausedUntil int64 // after a failure: no delivery begins before, epoch milliseconds
	at          int64
	place       int32
}

// Before implements sorted.Heap's elements.
func (buf *buffer) Before(o *buffer) bool { return buf.at < o.at }

// Place implements sorted.Heap's elements.
func (buf *buffer) Place() *int32 { return &buf.place }

// usualMaxBytes is Options.MaxBytes unless given.
const usualMaxBytes = 1 << 30

// New adds the module to a kernel.
func New(k *kernel.Kernel, sealing *seal.Keys, o Options) *Module {
	if o.MaxBytes == 0 {
		o.MaxBytes = usualMaxBytes
	}
	m := &Module{
		kernel: k, options: o, shard: k.OwnShard(keyspace.FirehoseStream), sealer: sealing.Sealer("delivery streams"),
		streams: map[arn.ARN]*buffer{}, scopes: map[scope]*sorted.List[string]{},
	}
	m.shard.Add(m)
	return m
}

// Load implements kernel.Lifecycle: it reads the streams and counts their records.
func (m *Module) Load() error {
	m.reader = m.shard.Stream.Reader()
	numbers := map[uint64]*buffer{}
	err := store.EachOf(m.reader, keyspace.KindDeliveryStream, keyspace.Prefix([]byte{keyspace.FirehoseSpace, keyspace.DeliveryStreams}), func(_ *keyspace.Key, value []byte) error {
		s, err := deliverystream.Decode(value)
		if err != nil {
			return err
		}
		numbers[s.Number] = m.add(s)
		return nil
	})
	if err != nil {
		return err
	}
	err = store.EachOf(m.reader, keyspace.KindFirehoseBatch, keyspace.Prefix([]byte{keyspace.FirehoseSpace, keyspace.FirehoseBatches}), func(k *keyspace.Key, value []byte) error {
		b, err := deliverystream.DecodeBatch(value)
		if err != nil {
			return err
		}
		number, _ := k.Number(keyspace.PartStream)
		if buf := numbers[number]; buf != nil {
			buf.batch = b
		}
		return nil
	})
	if err != nil {
		return err
	}
	err = store.EachOf(m.reader, keyspace.KindFirehoseChunk, keyspace.Prefix([]byte{keyspace.FirehoseSpace, keyspace.FirehoseChunks}), func(k *keyspace.Key, value []byte) error {
		number, _ := k.Number(keyspace.PartStream)
		sequence, _ := k.Number(keyspace.PartSequence)
		buf := numbers[number]
		if buf == nil {
			return nil
		}
		c, err := deliverystream.DecodeChunk(value)
		if err != nil { // it is removed with its batch
			c = deliverystream.Chunk{Arrival: buf.Created.UnixMilli()}
		}
		if buf.next == buf.first {
			buf.first = sequence
		}
		buf.next = sequence + 1
		buf.all.add(&c)
		if buf.batch != nil && sequence <= buf.batch.To {
			buf.taken.add(&c)
		}
		if buf.oldest == 0 && (buf.batch == nil || sequence > buf.batch.To) {
			buf.oldest = c.Arrival
		}
		return nil
	})
	for _, buf := range numbers {
		m.schedule(buf)
	}
	return err
}

// weight is how much of its stream's bound a chunk uses: a small one also has its overhead.
func weight(c *deliverystream.Chunk) int64 { return max(int64(c.Bytes), leastWeight) }

const leastWeight = 1 << 10

// sum is of chunks: how much of their stream's bound they use, and the bytes of their records, of
// which a buffer has so many.
type sum struct{ weight, data int64 }

func (s *sum) add(c *deliverystream.Chunk) {
	s.weight += weight(c)
	s.data += int64(c.Bytes)
}

// enough reports whether chunks fill a buffer of so many bytes. Small ones do so, too, before they
// use up the bound.
func (m *Module) enough(s sum, size int64) bool {
	const share = 4
	return s.data >= size || s.weight >= max(size, m.options.MaxBytes/share)
}

// Resume implements kernel.Lifecycle.
func (m *Module) Resume() { m.shard.Arm() }

func (m *Module) add(s *deliverystream.Stream) *buffer {
	buf := &buffer{Stream: s, place: sorted.Outside, first: 1, next: 1}
	m.streams[s.ARN()] = buf
	of := scope{s.Account, s.Region}
	if m.scopes[of] == nil {
		m.scopes[of] = &sorted.List[string]{Compare: strings.Compare}
	}
	m.scopes[of].Add(s.Name)
	return buf
}

func numberKey(tag byte, numbers ...uint64) []byte {
	k := append(make([]byte, 0, 2+8*len(numbers)), keyspace.FirehoseSpace, tag)
	for _, n := range numbers {
		k = binary.BigEndian.AppendUint64(k, n)
	}
	return k
}

func streamKey(s *deliverystream.Stream) []byte {
	key := append([]byte{keyspace.FirehoseSpace, keyspace.DeliveryStreams}, s.Account...)
	key = append(append(append(key, 0), s.Region...), 0)
	return append(key, s.Name...)
}

// run runs a command, and returns once all that it read and changed is durable.
func (m *Module) run(command func() error) error {
	return m.shard.RunDurableReads(func(*kernel.Tx) error { return command() })
}

// find finds a stream, in a transaction.
func (m *Module) find(a arn.ARN) (*buffer, error) {
	if buf := m.streams[a]; buf != nil {
		return buf, nil
	}
	name, _ := deliverystream.NameOf(a)
	return nil, deliverystream.ErrNoStream.With(name, a.Account)
}

// Create makes a stream. Its number, version and times are set here; the access key of an
// HTTP endpoint is key. Errors: deliverystream.ErrTaken, deliverystream.ErrMany.
func (m *Module) Create(s *deliverystream.Stream, key string) error {
	if m.kernel.Full() {
		return kernel.ErrFull
	}
	return m.run(func() error {
		if m.streams[s.ARN()] != nil {
			return deliverystream.ErrTaken.With(s.Name, s.Account)
		}
		if all := m.scopes[scope{s.Account, s.Region}]; m.options.MaxStreams > 0 && all != nil && len(all.Items) >= m.options.MaxStreams {
			return deliverystream.ErrMany.With(m.options.MaxStreams)
		}
		s.Number, s.Version = m.shard.NextIncarnation(), 1
		s.Created = clock.Time(m.shard.Now())
		if err := m.sealKey(s, key); err != nil {
			return err
		}
		m.put(s)
		m.add(s)
		return nil
	})
}

func (m *Module) sealKey(s *deliverystream.Stream, key string) (err error) {
	if key == "" {
		s.Sealed = nil
		return nil
	}
	s.Sealed, err = m.sealer.Seal([]byte(key), keyContext(s))
	return err
}

func keyContext(s *deliverystream.Stream) []byte {
	return seal.Context("access key of a delivery stream's endpoint", s.Account, s.Region, s.Name)
}

// AccessKey is the access key of a stream's HTTP endpoint; empty for none.
func (m *Module) AccessKey(s *deliverystream.Stream) (string, error) {
	if s.Sealed == nil {
		return "", nil
	}
	key, err := m.sealer.Open(s.Sealed, keyContext(s))
	return string(key), err
}

func (m *Module) put(s *deliverystream.Stream) { m.shard.Batch.Set(streamKey(s), s.Encode()) }

// Find finds a stream, with deliverystream.ErrNoStream if there is none.
func (m *Module) Find(a arn.ARN) (s *deliverystream.Stream, err error) {
	err = m.run(func() error {
		buf, err := m.find(a)
		if err == nil {
			s = buf.Stream
		}
		return err
	})
	return s, err
}

// Change changes a stream. key is a new access key of its HTTP endpoint; nil: it is unchanged.
// Errors: deliverystream.ErrNoStream, and the command's.
func (m *Module) Change(a arn.ARN, key *string, command func(s *deliverystream.Stream, now time.Time) error) error {
	return m.run(func() error {
		buf, err := m.find(a)
		if err != nil {
			return err
		}
		next := buf.Clone()
		if err := command(next, clock.Time(m.shard.Now())); err != nil {
			return err
		}
		if key != nil {
			err = m.sealKey(next, *key)
		}
		if err != nil {
			return err
		}
		m.put(next)
		buf.Stream = next
		m.schedule(buf)
		return nil
	})
}

// Delete removes a stream and its records.
func (m *Module) Delete(a arn.ARN) error {
	return m.run(func() error {
		buf, err := m.find(a)
		if err != nil {
			return err
		}
		m.due.Remove(buf)
		delete(m.streams, a)
		m.scopes[scope{buf.Account, buf.Region}].Remove(buf.Name)
		b := &m.shard.Batch
		b.Delete(streamKey(buf.Stream))
		b.Delete(numberKey(keyspace.FirehoseBatches, buf.Number))
		b.DeleteRange(numberKey(keyspace.FirehoseChunks, buf.Number), numberKey(keyspace.FirehoseChunks, buf.Number+1))
		b.DeleteRange(numberKey(keyspace.FirehoseRecords, buf.Number), numberKey(keyspace.FirehoseRecords, buf.Number+1))
		return nil
	})
}

// List lists the names of an account's streams in a region, in order, after a name: at most
// limit, and whether there are others.
func (m *Module) List(account, region, after string, limit int) (names []string, more bool) {
	_ = m.run(func() error {
		if all := m.scopes[scope{account, region}]; all != nil {
			names, more = all.Page(func(name string) bool { return name <= after }, limit)
		}
		return nil
	})
	return names, more
}

// CheckRecord reports whether a record can be read.
func CheckRecord(id keyspace.ID, value []byte) error {
	var err error
	switch id {
	case keyspace.KindDeliveryStream:
		_, err = deliverystream.Decode(value)
	case keyspace.KindFirehoseBatch:
		_, err = deliverystream.DecodeBatch(value)
	case keyspace.KindFirehoseChunk:
		_, err = deliverystream.DecodeChunk(value)
	case keyspace.KindFirehoseRecords:
		if len(value) < seal.Overhead || value[0] != seal.Form {
			err = deliverystream.ErrRecord
		}
	default:
		err = deliverystream.ErrRecord
	}
	return err
}
