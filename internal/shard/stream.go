package shard

import (
	"cmp"
	"encoding/binary"
	"fmt"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/topic"
)

// stream is what a shard keeps of a FIFO topic beside its record: the messages
// have sequences, and each deduplication id is accepted once in five minutes.
type stream struct {
	incarnation layout.Incarnation
	next        uint64        // the sequence of the next message
	recent      *dedup.Window // of messages accepted of late; nil: not read yet
	oldest      int64         // when the archive's oldest message was published, in epoch milliseconds; 0: it is empty
}

// stream finds that of a FIFO topic, or begins it.
func (sh *topicShard) stream(t *topic.Topic) *stream {
	inc := layout.Incarnation(t.Incarnation)
	s, ok := sh.streams[inc]
	if !ok {
		s = &stream{incarnation: inc, next: 1}
		sh.streams[inc] = s
	}
	return s
}

func streamPrefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.TopicSequences) }

func streamKey(shard uint16, inc layout.Incarnation) []byte {
	return binary.BigEndian.AppendUint64(streamPrefix(shard), uint64(inc))
}

// loadStreams reads what stands of FIFO topics beside their records.
func (sh *topicShard) loadStreams() error {
	var failed error
	err := each(sh.engine.store, keyspace.Prefix(streamPrefix(sh.id)), func(key, value []byte) bool {
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
func (sh *topicShard) dropStream(t *topic.Topic) {
	inc := layout.Incarnation(t.Incarnation)
	if _, ok := sh.streams[inc]; ok {
		delete(sh.streams, inc)
		sh.batch.Delete(streamKey(sh.id, inc))
	}
}

// admit accepts messages, as part of the command that spreads them: those of a
// FIFO topic get their sequences, unless they are duplicates, which are spread
// no further. Nothing has been written by the command yet.
func (sh *topicShard) admit(fs []fanout) {
	if len(fs) == 0 {
		return
	}
	t, ok := sh.topics.Topic(fs[0].topic)
	if !ok || !t.ARN.FIFO() {
		for i := range fs {
			fs[i].result = SendResult{ID: fs[i].p.ID}
		}
		return
	}
	s, now := sh.stream(t), sh.now()
	if s.recent == nil {
		s.recent = sh.loadWindow(s.incarnation, now)
	}
	ids := make([]dedup.ID, len(fs))
	for i := range fs {
		f := &fs[i]
		group := ""
		if t.GroupDedup() {
			group = f.p.Group
		}
		ids[i] = dedup.NewID(group, f.p.Dedup)
		f.result = sh.recall(s.recent, s.incarnation, now, ids[i])
	}
	here := map[dedup.ID]SendResult{}
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
		f.sent, f.sequence = now, s.next
		s.next++
		f.result = SendResult{ID: f.p.ID, Sequence: f.sequence}
		here[ids[i]] = f.result
		sh.archive(t, s, f)
		sh.note(s.recent, s.incarnation, now, ids[i], f.result)
	}
	if len(here) > 0 {
		sh.batch.Set(streamKey(sh.id, s.incarnation), binary.BigEndian.AppendUint64(nil, s.next))
	}
}

// behind reports that a message of a FIFO topic must wait for earlier ones that
// are still being spread.
func (sh *topicShard) behind(t arn.ARN) bool { return t.FIFO() && sh.spreading[t] > 0 }
