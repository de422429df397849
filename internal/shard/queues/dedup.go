package queues

import (
	"time"

	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/queues/accepted"
)

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
			found[i] = original(sh.Duplicates.Recall(sh.recent(qs, now), qs.dedupScope(), now, ids[i]))
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

// recent is what memory knows of what a FIFO queue accepted of late. The first
// call reads it.
func (sh *Shard) recent(qs *Queue, now int64) *dedup.Window {
	if qs.dedup == nil {
		qs.dedup = sh.Duplicates.Load(qs.dedupScope(), now)
	}
	return qs.dedup
}

// Original finds the message of a FIFO queue that m is a duplicate of.
func (sh *Shard) Original(qs *Queue, now int64, m *message.Message) SendResult {
	return original(sh.Duplicates.Recall(sh.recent(qs, now), qs.dedupScope(), now, qs.dedupOf(now, m)))
}

func original(o accepted.Original) SendResult {
	return SendResult{ID: o.ID, Sequence: o.Sequence, Duplicate: o.Found}
}

// SurelyNew reports that a FIFO queue has not accepted a message before, in
// this command neither. In rare cases it is false for one that is new.
func (sh *Shard) SurelyNew(qs *Queue, now int64, m *message.Message) bool {
	return sh.Duplicates.SurelyNew(sh.recent(qs, now), qs.dedupScope(), now, qs.dedupOf(now, m))
}

// Remember notes what a FIFO queue accepted, as part of the command under way.
func (sh *Shard) Remember(qs *Queue, now int64, m *message.Message, r SendResult) {
	if m.Dedup != "" && qs.ARN.FIFO() {
		sh.Duplicates.Note(sh.recent(qs, now), qs.dedupScope(), now, qs.dedupOf(now, m), accepted.Original{ID: r.ID, Sequence: r.Sequence})
	}
}
