package shard

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
	"godwit.dev/godwit/internal/topic"
)

// The deletion of a topic is one small commit, however many subscriptions it has:
// its record, those of its subscriptions as one range, and a mark. Nothing of the
// topic is found from then on, and its backlogs stand still. What these take in
// memory and in the store is given back in the background, a bounded step at a
// time, and the mark goes with the last of it. A start that finds the mark goes on
// with what has counters and no owner: no incarnation is given out twice, so that
// nothing of a topic that was created since is among that.

const (
	remainsStep = 512 // backlogs that one step drops
	eraseFew    = 64  // keys that are removed one by one
)

// remains are the backlogs of a topic that was deleted.
type remains struct {
	topic  *topic.Topic // nil: all is known
	all    []uint64     // their incarnations, in ascending order
	stored bool         // each has records; else those that are in memory

	next  int  // those before it are gone from memory
	run   int  // those before it are gone from the store, those from it on are consecutive ones
	holds bool // the store has some of these
}

// remainsKey is that of the mark, which tells the shard's latest incarnation when
// a topic was deleted last.
func remainsKey(shard uint16) []byte { return keyspace.Shard(shard, keyspace.DeletedTopics) }

// leaveRemains has the backlogs of a topic dropped that the command under way
// deletes.
func (sh *topicShard) leaveRemains(t *topic.Topic) {
	if !t.HasBacklogs() {
		return
	}
	sh.batch.Set(remainsKey(sh.id), binary.BigEndian.AppendUint64(nil, sh.meta.Incarnation))
	sh.targets = map[*topic.Subscription]target{} // which would keep them in memory
	sh.remains = append(sh.remains, &remains{topic: t})
	sh.reclaim()
}

// loadRemains finds what a process before left of deleted topics: of the counters
// those that nobody has claimed.
func (sh *topicShard) loadRemains() error {
	counters := sh.counters
	sh.counters = nil

	value, marked, err := sh.engine.store.Get(nil, remainsKey(sh.id))
	if err != nil {
		return err
	}
	latest, r := uint64(0), &remains{stored: true}
	if marked {
		if len(value) != 8 {
			return fmt.Errorf("the mark of deleted topics is unreadable: %q", value)
		}
		latest = binary.BigEndian.Uint64(value)
		sh.remains = append(sh.remains, r)
	}
	for _, inc := range slices.Sorted(maps.Keys(counters)) {
		if uint64(inc) > latest {
			return fmt.Errorf("%d queues have counters but nobody owns them", len(counters)-len(r.all))
		}
		r.all = append(r.all, uint64(inc))
	}
	return nil
}

// reclaim drops what is left of deleted topics in the background, one step at a
// time.
func (sh *topicShard) reclaim() {
	if sh.reclaiming || len(sh.remains) == 0 {
		return
	}
	sh.reclaiming = true
	sh.engine.inSteps(sh.reclaimOnce)
}

// reclaimOnce makes a step, and returns when it is durable: so the disk paces it;
// false when nothing is left.
func (sh *topicShard) reclaimOnce() bool {
	var r *remains
	sh.view(func() {
		if len(sh.remains) == 0 || sh.closed {
			sh.reclaiming = false
			return
		}
		r = sh.remains[0]
	})
	if r == nil {
		return false
	}

	// Nobody changes any more what is read without the lock.
	if r.topic != nil {
		r.all, r.topic = r.topic.Backlogs(), nil
		sh.engine.journal.Flush()
	}
	var runs []run
	sh.view(func() { runs = sh.forgetRemains(r) })
	var b mutation.Batch
	if err := sh.engine.eraseRuns(&b, sh.id, runs); err != nil {
		sh.engine.fatal(err)
		return false
	}

	_ = sh.runDurable(func(*Tx) error {
		sh.batch.Append(&b)
		if r.next == len(r.all) {
			sh.remains[0] = nil
			if sh.remains = sh.remains[1:]; len(sh.remains) == 0 {
				sh.batch.Delete(remainsKey(sh.id))
			}
		}
		return nil
	})
	return true
}

// forgetRemains gives back what the next backlogs take in memory, and returns the
// runs that end there.
func (sh *topicShard) forgetRemains(r *remains) (runs []run) {
	for end := min(r.next+remainsStep, len(r.all)); r.next < end; r.next++ {
		inc := r.all[r.next]
		if sh.forgetBacklog(layout.Incarnation(inc)) || r.stored {
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

// run is a run of incarnations that follow each other.
type run struct{ first, last layout.Incarnation }

// eraseRuns removes the records and counters of runs, which are in ascending order.
func (e *topicEngine) eraseRuns(b *mutation.Batch, shard uint16, runs []run) error {
	records, counters := make([]layout.Span, len(runs)), make([]layout.Span, len(runs))
	for i, r := range runs {
		first, last := layout.NewKeys(shard, r.first), layout.NewKeys(shard, r.last)
		records[i] = layout.Span{Lower: first.All().Lower, Upper: last.All().Upper}
		counters[i] = layout.Span{Lower: bytes.Clone(first.Counters()), Upper: keyspace.Prefix(last.Counters()).Upper}
	}
	return cmp.Or(e.erase(b, records), e.erase(b, counters))
}

// erase removes the keys in spans, which are in ascending order. Few go one by one:
// every range that is removed slows down all reads until the store has been
// compacted.
func (e *topicEngine) erase(b *mutation.Batch, spans []layout.Span) error {
	if len(spans) == 0 {
		return nil
	}
	it, err := e.store.Iter(spans[0].Lower, spans[len(spans)-1].Upper)
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

// newDeletedTopicGC adds the module that drops what is left of deleted topics, after
// all modules that have queues.
func newDeletedTopicGC(e *topicEngine) {
	for _, sh := range e.shards {
		sh.add(deletedTopicGC{sh: sh})
	}
}

// deletedTopicGC is the module of a shard.
type deletedTopicGC struct {
	nothing
	sh *topicShard
}

func (m deletedTopicGC) load() error { return m.sh.loadRemains() }
func (m deletedTopicGC) resume()     { m.sh.reclaim() }
