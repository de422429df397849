package queues

import (
	"slices"
	"time"

	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/queues/deduplog"
)

// ScopeChange is a change of DeduplicationScope, which takes effect after scopeDelay.
type ScopeChange struct {
	At      int64 `json:"at"`                // epoch milliseconds
	ByGroup bool  `json:"byGroup,omitempty"` // the scope in force before it is messageGroup
}

// scopeDelay is how long a change of DeduplicationScope takes to take effect, in
// milliseconds. Source: SetQueueAttributes in the SQS API reference.
const scopeDelay = int64(60 * time.Second / time.Millisecond)

// dedupByGroup reports whether the DeduplicationScope in effect is messageGroup.
func (qs *Queue) dedupByGroup(now int64) bool {
	if c := qs.Record.Scope; c != nil && now-c.At < scopeDelay {
		return c.ByGroup
	}
	return qs.Machine.Config().GroupDedup
}

// dedupOf is the deduplication id of a message, within the queue's DeduplicationScope.
func (qs *Queue) dedupOf(now int64, m *message.Message) dedup.ID {
	group := ""
	if qs.dedupByGroup(now) {
		group = m.Group
	}
	return dedup.NewID(group, m.Dedup)
}

// dedupScope is the incarnation that identifies the queue in the deduplication log.
func (qs *Queue) dedupScope() layout.Incarnation {
	if first := qs.Record.First; first != 0 {
		return first
	}
	return qs.Incarnation
}

// arriving are the deduplication ids of the messages of a send; all are zero for a standard
// queue.
type arriving struct {
	ids     []dedup.ID // by message; zero: it is not deduplicated. nil: all are zero
	entries []deduplog.Entry
}

// originals finds the messages that were accepted before, and puts their results into found.
// It may flush the journal, so it must precede the command's first change.
func (sh *Shard) originals(qs *Queue, now int64, msgs []SendEntry, found []SendResult) (a arriving) {
	if !qs.ARN.FIFO() {
		return a
	}
	for i := range msgs {
		if msgs[i].Message.Dedup == "" {
			continue
		}
		if a.ids == nil {
			a.ids = make([]dedup.ID, len(msgs))
			a.entries = make([]deduplog.Entry, 0, len(msgs))
		}
		a.ids[i] = qs.dedupOf(now, msgs[i].Message)
		found[i] = original(sh.Duplicates.Recall(sh.recent(qs, now), qs.dedupScope(), now, a.ids[i]))
	}
	return a
}

// earlier is the result of the original of the i-th message, if that is in the same send. A
// send has at most ten messages, so a linear search is fast enough.
func (a *arriving) earlier(i int, results []SendResult) (r SendResult) {
	if a.ids == nil || a.ids[i] == (dedup.ID{}) {
		return r
	}
	if at := slices.Index(a.ids[:i], a.ids[i]); at >= 0 {
		r = results[at]
		r.Duplicate = true
	}
	return r
}

// accepted notes that the i-th message was.
func (a *arriving) accepted(i int, r SendResult) {
	if a.ids != nil && a.ids[i] != (dedup.ID{}) {
		a.entries = append(a.entries, deduplog.Entry{Dedup: a.ids[i], ID: r.ID, Sequence: r.Sequence})
	}
}

// remember records what was accepted, as part of the command that has accepted it.
func (a *arriving) remember(sh *Shard, qs *Queue, now int64) {
	if len(a.entries) > 0 {
		sh.Duplicates.Note(sh.recent(qs, now), qs.dedupScope(), now, a.entries...)
	}
}

// recent is the in-memory filter of the messages that a FIFO queue accepted recently. The first
// call loads it from the store.
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

func original(o deduplog.Original) SendResult {
	return SendResult{ID: o.ID, Sequence: o.Sequence, Duplicate: o.Found}
}

// SurelyNew reports that a FIFO queue has not accepted a message before, nor in this command.
// False positives of the filter make it false for some new messages.
func (sh *Shard) SurelyNew(qs *Queue, now int64, m *message.Message) bool {
	return sh.Duplicates.SurelyNew(sh.recent(qs, now), qs.dedupScope(), now, qs.dedupOf(now, m))
}

// Remember notes a message that a FIFO queue has accepted, as part of the command.
func (sh *Shard) Remember(qs *Queue, now int64, m *message.Message, r SendResult) {
	if m.Dedup != "" && qs.ARN.FIFO() {
		sh.Duplicates.Note(sh.recent(qs, now), qs.dedupScope(), now, deduplog.Entry{Dedup: qs.dedupOf(now, m), ID: r.ID, Sequence: r.Sequence})
	}
}
