package shard

import (
	"encoding/binary"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// A FIFO queue or topic remembers what it accepted for five minutes, whatever
// becomes of the messages. The records of all of a shard stand in common buckets
// of a minute, which go as one range.

// dedupKey is the key of what a queue or topic accepted in a minute under an id.
func dedupKey(shard uint16, minute int64, inc layout.Incarnation, id dedup.ID) []byte {
	key := binary.BigEndian.AppendUint64(dedupPrefix(shard), uint64(minute))
	key = binary.BigEndian.AppendUint64(key, uint64(inc))
	return append(key, id[:]...)
}

func dedupPrefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.Duplicates) }

// dedupOf is the id of a message in the scope of its queue.
func (qs *queueState) dedupOf(m *message.Message) dedup.ID {
	group := ""
	if qs.machine.Config().GroupDedup {
		group = m.Group
	}
	return dedup.NewID(group, m.Dedup)
}

// life is the incarnation that stands for the queue in its records.
func (qs *queueState) life() layout.Incarnation {
	if first := qs.record.First; first != 0 {
		return first
	}
	return qs.incarnation
}

// originals finds the messages that were accepted before, and those of the same
// call. It reads, so it comes before the first change.
func (sh *queueShard) originals(qs *queueState, now int64, msgs []Outgoing) func(i int) SendResult {
	if !qs.arn.FIFO() {
		return func(int) SendResult { return SendResult{} }
	}
	found, ids := make([]SendResult, len(msgs)), make([]dedup.ID, len(msgs))
	for i := range msgs {
		if msgs[i].Message.Dedup != "" {
			ids[i] = qs.dedupOf(msgs[i].Message)
			found[i] = sh.recall(sh.recent(qs, now), qs.life(), now, ids[i])
		}
	}
	here := map[dedup.ID]SendResult{}
	return func(i int) SendResult {
		if found[i].Duplicate || msgs[i].Message.Dedup == "" {
			return found[i]
		}
		if r, ok := here[ids[i]]; ok {
			r.Duplicate = true
			return r
		}
		here[ids[i]] = SendResult{ID: msgs[i].Message.ID, Sequence: qs.machine.NextSequence()}
		return SendResult{}
	}
}

// dedupLoad bounds the records of a bucket that are read into its filter. Of a
// bucket with more, from before a restart, every send has to look into the store.
const dedupLoad = 50_000

// recent is what memory knows of what a FIFO queue accepted of late. The first
// call reads it.
func (sh *queueShard) recent(qs *queueState, now int64) *dedup.Window {
	if qs.dedup == nil {
		qs.dedup = sh.loadWindow(qs.life(), now)
	}
	return qs.dedup
}

// loadWindow reads what a queue or topic accepted of late.
func (sh *queueShard) loadWindow(life layout.Incarnation, now int64) *dedup.Window {
	sh.readable()
	w := &dedup.Window{}
	for m := dedup.Minute(now - dedup.Life); m <= dedup.Minute(now); m++ {
		prefix := dedupKey(sh.id, m, life, dedup.ID{})
		prefix = prefix[:len(prefix)-len(dedup.ID{})]
		n := 0
		err := each(sh.engine.store, keyspace.Prefix(prefix), func(key, _ []byte) bool {
			if n++; n > dedupLoad {
				w.Unknown(m)
				return false
			}
			w.Add(m, dedup.ID(key[len(prefix):]))
			return true
		})
		if err != nil {
			sh.engine.fatal(err)
		}
	}
	return w
}

// original finds the message of a FIFO queue that m is a duplicate of.
func (sh *queueShard) original(qs *queueState, now int64, m *message.Message) SendResult {
	return sh.recall(sh.recent(qs, now), qs.life(), now, qs.dedupOf(m))
}

// recall finds what a queue or topic has accepted under an id.
func (sh *queueShard) recall(w *dedup.Window, life layout.Incarnation, now int64, id dedup.ID) SendResult {
	for _, c := range w.Candidates(now, id) {
		if c.Added {
			sh.readable()
		}
		if r := sh.recallFrom(c.Minute, life, now, id); r.Duplicate {
			return r
		}
	}
	return SendResult{}
}

func (sh *queueShard) recallFrom(minute int64, life layout.Incarnation, now int64, id dedup.ID) SendResult {
	value, ok, err := sh.engine.store.Get(nil, dedupKey(sh.id, minute, life, id))
	if err != nil {
		sh.engine.fatal(err)
	}
	if ok && len(value) == duplicateSize && now-int64(binary.BigEndian.Uint64(value)) < dedup.Life {
		return SendResult{ID: message.ID(value[16:]), Sequence: binary.BigEndian.Uint64(value[8:]), Duplicate: true}
	}
	return SendResult{}
}

// surelyNew reports that a FIFO queue has not accepted a message before, in
// this command neither. In rare cases it is false for one that is new.
func (sh *queueShard) surelyNew(qs *queueState, now int64, m *message.Message) bool {
	id := qs.dedupOf(m)
	for _, c := range sh.recent(qs, now).Candidates(now, id) {
		if c.Added || sh.recallFrom(c.Minute, qs.life(), now, id).Duplicate {
			return false
		}
	}
	return true
}

// remember notes what a FIFO queue accepted, as part of the command under way.
func (sh *queueShard) remember(qs *queueState, now int64, m *message.Message, r SendResult) {
	if m.Dedup != "" && qs.arn.FIFO() {
		sh.note(sh.recent(qs, now), qs.life(), now, qs.dedupOf(m), r)
	}
}

// duplicateSize is the size of a record: a time, a sequence and a message id.
const duplicateSize = 8 + 8 + len(message.ID{})

// note is the part of remember that queues and topics share. It drops the
// buckets that are over, too.
func (sh *queueShard) note(w *dedup.Window, life layout.Incarnation, now int64, id dedup.ID, r SendResult) {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, duplicateSize), uint64(now))
	value = binary.BigEndian.AppendUint64(value, r.Sequence)
	sh.batch.Set(dedupKey(sh.id, dedup.Minute(now), life, id), append(value, r.ID[:]...))
	w.Add(dedup.Minute(now), id)
	if over := dedup.Minute(now - dedup.Life); over > sh.dedupFrom {
		sh.batch.DeleteRange(dedupPrefix(sh.id), binary.BigEndian.AppendUint64(dedupPrefix(sh.id), uint64(over)))
		sh.dedupFrom = over
	}
}
