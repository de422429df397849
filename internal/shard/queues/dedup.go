package queues

import (
	"encoding/binary"
	"time"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/store"
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

// ScopeChange is a change of DeduplicationScope, which comes into force later.
type ScopeChange struct {
	At      int64 `json:"at"`                // epoch milliseconds
	ByGroup bool  `json:"byGroup,omitempty"` // the scope in force before it is messageGroup
}

// scopeDelay is how long a change of DeduplicationScope takes to come into force: AWS
// gives an attribute as long as that.
const scopeDelay = int64(60 * time.Second / time.Millisecond)

// dedupByGroup reports whether a message is now told from others of its group only.
func (qs *Queue) dedupByGroup(now int64) bool {
	if c := qs.Record.Scope; c != nil && now-c.At < scopeDelay {
		return c.ByGroup
	}
	return qs.Machine.Config().GroupDedup
}

// dedupOf is the id of a message in the scope of its queue.
func (qs *Queue) dedupOf(now int64, m *message.Message) dedup.ID {
	group := ""
	if qs.dedupByGroup(now) {
		group = m.Group
	}
	return dedup.NewID(group, m.Dedup)
}

// dedupScope is the incarnation that stands for the queue in its records.
func (qs *Queue) dedupScope() layout.Incarnation {
	if first := qs.Record.First; first != 0 {
		return first
	}
	return qs.Incarnation
}

// originals finds the messages that were accepted before, and those of the same
// call. It reads, so it comes before the first change.
func (sh *Shard) originals(qs *Queue, now int64, msgs []Outgoing) func(i int) SendResult {
	if !qs.ARN.FIFO() {
		return func(int) SendResult { return SendResult{} }
	}
	found, ids := make([]SendResult, len(msgs)), make([]dedup.ID, len(msgs))
	for i := range msgs {
		if msgs[i].Message.Dedup != "" {
			ids[i] = qs.dedupOf(now, msgs[i].Message)
			found[i] = sh.Recall(sh.recent(qs, now), qs.dedupScope(), now, ids[i])
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
		here[ids[i]] = SendResult{ID: msgs[i].Message.ID, Sequence: qs.Machine.NextSequence()}
		return SendResult{}
	}
}

// dedupLoad bounds the records of a bucket that are read into its filter. Of a
// bucket with more, from before a restart, every send has to look into the store.
const dedupLoad = 50_000

// recent is what memory knows of what a FIFO queue accepted of late. The first
// call reads it.
func (sh *Shard) recent(qs *Queue, now int64) *dedup.Window {
	if qs.dedup == nil {
		qs.dedup = sh.LoadWindow(qs.dedupScope(), now)
	}
	return qs.dedup
}

// LoadWindow reads what a queue or topic accepted of late.
func (sh *Shard) LoadWindow(life layout.Incarnation, now int64) *dedup.Window {
	sh.Readable()
	w := &dedup.Window{}
	for m := dedup.Minute(now - dedup.Life); m <= dedup.Minute(now); m++ {
		prefix := dedupKey(sh.ID, m, life, dedup.ID{})
		prefix = prefix[:len(prefix)-len(dedup.ID{})]
		n := 0
		err := store.Each(sh.engine.Store, keyspace.Prefix(prefix), func(key, _ []byte) bool {
			if n++; n > dedupLoad {
				w.Unknown(m)
				return false
			}
			w.Add(m, dedup.ID(key[len(prefix):]))
			return true
		})
		if err != nil {
			sh.engine.Fatal(err)
		}
	}
	return w
}

// Original finds the message of a FIFO queue that m is a duplicate of.
func (sh *Shard) Original(qs *Queue, now int64, m *message.Message) SendResult {
	return sh.Recall(sh.recent(qs, now), qs.dedupScope(), now, qs.dedupOf(now, m))
}

// Recall finds what a queue or topic has accepted under an id.
func (sh *Shard) Recall(w *dedup.Window, life layout.Incarnation, now int64, id dedup.ID) SendResult {
	for _, c := range w.Candidates(now, id) {
		if c.Added {
			sh.Readable()
		}
		if r := sh.recallFrom(c.Minute, life, now, id); r.Duplicate {
			return r
		}
	}
	return SendResult{}
}

func (sh *Shard) recallFrom(minute int64, life layout.Incarnation, now int64, id dedup.ID) SendResult {
	value, ok, err := sh.engine.Store.Get(nil, dedupKey(sh.ID, minute, life, id))
	if err != nil {
		sh.engine.Fatal(err)
	}
	if ok && len(value) == DuplicateSize && now-int64(binary.BigEndian.Uint64(value)) < dedup.Life {
		return SendResult{ID: message.ID(value[16:]), Sequence: binary.BigEndian.Uint64(value[8:]), Duplicate: true}
	}
	return SendResult{}
}

// SurelyNew reports that a FIFO queue has not accepted a message before, in
// this command neither. In rare cases it is false for one that is new.
func (sh *Shard) SurelyNew(qs *Queue, now int64, m *message.Message) bool {
	id := qs.dedupOf(now, m)
	for _, c := range sh.recent(qs, now).Candidates(now, id) {
		if c.Added || sh.recallFrom(c.Minute, qs.dedupScope(), now, id).Duplicate {
			return false
		}
	}
	return true
}

// Remember notes what a FIFO queue accepted, as part of the command under way.
func (sh *Shard) Remember(qs *Queue, now int64, m *message.Message, r SendResult) {
	if m.Dedup != "" && qs.ARN.FIFO() {
		sh.Note(sh.recent(qs, now), qs.dedupScope(), now, qs.dedupOf(now, m), r)
	}
}

// DuplicateSize is the size of a record: a time, a sequence and a message id.
const DuplicateSize = 8 + 8 + len(message.ID{})

// Note is the part of remember that queues and topics share. It drops the
// buckets that are over, too.
func (sh *Shard) Note(w *dedup.Window, life layout.Incarnation, now int64, id dedup.ID, r SendResult) {
	value := binary.BigEndian.AppendUint64(make([]byte, 0, DuplicateSize), uint64(now))
	value = binary.BigEndian.AppendUint64(value, r.Sequence)
	sh.Batch.Set(dedupKey(sh.ID, dedup.Minute(now), life, id), append(value, r.ID[:]...))
	w.Add(dedup.Minute(now), id)
	if over := dedup.Minute(now - dedup.Life); over > sh.dedupFrom {
		sh.Batch.DeleteRange(dedupPrefix(sh.ID), binary.BigEndian.AppendUint64(dedupPrefix(sh.ID), uint64(over)))
		sh.dedupFrom = over
	}
}
