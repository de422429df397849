package queues

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
	"godwit.dev/godwit/internal/store"
)

// deletionCooldown is how long after its deletion a queue cannot be created again, in
// milliseconds. Source: CreateQueue in the SQS API reference.
const deletionCooldown = int64(60 * time.Second / time.Millisecond)

// QueueSpec describes a queue to be created. Attributes has only what the request names, in
// the form of attribute.Canonical.
type QueueSpec struct {
	ARN        arn.ARN
	Attributes map[string]string
	Tags       map[string]string
}

// QueueRecord is what is stored about a queue, as JSON behind a version byte.
type QueueRecord struct {
	Incarnation layout.Incarnation `json:"incarnation"`
	Attributes  map[string]string  `json:"attributes,omitempty"`
	Tags        map[string]string  `json:"tags,omitempty"`
	Created     int64              `json:"created"`  // epoch milliseconds
	Modified    int64              `json:"modified"` // epoch milliseconds
	// Purged is when the queue was last purged; Former are its incarnations before, the
	// latest last.
	Purged int64                `json:"purged,omitempty"` // epoch milliseconds
	Former []layout.Incarnation `json:"former,omitempty"`
	// First is the incarnation of the queue in the deduplication log, if that is not its
	// own: older versions kept the first one across purges.
	First layout.Incarnation `json:"first,omitempty"`
	// Origin is the first of the queue's sequence numbers; 0: the value that older versions
	// used for all queues.
	Origin uint64 `json:"origin,omitempty"`
	// Scope is a change of DeduplicationScope that may not be in force yet.
	Scope *ScopeChange `json:"scope,omitempty"`
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

// Put writes the record of a queue.
func (r *QueueRecord) Put(b *mutation.Batch, shard uint16, a arn.ARN) {
	b.Set(catalogKey(shard, a), r.encode())
}

func (r *QueueRecord) encode() []byte { return keyspace.EncodeJSON(queueRecordVersion, r) }

// writeQueue writes the record of a queue, as part of the command.
func (sh *Shard) writeQueue(qs *Queue) { qs.Record.Put(&sh.Batch, sh.ID, qs.ARN) }

// CreateQueue creates a queue. It is idempotent: an existing queue whose attributes have the
// values that the request names is left as it is. Errors: QueueNameExists;
// QueueDeletedRecently within 60 s of a deletion, with Options.Cooldowns; OverLimit,
// InsufficientStorage, and those of attribute.Check.
func (q *Queues) CreateQueue(ctx context.Context, spec QueueSpec) error {
	if _, err := queuepolicy.Parse(spec.Attributes[attribute.Policy]); err != nil {
		return err
	}
	err := q.WithCatalog(ctx, spec.ARN, func(sh *Shard) error {
		if qs, ok := sh.Queue(spec.ARN); ok {
			return sameQueue(qs.Record, spec)
		}
		now := sh.Now()
		if at, ok := sh.deletions[spec.ARN]; ok {
			if q.options.Cooldowns && now-at < deletionCooldown {
				return ErrDeletedRecently
			}
			delete(sh.deletions, spec.ARN)
		}
		if q.Full() {
			return kernel.ErrFull
		}
		if err := attribute.Check(spec.ARN, spec.Attributes); err != nil {
			return err
		}
		cfg, err := attribute.Config(spec.Attributes)
		if err != nil {
			return err
		}
		if err := q.Accounts.Of(spec.ARN.Account).AddQueue(); err != nil {
			return err
		}
		incarnation := sh.NextIncarnation()
		qs := sh.addQueue(spec.ARN.Own(), &QueueRecord{
			Incarnation: layout.Incarnation(incarnation),
			Origin:      message.NewOrigin(spec.ARN.String(), incarnation),
			Attributes:  compactClone(spec.Attributes), Tags: compactClone(spec.Tags), Created: now, Modified: now,
		}, cfg)
		sh.writeQueue(qs)
		return nil
	})
	return q.EmitCreation(spec.ARN, err)
}

// compactClone copies a map that is kept for long, so that it has no spare capacity, and its
// strings do not keep the request in memory.
func compactClone(m map[string]string) map[string]string {
	if len(m) == 0 {
		return nil
	}
	kept := make(map[string]string, len(m))
	for k, v := range m {
		kept[strings.Clone(k)] = strings.Clone(v)
	}
	return kept
}

// addQueue adds a queue without messages, as part of the command.
func (sh *Shard) addQueue(a arn.ARN, r *QueueRecord, cfg queue.Config) *Queue {
	qs, _ := sh.queueOf(a, r, cfg)
	sh.loaded[a] = qs
	sh.linkDeadLetter(a, arn.ARN{}, cfg.DeadLetter)
	sh.Touch(qs)
	return qs
}

// sameQueue compares an existing queue with a request to create it.
func sameQueue(r *QueueRecord, spec QueueSpec) error {
	for _, name := range slices.Sorted(maps.Keys(spec.Attributes)) {
		have, ok := r.Attributes[name]
		if !ok {
			have, _ = attribute.Default(name)
		}
		if have != spec.Attributes[name] {
			return ErrNameTaken.With(name)
		}
	}
	return nil
}

// DeleteQueue deletes a queue and all its messages in constant time. Errors:
// QueueDoesNotExist.
func (q *Queues) DeleteQueue(ctx context.Context, a arn.ARN) error {
	return q.WithCatalog(ctx, a, func(sh *Shard) error {
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		sh.Drop(qs)
		sh.linkDeadLetter(a, qs.Machine.Config().DeadLetter, arn.ARN{})
		q.Hooks.Deleted(a)
		q.Accounts.Of(a.Account).DropQueue()
		sh.Batch.Delete(catalogKey(sh.ID, a))
		delete(sh.loaded, a)
		now := sh.Now()
		if sh.deletions == nil {
			sh.deletions = map[arn.ARN]int64{}
		}
		for old, at := range sh.deletions {
			if now-at >= deletionCooldown {
				delete(sh.deletions, old)
			}
		}
		sh.deletions[a] = now
		sh.EmitMessages(qs, QueueDeleted, now, 0)
		return nil
	})
}

// Drop removes all records of a queue or backlog.
func (sh *Shard) Drop(qs *Queue) {
	span := qs.Machine.Keys().All()
	sh.Batch.DeleteRange(span.Lower, span.Upper)
	sh.Batch.Delete(qs.Machine.Keys().Counters())
	qs.Gone, qs.Topic = true, nil // stale pointers to the Queue must not keep the topic in memory
	sh.failWaiters(qs, ErrNoQueue)
	sh.Duplicates.Forget(qs.dedup)
	sh.Touch(qs)
}

// Counts first expires leases, by now in epoch milliseconds, and then counts the messages of a
// queue or backlog in each state, as part of the command.
func (sh *Shard) Counts(qs *Queue, now int64) queue.Counts {
	r, _ := sh.doUntouched(qs, now, queue.Count{})
	if sh.Batch.Len() > 0 {
		sh.Touch(qs)
	}
	return r.Counts
}

// QueueInfo describes a queue. Errors: QueueDoesNotExist.
func (q *Queues) QueueInfo(ctx context.Context, a arn.ARN) (info QueueInfo, err error) {
	var counted *journal.Commit
	err = q.ReadCatalog(ctx, a, func(sh *Shard) error {
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		now := sh.Now()
		counts := sh.Counts(qs, now)
		info = QueueInfo{
			ARN: a, Attributes: maps.Clone(qs.Record.Attributes), Tags: maps.Clone(qs.Record.Tags),
			Created: clock.Time(qs.Record.Created), Modified: clock.Time(qs.Record.Modified),
			Counts: counts,
		}
		counted = sh.Stream.Last()
		return nil
	})
	counted.Wait()
	return info, err
}

// QueueConfig is the configuration of a queue, for the checks before a send: it is cached and
// mostly takes no lock. Errors: QueueDoesNotExist, and those of injected faults.
func (q *Queues) QueueConfig(ctx context.Context, a arn.ARN) (queue.Config, error) {
	if err := ctx.Err(); err != nil {
		return queue.Config{}, err
	}
	sh := q.ShardOf(a)
	if c := sh.cachedConfig.Load(); c != nil && c.generation == sh.Generation.Load() && c.queue == a {
		return c.config, q.Injected(a)
	}
	c := &cachedConfig{}
	err := sh.RunDurable(func(tx *kernel.Tx) error {
		qs, err := sh.Lookup(a)
		if err == nil {
			*c = cachedConfig{queue: qs.ARN, generation: sh.Generation.Load(), config: qs.Machine.Config()}
		}
		tx.DependOn(sh.LastCatalogCommit)
		return err
	})
	if err == nil {
		sh.cachedConfig.Store(c)
	}
	return c.config, err
}

// cachedConfig is the configuration of the queue that was looked up last. It is valid while
// the catalog has the generation, which is durable. It spares a send one lock of the shard.
type cachedConfig struct {
	queue      arn.ARN
	generation uint64
	config     queue.Config
}

// SetQueueAttributes changes attributes of a queue; the empty string removes
// one. Errors: QueueDoesNotExist, and those of the attributes.
func (q *Queues) SetQueueAttributes(ctx context.Context, a arn.ARN, set map[string]string) error {
	return q.WithCatalog(ctx, a, func(sh *Shard) error {
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		merged := maps.Clone(qs.Record.Attributes)
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
		compiled := qs.Policy
		if doc, named := set[attribute.Policy]; named {
			if compiled, err = queuepolicy.Parse(doc); err != nil {
				return err
			}
		}
		record := *qs.Record
		record.Attributes, record.Modified = merged, sh.Now()
		if cfg.GroupDedup != qs.Machine.Config().GroupDedup {
			record.Scope = &ScopeChange{At: record.Modified, ByGroup: qs.dedupByGroup(record.Modified)}
		}
		qs.Record, qs.Policy = &record, compiled
		sh.linkDeadLetter(a, qs.Machine.Config().DeadLetter, cfg.DeadLetter)
		if _, err := sh.Do(qs, record.Modified, queue.Configure{Config: cfg}); err != nil {
			return err
		}
		sh.writeQueue(qs)
		return nil
	})
}

// ListQueues lists the names of an account's queues in a region that begin with prefix, in
// ascending order: up to limit of those after the name after. more says that others follow.
func (q *Queues) ListQueues(ctx context.Context, region, account, prefix, after string, limit int) (names []string, more bool, err error) {
	if err := ctx.Err(); err != nil {
		return nil, false, err
	}
	err = q.MergeNames(func(id uint16) []byte { return catalogPrefix(id, account, region) }, prefix, after, func(name string, _ []byte) bool {
		if len(names) == limit {
			more = true
			return false
		}
		names = append(names, name)
		return true
	})
	return names, more, err
}

// DecodeQueueRecord reads the record of a queue. It fails as keyspace.DecodeJSON.
func DecodeQueueRecord(value []byte) (*QueueRecord, error) {
	r := &QueueRecord{}
	return r, keyspace.DecodeJSON(queueRecordVersion, value, r)
}

// SetCreationWatcher sets a function that is called with each queue, function and alias that is
// created, since an event source mapping may wait for it. It must return quickly.
func (q *Queues) SetCreationWatcher(created func(arn.ARN)) { q.creationWatcher.Store(&created) }

// EmitCreation calls the creation watcher unless err, which it returns, is an error.
func (q *Queues) EmitCreation(a arn.ARN, err error) error {
	if created := q.creationWatcher.Load(); created != nil && err == nil {
		(*created)(a)
	}
	return err
}

// Ended reports that the queue, or the topic of the backlog's subscription, was deleted.
func (qs *Queue) Ended() bool { return qs.Gone || qs.Topic != nil && qs.Topic.Gone() }

// ForgetBacklog drops a backlog from memory; false if it is not in memory.
func (sh *Shard) ForgetBacklog(inc layout.Incarnation) bool {
	qs, ok := sh.Backlogs[inc]
	if ok {
		sh.setTimer(qs, 0)
		delete(sh.Backlogs, inc)
		qs.Gone, qs.Topic = true, nil
		qs.count()
	}
	return ok
}

func (sh *Shard) loadQueues() error {
	prefix := catalogPrefix(sh.ID, "", "")[:3]
	return store.EachOf(sh.module.Store, keyspace.KindQueue, keyspace.Prefix(prefix), func(k *keyspace.Key, value []byte) error {
		account, region, name := k.Named()
		a := arn.Queue(region, account, name)
		record, err := DecodeQueueRecord(value)
		if err != nil {
			return err
		}
		cfg, err := attribute.Config(record.Attributes)
		if err != nil {
			return err
		}
		qs, policyRead := sh.queueOf(a, record, cfg)
		if !policyRead {
			sh.module.Logger.Warn("a queue's policy cannot be read; it denies all deliveries of topics until it is set anew", "queue", a.String())
		}
		sh.linkDeadLetter(a, arn.ARN{}, cfg.DeadLetter)
		sh.module.Accounts.Of(a.Account).LoadQueue()
		if err := sh.LoadMachine(qs); err != nil {
			return err
		}
		if qs.Machine.Hibernate() {
			sh.keepParked(qs, value)
		} else {
			sh.loaded[a] = qs
		}
		return nil
	})
}

// LoadMachine loads the counters and leases of a queue. It fails if there are no counters or
// the store cannot be read.
func (sh *Shard) LoadMachine(qs *Queue) error {
	value, ok := sh.Counters[qs.Incarnation]
	if !ok {
		return fmt.Errorf("%s has no counters", qs.ARN)
	}
	delete(sh.Counters, qs.Incarnation)
	corrected, err := qs.Machine.Load((*atomicReader)(sh), value, sh.LatestTime())
	if corrected {
		sh.inconsistent(qs)
	}
	qs.count()
	return err
}

// Loaded are the queues that are not parked, in the order of their incarnations: all that
// have messages, and some of those without.
func (sh *Shard) Loaded() []*Queue { return InOrder(maps.Values(sh.loaded)) }

// InOrder sorts queues by incarnation, so that each start resumes them in the same order.
func InOrder(all iter.Seq[*Queue]) []*Queue {
	return slices.SortedFunc(all, func(a, b *Queue) int { return cmp.Compare(a.Incarnation, b.Incarnation) })
}

// ByIncarnation finds a queue or backlog; nil: there is none, or the queue is parked.
func (sh *Shard) ByIncarnation(inc layout.Incarnation) *Queue {
	if qs, ok := sh.Backlogs[inc]; ok {
		return qs
	}
	for _, qs := range sh.loaded {
		if qs.Incarnation == inc {
			return qs
		}
	}
	return nil
}
