package topics

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/queues/deduplog"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// fifoState is the state of a FIFO topic that is not in its record: sequence numbers,
// deduplication and archive.
type fifoState struct {
	incarnation layout.Incarnation
	next        uint64        // the sequence of the next message
	recent      *dedup.Window // filter of the messages accepted recently; nil: not loaded yet
	oldest      int64         // when the archive's oldest message was published, in epoch milliseconds; 0: it is empty
}

// fifoState finds the state of a FIFO topic, or makes it.
func (sh *Shard) fifoState(t *topic.Topic) *fifoState {
	inc := layout.Incarnation(t.Incarnation)
	s, ok := sh.fifoStates[inc]
	if !ok {
		s = &fifoState{incarnation: inc, next: firstSequence(t.ARN, inc)}
		sh.fifoStates[inc] = s
	}
	return s
}

// The first sequence of a topic is between these, which leaves as many for its messages.
const (
	lowestFirst = 1_000_000_000_000_000_000
	firsts      = 7_000_000_000_000_000_000
)

// firstSequence is the sequence of a topic's first message. It differs between topics, and
// between incarnations of one, so that nobody relies on sequences of different topics being
// comparable.
func firstSequence(t arn.ARN, inc layout.Incarnation) uint64 {
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(t.String()), uint64(inc)))
	return lowestFirst + binary.BigEndian.Uint64(sum[:])%firsts
}

// RenewSequence gives a FIFO topic that has lost its next sequence one that is beyond all that it
// can have given up to now, in epoch milliseconds. Else it would give them again, and what a
// subscription's replay has passed would not be delivered to it. The sequences stay below 1<<63 for
// a century.
func RenewSequence(b *mutation.Batch, shard uint16, t arn.ARN, inc layout.Incarnation, now int64) {
	next := firstSequence(t, inc) + kernel.Unreached(now)
	b.Set(sequenceKey(shard, inc), binary.BigEndian.AppendUint64(nil, next))
}

func sequencePrefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.TopicSequences) }

func sequenceKey(shard uint16, inc layout.Incarnation) []byte {
	return binary.BigEndian.AppendUint64(sequencePrefix(shard), uint64(inc))
}

var errSequence = errors.New("the next sequence of a FIFO topic cannot be read")

// loadFIFOStates reads the states of FIFO topics.
func (sh *Shard) loadFIFOStates() error {
	return store.EachOf(sh.module.Store, keyspace.KindTopicSequence, keyspace.Prefix(sequencePrefix(sh.ID)), func(k *keyspace.Key, value []byte) error {
		if len(value) != 8 {
			return errSequence
		}
		n, _ := k.Number(keyspace.PartIncarnation)
		inc := layout.Incarnation(n)
		sh.fifoStates[inc] = &fifoState{incarnation: inc, next: binary.BigEndian.Uint64(value)}
		return nil
	})
}

// dropFIFOState removes the state of a deleted topic. Its deduplication records expire by
// themselves.
func (sh *Shard) dropFIFOState(t *topic.Topic) {
	inc := layout.Incarnation(t.Incarnation)
	if s, ok := sh.fifoStates[inc]; ok {
		sh.Duplicates.Forget(s.recent)
		delete(sh.fifoStates, inc)
		sh.Batch.Delete(sequenceKey(sh.ID, inc))
	}
}

// admit accepts publications, as part of the command that fans them out, and runs what is joined
// to them. It must precede the command's first write.
func (sh *Shard) admit(fs []fanout) {
	sh.number(fs)
	for i := range fs {
		if j := fs[i].P.Joined; j != nil {
			j.Run()
		}
	}
}

// number gives publications of a FIFO topic their sequences, unless they are duplicates, which
// are not fanned out.
func (sh *Shard) number(fs []fanout) {
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
	s, now := sh.fifoState(t), sh.Now()
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
	here, accepted := map[dedup.ID]queues.SendResult{}, make([]deduplog.Entry, 0, len(fs))
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
		accepted = append(accepted, deduplog.Entry{Dedup: ids[i], ID: f.P.ID, Sequence: f.Sequence})
	}
	if len(accepted) > 0 {
		sh.Duplicates.Note(s.recent, s.incarnation, now, accepted...)
		sh.Batch.Set(sequenceKey(sh.ID, s.incarnation), binary.BigEndian.AppendUint64(nil, s.next))
	}
}

// behind reports that a publication to a FIFO topic must wait for the fan-out of earlier ones.
func (sh *Shard) behind(t arn.ARN) bool { return t.FIFO() && sh.fanningOut[t] > 0 }
