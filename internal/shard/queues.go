package shard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
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

func (sh *queueShard) writeQueue(qs *queueState) error {
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
func (e *queueEngine) CreateQueue(ctx context.Context, spec QueueSpec) error {
	if _, err := parseQueuePolicy(spec.Attributes[attribute.Policy]); err != nil {
		return err
	}
	err := e.withCatalog(ctx, spec.ARN, func(sh *queueShard) error {
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

func (sh *queueShard) newQueue(a arn.ARN, r *queueRecord, cfg queue.Config) *queueState {
	qs := &queueState{shard: sh, arn: a, incarnation: r.Incarnation, record: r}
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
func (e *queueEngine) DeleteQueue(ctx context.Context, a arn.ARN) error {
	return e.withCatalog(ctx, a, func(sh *queueShard) error {
		qs, err := sh.lookup(a)
		if err != nil {
			return err
		}
		sh.drop(qs)
		sh.linkDeadLetter(a, qs.machine.Config().DeadLetter, arn.ARN{})
		e.hooks.deleted(a)
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
func (sh *queueShard) drop(qs *queueState) {
	span := qs.machine.Keys().All()
	sh.batch.DeleteRange(span.Lower, span.Upper)
	sh.batch.Delete(qs.machine.Keys().Counters())
	qs.gone, qs.owner = true, nil // of what is gone some are kept for a while
	sh.refuse(qs, fault.New(fault.QueueDoesNotExist, "The specified queue does not exist."))
	sh.touch(qs)
}

// counts counts the messages of a queue or backlog, after the leases that have
// run out by now, as part of the command under way.
func (sh *queueShard) counts(qs *queueState, now int64) queue.Counts {
	r, _ := sh.ask(qs, now, queue.Count{})
	if sh.batch.Len() > 0 {
		sh.touch(qs)
	}
	return r.Counts
}

// QueueInfo describes a queue. Errors: QueueDoesNotExist.
func (e *queueEngine) QueueInfo(ctx context.Context, a arn.ARN) (info QueueInfo, err error) {
	var counted *journal.Commit
	err = e.withCatalog(ctx, a, func(sh *queueShard) error {
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
func (e *queueEngine) QueueConfig(_ context.Context, a arn.ARN) (queue.Config, error) {
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
func (e *queueEngine) SetQueueAttributes(ctx context.Context, a arn.ARN, set map[string]string) error {
	return e.withCatalog(ctx, a, func(sh *queueShard) error {
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
func (e *queueEngine) ListQueues(_ context.Context, region, account, prefix, after string, limit int) (names []string, more bool, err error) {
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

// SetCreationWatcher has created called with each queue and each function, also one
// with the name of an alias, that is made from now on: a mapping may wait for it. It
// must be quick.
func (e *queueEngine) SetCreationWatcher(created func(arn.ARN)) { e.creationWatcher.Store(&created) }

// tellCreation tells of what was made, if it was.
func (e *queueEngine) tellCreation(a arn.ARN, err error) error {
	if created := e.creationWatcher.Load(); created != nil && err == nil {
		(*created)(a)
	}
	return err
}

// ended reports that the queue is gone, or of what it is the backlog.
func (qs *queueState) ended() bool { return qs.gone || qs.owner != nil && qs.owner.Gone() }

// forgetBacklog gives back what a backlog takes in memory; false if there is none.
func (sh *queueShard) forgetBacklog(inc layout.Incarnation) bool {
	qs, ok := sh.backlogs[inc]
	if ok {
		sh.setTimer(qs, 0)
		delete(sh.backlogs, inc)
		qs.gone, qs.owner = true, nil
	}
	return ok
}

func (sh *queueShard) loadQueues() error {
	var failed error
	prefix := catalogPrefix(sh.id, "", "")[:3]
	err := each(sh.engine.store, keyspace.Prefix(prefix), func(key, value []byte) bool {
		parts := bytes.SplitN(key[3:], []byte{0}, 3)
		if len(parts) != 3 {
			failed = fmt.Errorf("a queue has the unreadable key %q", key)
			return false
		}
		a := arn.Queue(string(parts[1]), string(parts[0]), string(parts[2]))
		var record *queueRecord
		if record, failed = decodeQueueRecord(value); failed != nil {
			return false
		}
		cfg, err := attribute.Config(record.Attributes)
		if err != nil {
			failed = fmt.Errorf("queue %s: %w", a, err)
			return false
		}
		qs := &queueState{shard: sh, arn: a, incarnation: record.Incarnation, record: record}
		qs.loadPolicy(sh.engine)
		qs.machine = *queue.New(layout.NewKeys(sh.id, record.Incarnation), cfg, queue.Kind{FIFO: a.FIFO()})
		sh.queues[a] = qs
		sh.linkDeadLetter(a, arn.ARN{}, cfg.DeadLetter)
		failed = sh.loadMachine(qs)
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// loadMachine sets a machine to its counters and gives it its leases.
func (sh *queueShard) loadMachine(qs *queueState) error {
	value, ok := sh.counters[qs.incarnation]
	if !ok {
		return fmt.Errorf("%s has no counters", qs.arn)
	}
	delete(sh.counters, qs.incarnation)
	corrected, err := qs.machine.Load((*atOnce)(sh), value, sh.meta.Now)
	if corrected {
		sh.engine.inconsistent(qs)
	}
	return err
}

// loadSecret reads that key. An empty store gets one with shard 0's next
// commit, so that the stream of its commits is complete.
func (e *queueEngine) loadSecret() error {
	key, ok, err := e.store.Get(nil, secretKey)
	if err != nil {
		return err
	}
	if !ok {
		key = make([]byte, handleKeySize)
		if _, err := rand.Read(key); err != nil {
			return err
		}
		e.all[0].batch.Set(secretKey, key)
	}
	e.handles = newHandleSealer(key)
	return nil
}

func (sh *queueShard) byIncarnation(inc layout.Incarnation) *queueState {
	if qs, ok := sh.backlogs[inc]; ok {
		return qs
	}
	for _, qs := range sh.queues {
		if qs.incarnation == inc {
			return qs
		}
	}
	return nil
}

const handleKeySize = 32 // bytes

// secretKey holds the key that receipt handles are authenticated with, among
// the keys of shard 0.
var secretKey = keyspace.Shard(0, keyspace.HandleKey)
