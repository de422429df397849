package topics

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/topic"
)

// The deletion of a topic is one small commit, however many subscriptions it has: it deletes
// the topic's record and, as one range, those of its subscriptions, and writes a mark. From
// then on the topic does not exist, and its backlogs are inert. They are garbage-collected in
// the background, in bounded steps, of which the last removes the mark. If the mark exists at a
// start, all backlogs with counters that belong to nothing are collected: incarnations are never
// reused, so that these cannot belong to a topic that was created since.

const (
	// collectStep is how many backlogs one step drops.
	collectStep = 512
	eraseFew    = 64 // keys that are deleted one by one
)

// deletedTopic has the backlogs of a deleted topic.
type deletedTopic struct {
	topic  *topic.Topic // nil: all is complete
	all    []uint64     // the incarnations of the backlogs, in ascending order
	stored bool         // each backlog has records; else only those in memory have

	next  int  // the backlogs before it are released from memory
	run   int  // those before it are erased from the store; those from it on are consecutive
	holds bool // the store has some of the latter
}

// deletedTopicsKey is the key of the mark, whose value is the shard's latest incarnation at the
// latest deletion of a topic.
func deletedTopicsKey(shard uint16) []byte { return keyspace.Shard(shard, keyspace.DeletedTopics) }

// leaveToGC schedules the backlogs of a topic for collection, as part of the command that
// deletes the topic.
func (sh *Shard) leaveToGC(t *topic.Topic) {
	if !t.HasBacklogs() {
		return
	}
	sh.Batch.Set(deletedTopicsKey(sh.ID), binary.BigEndian.AppendUint64(nil, sh.LatestIncarnation()))
	sh.targets = map[*topic.Subscription]target{} // which would keep them in memory
	sh.deletedTopics = append(sh.deletedTopics, &deletedTopic{topic: t})
	sh.reclaim()
}

// loadDeleted finds the backlogs of deleted topics that the last process has not collected:
// those with counters that belong to nothing.
func (sh *Shard) loadDeleted() error {
	counters := sh.OfQueues().Counters
	sh.OfQueues().Counters = nil

	value, marked, err := sh.module.Store.Get(nil, deletedTopicsKey(sh.ID))
	if err != nil {
		return err
	}
	latest, r := uint64(0), &deletedTopic{stored: true}
	if marked {
		if len(value) != 8 {
			return fmt.Errorf("the mark of deleted topics is unreadable: %q", value)
		}
		latest = binary.BigEndian.Uint64(value)
		sh.deletedTopics = append(sh.deletedTopics, r)
	}
	for _, inc := range slices.Sorted(maps.Keys(counters)) {
		if uint64(inc) > latest {
			return fmt.Errorf("%d queues have counters but nobody owns them", len(counters)-len(r.all))
		}
		r.all = append(r.all, uint64(inc))
	}
	return nil
}

// reclaim collects the backlogs of deleted topics in the background, one step at a time.
func (sh *Shard) reclaim() {
	if sh.reclaiming || len(sh.deletedTopics) == 0 {
		return
	}
	sh.reclaiming = true
	sh.module.InSteps(sh.reclaimOnce)
}

// reclaimOnce makes a step, and returns once it is durable, so that the disk paces the steps;
// false when nothing is left.
func (sh *Shard) reclaimOnce() bool {
	var r *deletedTopic
	sh.RunLazy(func() {
		if len(sh.deletedTopics) == 0 || sh.Closed {
			sh.reclaiming = false
			return
		}
		r = sh.deletedTopics[0]
	})
	if r == nil {
		return false
	}

	// The topic is immutable by now, and is read without the lock.
	if r.topic != nil {
		r.all, r.topic = r.topic.Backlogs(), nil
		sh.module.Journal.Flush()
	}
	var runs []run
	sh.RunLazy(func() { runs = sh.forgetBacklogs(r) })
	var b mutation.Batch
	if err := sh.module.eraseRuns(&b, sh.ID, runs); err != nil {
		sh.module.Fatal(err)
		return false
	}

	_ = sh.RunDurable(func(*kernel.Tx) error {
		sh.Batch.Append(&b)
		if r.next == len(r.all) {
			sh.deletedTopics[0] = nil
			if sh.deletedTopics = sh.deletedTopics[1:]; len(sh.deletedTopics) == 0 {
				sh.Batch.Delete(deletedTopicsKey(sh.ID))
			}
		}
		return nil
	})
	return true
}

// forgetBacklogs releases the memory of the next backlogs, and returns the runs that end there.
func (sh *Shard) forgetBacklogs(r *deletedTopic) (runs []run) {
	for end := min(r.next+collectStep, len(r.all)); r.next < end; r.next++ {
		inc := r.all[r.next]
		if sh.ForgetBacklog(layout.Incarnation(inc)) || r.stored {
			r.holds = true
		}
		if next := r.next + 1; next < len(r.all) && r.all[next] == inc+1 {
			continue
		}
		if r.holds {
			runs = append(runs, run{layout.Incarnation(r.all[r.run]), layout.Incarnation(inc)})
		}
		r.run, r.holds = r.next+1, false
	}
	return runs
}

// run is a run of consecutive incarnations.
type run struct{ first, last layout.Incarnation }

// eraseRuns removes the records and counters of runs, which are in ascending order.
func (e *Topics) eraseRuns(b *mutation.Batch, shard uint16, runs []run) error {
	records, counters := make([]layout.Span, len(runs)), make([]layout.Span, len(runs))
	for i, r := range runs {
		first, last := layout.NewKeys(shard, r.first), layout.NewKeys(shard, r.last)
		records[i] = layout.Span{Lower: first.All().Lower, Upper: last.All().Upper}
		counters[i] = layout.Span{Lower: bytes.Clone(first.Counters()), Upper: keyspace.Prefix(last.Counters()).Upper}
	}
	return cmp.Or(e.erase(b, records), e.erase(b, counters))
}

// erase removes the keys in spans, which are in ascending order. Few keys are deleted one by
// one: every range tombstone slows down all reads until it is compacted.
func (e *Topics) erase(b *mutation.Batch, spans []layout.Span) error {
	if len(spans) == 0 {
		return nil
	}
	it, err := e.Store.Iter(spans[0].Lower, spans[len(spans)-1].Upper)
	if err != nil {
		return err
	}
	var few mutation.Batch
	for _, span := range spans {
		few.Reset()
		for more := it.Seek(span.Lower); more && few.Len() <= eraseFew && bytes.Compare(it.Key(), span.Upper) < 0; more = it.Next() {
			few.Delete(it.Key())
		}
		if few.Len() <= eraseFew {
			b.Append(&few)
		} else {
			b.DeleteRange(span.Lower, span.Upper)
		}
	}
	return it.Close()
}

// NewDeletedTopicGC adds the module that collects the backlogs of deleted topics, after all
// modules that have queues.
func NewDeletedTopicGC(e *Topics) {
	for _, sh := range e.Shards {
		sh.Add(deletedTopicGC{sh: sh})
	}
}

// deletedTopicGC is the lifecycle of its part.
type deletedTopicGC struct {
	kernel.NopLifecycle
	sh *Shard
}

func (l deletedTopicGC) Load() error { return l.sh.loadDeleted() }
func (l deletedTopicGC) Resume()     { l.sh.reclaim() }
