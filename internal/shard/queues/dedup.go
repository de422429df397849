package queues

import (
	"slices"
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

// arriving are the messages of a send to a FIFO queue by what tells duplicates.
type arriving struct {
	ids []dedup.ID // the zero value for those that are none of any; nil: they all are
}

// originals finds the messages that were accepted before, and puts them into found. It
// reads, so it comes before the first change.
func (sh *Shard) originals(qs *Queue, now int64, msgs []Outgoing, found []SendResult) (a arriving) {
	if !qs.ARN.FIFO() {
		return a
	}
	for i := range msgs {
		if msgs[i].Message.Dedup == "" {
			continue
		}
		if a.ids == nil {
			a.ids = make([]dedup.ID, len(msgs))
		}
		a.ids[i] = qs.dedupOf(now, msgs[i].Message)
		found[i] = original(sh.Duplicates.Recall(sh.recent(qs, now), qs.dedupScope(), now, a.ids[i]))
	}
	return a
}

// earlier finds the message of the same send, of which there are few, that the i-th is a
// duplicate of, by the results of those before.
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

// remember notes the i-th message, which was accepted.
func (a *arriving) remember(sh *Shard, qs *Queue, now int64, i int, r SendResult) {
	if a.ids != nil && a.ids[i] != (dedup.ID{}) {
		sh.remember(qs, now, a.ids[i], r)
	}
}

// recent is what memory knows of what a FIFO queue accepted recently. The first
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
		sh.remember(qs, now, qs.dedupOf(now, m), r)
	}
}

func (sh *Shard) remember(qs *Queue, now int64, id dedup.ID, r SendResult) {
	sh.Duplicates.Note(sh.recent(qs, now), qs.dedupScope(), now, id, accepted.Original{ID: r.ID, Sequence: r.Sequence})
}
