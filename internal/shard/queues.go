package shard

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/queue/layout"
)

// deletionCooldown is how long after its deletion a queue cannot be created again.
const deletionCooldown = int64(60 * time.Second / time.Millisecond)

// QueueSpec describes a queue to be created: only what the request names, in
// canonical form.
type QueueSpec struct {
	ARN        arn.ARN
	Attributes map[string]string
	Tags       map[string]string
}

// queueRecord is what is stored about a queue, as JSON behind a version byte.
type queueRecord struct {
	Incarnation layout.Incarnation `json:"incarnation"`
	Attributes  map[string]string  `json:"attributes,omitempty"`
	Tags        map[string]string  `json:"tags,omitempty"`
	Created     int64              `json:"created"`  // epoch milliseconds
	Modified    int64              `json:"modified"` // epoch milliseconds
	// Purged is when the queue was last purged, and Former are the incarnations
	// that purges ended, the latest last.
	Purged int64                `json:"purged,omitempty"` // epoch milliseconds
	Former []layout.Incarnation `json:"former,omitempty"`
	// First is the first incarnation of a queue that was purged: deduplication
	// goes on across purges.
	First layout.Incarnation `json:"first,omitempty"`
}

const queueRecordVersion = 1

// catalogKey orders the queues of a shard by account, region and name.
func catalogKey(shard uint16, a arn.ARN) []byte {
	return append(catalogPrefix(shard, a.Account, a.Region), a.Resource...)
}

func catalogPrefix(shard uint16, account, region string) []byte {
	key := keyspace.Shard(shard, keyspace.Queues)
	key = append(append(key, account...), 0)
	return append(append(key, region...), 0)
}

func (sh *shard) writeQueue(qs *queueState) error {
	value, err := json.Marshal(qs.record)
	if err != nil {
		return err
	}
	sh.batch.Set(catalogKey(sh.id, qs.arn), append([]byte{queueRecordVersion}, value...))
	return nil
}

// CreateQueue creates a queue. A queue of that name with the same values of the
// attributes that the request names is left as it is. Errors: QueueNameExists,
// QueueDeletedRecently, and those of the attributes.
func (e *Engine) CreateQueue(ctx context.Context, spec QueueSpec) error {
	if _, err := parseQueuePolicy(spec.Attributes[attribute.Policy]); err != nil {
		return err
	}
	err := e.withCatalog(ctx, spec.ARN, func(sh *shard) error {
		if qs, ok := sh.queues[spec.ARN]; ok {
			return sameQueue(qs.record, spec)
		}
		now := sh.now()
		if at, ok := sh.deletions[spec.ARN]; ok {
			if e.options.Cooldowns && now-at < deletionCooldown {
				return fault.New(fault.QueueDeletedRecently, "You must wait 60 seconds after deleting a queue before you can create another with the same name.")
			}
			delete(sh.deletions, spec.ARN)
		}
		if e.full() {
			return errFull
		}
		if err := attribute.Check(spec.ARN, spec.Attributes); err != nil {
			return err
		}
		cfg, err := attribute.Config(spec.Attributes)
		if err != nil {
			return err
		}
		sh.meta.Incarnation++
		qs := sh.newQueue(spec.ARN.Own(), &queueRecord{
			Incarnation: layout.Incarnation(sh.meta.Incarnation),
			Attributes:  fitted(spec.Attributes), Tags: fitted(spec.Tags), Created: now, Modified: now,
		}, cfg)
		return sh.writeQueue(qs)
	})
	return e.tellCreation(spec.ARN, err)
}

// fitted copies a map that is to be kept into no more room than it needs.
func fitted(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	kept := make(map[string]string, len(m))
	for k, v := range m {
		kept[strings.Clone(k)] = strings.Clone(v)
	}
	return kept
}

func (sh *shard) newQueue(a arn.ARN, r *queueRecord, cfg queue.Config) *queueState {
	qs := &queueState{arn: a, incarnation: r.Incarnation, record: r}
	qs.loadPolicy(sh.engine)
	qs.machine = *queue.New(layout.NewKeys(sh.id, r.Incarnation), cfg, queue.Kind{FIFO: a.FIFO()})
	sh.queues[a] = qs
	sh.linkDeadLetter(a, arn.ARN{}, cfg.DeadLetter)
	sh.touch(qs)
	return qs
}

// sameQueue compares an existing queue with a request to create it.
func sameQueue(r *queueRecord, spec QueueSpec) error {
	for _, name := range slices.Sorted(maps.Keys(spec.Attributes)) {
		have, ok := r.Attributes[name]
		if !ok {
			have, _ = attribute.Default(name)
		}
		if have != spec.Attributes[name] {
			return fault.Newf(fault.QueueNameExists, "A queue already exists with the same name and a different value for attribute %s", name)
		}
	}
	return nil
}

// DeleteQueue deletes a queue and all its messages, at a cost that does not
// depend on how many there are. Errors: QueueDoesNotExist.
func (e *Engine) DeleteQueue(ctx context.Context, a arn.ARN) error {
	return e.withCatalog(ctx, a, func(sh *shard) error {
		qs, err := sh.lookup(a)
		if err != nil {
			return err
		}
		sh.drop(qs)
		sh.linkDeadLetter(a, qs.machine.Config().DeadLetter, arn.ARN{})
		sh.dropMoves(a)
		sh.batch.Delete(catalogKey(sh.id, a))
		delete(sh.queues, a)
		now := sh.now()
		if sh.deletions == nil {
			sh.deletions = map[arn.ARN]int64{}
		}
		for old, at := range sh.deletions {
			if now-at >= deletionCooldown {
				delete(sh.deletions, old)
			}
		}
		sh.deletions[a] = now
		sh.happened(qs, QueueDeleted, now, 0)
		return nil
	})
}

// drop removes all records of a queue or backlog.
func (sh *shard) drop(qs *queueState) {
	span := qs.machine.Keys().All()
	sh.batch.DeleteRange(span.Lower, span.Upper)
	sh.batch.Delete(qs.machine.Keys().Counters())
	qs.gone, qs.topic = true, nil // of what is gone some are kept for a while
	sh.refuse(qs, fault.New(fault.QueueDoesNotExist, "The specified queue does not exist."))
	sh.touch(qs)
}

// counts counts the messages of a queue or backlog, after the leases that have
// run out by now, as part of the command under way.
func (sh *shard) counts(qs *queueState, now int64) queue.Counts {
	r, _ := sh.ask(qs, now, queue.Count{})
	if sh.batch.Len() > 0 {
		sh.touch(qs)
	}
	return r.Counts
}

// QueueInfo describes a queue. Errors: QueueDoesNotExist.
func (e *Engine) QueueInfo(ctx context.Context, a arn.ARN) (info QueueInfo, err error) {
	var counted *journal.Commit
	err = e.withCatalog(ctx, a, func(sh *shard) error {
		qs, err := sh.lookup(a)
		if err != nil {
			return err
		}
		now := sh.now()
		counts := sh.counts(qs, now)
		sh.commit(false) // leases that ran out are no change of the catalog
		info = QueueInfo{
			ARN: a, Attributes: maps.Clone(qs.record.Attributes), Tags: maps.Clone(qs.record.Tags),
			Created: time.UnixMilli(qs.record.Created).UTC(), Modified: time.UnixMilli(qs.record.Modified).UTC(),
			Counts: counts,
		}
		counted = sh.log.Last()
		return nil
	})
	counted.Wait()
	return info, err
}

// QueueConfig is how a queue behaves: cheap, for checks before a send. Errors:
// QueueDoesNotExist.
func (e *Engine) QueueConfig(_ context.Context, a arn.ARN) (queue.Config, error) {
	sh := e.shardOf(a)
	var cfg queue.Config
	err := sh.runDurable(func(tx *Tx) error {
		qs, err := sh.lookup(a)
		if err == nil {
			cfg = qs.machine.Config()
		}
		tx.restOn(sh.lastCatalogCommit)
		return err
	})
	return cfg, err
}

// SetQueueAttributes changes attributes of a queue; the empty string removes
// one. Errors: QueueDoesNotExist, and those of the attributes.
func (e *Engine) SetQueueAttributes(ctx context.Context, a arn.ARN, set map[string]string) error {
	return e.withCatalog(ctx, a, func(sh *shard) error {
		qs, err := sh.lookup(a)
		if err != nil {
			return err
		}
		merged := maps.Clone(qs.record.Attributes)
		if merged == nil {
			merged = map[string]string{}
		}
		for name, value := range set {
			if value == "" {
				delete(merged, name)
			} else {
				merged[name] = value
			}
		}
		if err := attribute.Check(a, merged); err != nil {
			return err
		}
		cfg, err := attribute.Config(merged)
		if err != nil {
			return err
		}
		compiled := qs.policy
		if doc, named := set[attribute.Policy]; named {
			if compiled, err = parseQueuePolicy(doc); err != nil {
				return err
			}
		}
		record := *qs.record
		record.Attributes, record.Modified = merged, sh.now()
		qs.record, qs.policy = &record, compiled
		sh.linkDeadLetter(a, qs.machine.Config().DeadLetter, cfg.DeadLetter)
		if _, err := sh.do(qs, sh.meta.Now, queue.Configure{Config: cfg}); err != nil {
			return err
		}
		return sh.writeQueue(qs)
	})
}

// ListQueues lists the names of an account's queues in a region that begin with
// prefix, in ascending order, from the first one behind after.
func (e *Engine) ListQueues(_ context.Context, region, account, prefix, after string, limit int) (names []string, more bool, err error) {
	err = e.mergeNames(func(id uint16) []byte { return catalogPrefix(id, account, region) }, prefix, after, func(name string, _ []byte) bool {
		if len(names) == limit {
			more = true
			return false
		}
		names = append(names, name)
		return true
	})
	return names, more, err
}

func decodeQueueRecord(value []byte) (*queueRecord, error) {
	if len(value) == 0 || value[0] != queueRecordVersion {
		return nil, fmt.Errorf("a queue's record has an unknown version; it was written by a newer godwit")
	}
	r := &queueRecord{}
	return r, json.Unmarshal(value[1:], r)
}
