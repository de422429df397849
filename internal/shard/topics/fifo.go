package topics

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/queues/accepted"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// stream is what a shard keeps of a FIFO topic beside its record: the messages
// have sequences, and each deduplication id is accepted once in five minutes.
type stream struct {
	incarnation layout.Incarnation
	next        uint64        // the sequence of the next message
	recent      *dedup.Window // of messages accepted recently; nil: not read yet
	oldest      int64         // when the archive's oldest message was published, in epoch milliseconds; 0: it is empty
}

// stream finds that of a FIFO topic, or begins it.
func (sh *Shard) stream(t *topic.Topic) *stream {
	inc := layout.Incarnation(t.Incarnation)
	s, ok := sh.streams[inc]
	if !ok {
		s = &stream{incarnation: inc, next: firstSequence(t)}
		sh.streams[inc] = s
	}
	return s
}

// The sequences of a new topic begin somewhere between these, which leaves room for
// as many again.
const (
	lowestFirst = 1_000_000_000_000_000_000
	firsts      = 7_000_000_000_000_000_000
)

// firstSequence is the sequence of a topic's first message: each topic, and each life
// of one, begins elsewhere, so that its numbers tell nothing by meeting those of others.
func firstSequence(t *topic.Topic) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(t.ARN.String()), t.Incarnation))
	return lowestFirst + binary.BigEndian.Uint64(sum[:])%firsts
}

func streamPrefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.TopicSequences) }

func streamKey(shard uint16, inc layout.Incarnation) []byte {
	return binary.BigEndian.AppendUint64(streamPrefix(shard), uint64(inc))
}

// loadStreams reads what stands of FIFO topics beside their records.
func (sh *Shard) loadStreams() error {
	var failed error
	err := store.Each(sh.engine.Store, keyspace.Prefix(streamPrefix(sh.ID)), func(key, value []byte) bool {
		if len(key) != 3+8 || len(value) != 8 {
			failed = fmt.Errorf("a FIFO topic has the unreadable record %q", key)
			return false
		}
		inc := layout.Incarnation(binary.BigEndian.Uint64(key[3:]))
		sh.streams[inc] = &stream{incarnation: inc, next: binary.BigEndian.Uint64(value)}
		return true
	})
	return cmp.Or(failed, err)
}

// dropStream removes what stands of a topic that is gone. What is remembered of
// its messages goes with its minute.
func (sh *Shard) dropStream(t *topic.Topic) {
	inc := layout.Incarnation(t.Incarnation)
	if _, ok := sh.streams[inc]; ok {
		delete(sh.streams, inc)
		sh.Batch.Delete(streamKey(sh.ID, inc))
	}
}

// admit accepts messages, as part of the command that spreads them: those of a
// FIFO topic get their sequences, unless they are duplicates, which are spread
// no further. Nothing has been written by the command yet.
func (sh *Shard) admit(fs []fanout) {
	if len(fs) == 0 {
		return
	}
	t, ok := sh.Topics.Topic(fs[0].Topic)
	if !ok || !t.ARN.FIFO() {
		for i := range fs {
			fs[i].result = queues.SendResult{ID: fs[i].P.ID}
		}
		return
	}
	s, now := sh.stream(t), sh.Now()
	if s.recent == nil {
		s.recent = sh.Duplicates.Load(s.incarnation, now)
	}
	ids := make([]dedup.ID, len(fs))
	for i := range fs {
		f := &fs[i]
		group := ""
		if t.GroupDedup() {
			group = f.P.Group
		}
		ids[i] = dedup.NewID(group, f.P.Dedup)
		o := sh.Duplicates.Recall(s.recent, s.incarnation, now, ids[i])
		f.result = queues.SendResult{ID: o.ID, Sequence: o.Sequence, Duplicate: o.Found}
	}
	here := map[dedup.ID]queues.SendResult{}
	for i := range fs {
		f := &fs[i]
		if f.result.Duplicate {
			continue
		}
		if r, ok := here[ids[i]]; ok {
			f.result = r
			f.result.Duplicate = true
			continue
		}
		if f.Sequence = s.next; !f.dated {
			f.Sent = now
		}
		s.next++
		f.result = queues.SendResult{ID: f.P.ID, Sequence: f.Sequence}
		here[ids[i]] = f.result
		sh.archive(t, s, f)
		sh.Duplicates.Note(s.recent, s.incarnation, now, ids[i], accepted.Original{ID: f.P.ID, Sequence: f.Sequence})
	}
	if len(here) > 0 {
		sh.Batch.Set(streamKey(sh.ID, s.incarnation), binary.BigEndian.AppendUint64(nil, s.next))
	}
}

// behind reports that a message of a FIFO topic must wait for earlier ones that
// are still being spread.
func (sh *Shard) behind(t arn.ARN) bool { return t.FIFO() && sh.spreading[t] > 0 }
