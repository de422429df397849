package shard

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/store"
)

// load reads the state: what exists, counters and leases, but no messages. It
// then takes over: each shard gets a new epoch, transfers that a crash
// interrupted are settled, and deliveries that were under way are due again.
func (e *Engine) load() error {
	for _, sh := range e.shards {
		if err := sh.load(); err != nil {
			if s, ok := e.store.(store.Damaged); ok {
				err = errors.Join(err, s.DamageIn(nil, nil))
			}
			return fmt.Errorf("shard %d: %w", sh.id, err)
		}
	}
	if err := e.loadedWhole(); err != nil {
		return err
	}
	if err := e.loadSecret(); err != nil {
		return err
	}
	for _, sh := range e.shards {
		sh.view(func() {
			sh.meta.Epoch++
			sh.now()
		})
	}
	e.beginEpoch().Wait()
	for _, sh := range e.shards {
		if err := e.settleTransfers(sh); err != nil {
			return err
		}
	}
	for _, sh := range e.shards {
		sh.resume()
	}
	return nil
}

const handleKeySize = 32 // bytes

// loadedWhole fails if damage in the store hides some of what was loaded, but for
// what belongs to single queues: to go on would be to take queues, topics and
// functions for deleted, and to give numbers twice.
func (e *Engine) loadedWhole() error {
	s, ok := e.store.(store.Damaged)
	if !ok {
		return nil
	}
	for _, sh := range e.shards {
		data := keyspace.Prefix(keyspace.Shard(sh.id, keyspace.Data))
		all := keyspace.Prefix([]byte{byte(sh.id >> 8), byte(sh.id)})
		if err := errorsFirst(s.DamageIn(all.Lower, data.Lower), s.DamageIn(data.Upper, all.Upper)); err != nil {
			return fmt.Errorf("records that tell which queues, topics and functions there are cannot be read: %w", err)
		}
	}
	return nil
}

// secretKey holds the key that receipt handles are authenticated with, among
// the keys of shard 0.
var secretKey = keyspace.Shard(0, keyspace.HandleKey)

// loadSecret reads that key. An empty store gets one with shard 0's next
// commit, so that the stream of its commits is complete.
func (e *Engine) loadSecret() error {
	key, ok, err := e.store.Get(nil, secretKey)
	if err != nil {
		return err
	}
	if !ok {
		key = make([]byte, handleKeySize)
		if _, err := rand.Read(key); err != nil {
			return err
		}
		e.shards[0].batch.Set(secretKey, key)
	}
	e.handles = newHandleSealer(key)
	return nil
}

// beginEpoch makes the shards' new epochs durable before anything is answered.
func (e *Engine) beginEpoch() *journal.Commit {
	var g *journal.Commit
	for _, sh := range e.shards {
		_, _ = sh.run(false, func(*Tx) error {
			g = e.journal.Append(sh.id == Shards-1, sh.seal())
			sh.appended(g)
			return nil
		})
	}
	return g
}

func (sh *shard) load() error {
	s := sh.engine.store
	var err error
	if sh.log, sh.meta, err = sh.engine.journal.Stream(sh.id, sh.count); err != nil {
		return err
	}
	counters := map[layout.Incarnation][]byte{}
	err = each(s, layout.AllCounters(sh.id), func(key, value []byte) bool {
		counters[layout.CountersIncarnation(key)] = bytes.Clone(value)
		return true
	})
	if err != nil {
		return err
	}
	if err := sh.loadQueues(counters); err != nil {
		return err
	}
	if err := sh.loadMoves(); err != nil {
		return err
	}
	if err := sh.loadTopics(counters); err != nil {
		return err
	}
	if err := sh.loadMappings(); err != nil {
		return err
	}
	if err := errorsFirst(sh.loadFunctions(), sh.loadEvents(counters)); err != nil {
		return err
	}
	if err := sh.loadRemains(counters); err != nil {
		return err
	}
	sh.accepted = map[transferID]struct{}{}
	err = each(s, keyspace.Prefix(transferPrefix(sh.id)), func(key, _ []byte) bool {
		sh.accepted[decodeTransferKey(key)] = struct{}{}
		return true
	})
	if err != nil {
		return err
	}
	if err := errorsFirst(sh.loadStreams(), sh.loadArchives()); err != nil {
		return err
	}
	var failed error
	err = each(s, keyspace.Prefix(fanoutPrefix(sh.id)), func(key, value []byte) bool {
		var f *fanout
		if f, failed = decodeFanout(value); failed == nil {
			sh.nextFan = binary.BigEndian.Uint64(key[3:]) - 1
			sh.addFanout(f.topic)
		}
		return failed == nil
	})
	return errorsFirst(failed, err, sh.loadReplays())
}

func (sh *shard) loadQueues(counters map[layout.Incarnation][]byte) error {
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
		qs := &queueState{arn: a, incarnation: record.Incarnation, record: record}
		qs.loadPolicy(sh.engine)
		qs.machine = *queue.New(layout.NewKeys(sh.id, record.Incarnation), cfg, queue.Kind{FIFO: a.FIFO()})
		sh.queues[a] = qs
		sh.linkDeadLetter(a, arn.ARN{}, cfg.DeadLetter)
		failed = sh.loadMachine(qs, counters)
		return failed == nil
	})
	return errorsFirst(failed, err)
}

func (sh *shard) loadTopics(counters map[layout.Incarnation][]byte) error {
	for _, tag := range [...]byte{keyspace.Topics, keyspace.Subscriptions} {
		var failed error
		err := each(sh.engine.store, keyspace.Prefix(keyspace.Shard(sh.id, tag)), func(key, value []byte) bool {
			failed = sh.topics.Load(key, value)
			return failed == nil
		})
		if err := errorsFirst(failed, err); err != nil {
			return err
		}
	}
	if err := sh.topics.Loaded(); err != nil {
		return err
	}
	for sub := range sh.topics.AllDeliverable() {
		if _, ok := counters[layout.Incarnation(sub.Incarnation)]; ok {
			if err := sh.loadMachine(sh.openBacklog(sub), counters); err != nil {
				return err
			}
		}
	}
	return nil
}

// loadMachine sets a machine to its counters and gives it its leases.
func (sh *shard) loadMachine(qs *queueState, counters map[layout.Incarnation][]byte) error {
	value, ok := counters[qs.incarnation]
	if !ok {
		return fmt.Errorf("%s has no counters", qs.arn)
	}
	delete(counters, qs.incarnation)
	corrected, err := qs.machine.Load((*atOnce)(sh), value, sh.meta.Now)
	if corrected {
		sh.engine.inconsistent(qs)
	}
	return err
}

// settleTransfers removes at their sources the messages that this shard took in
// before a crash, and then the marks that say so, in one commit.
func (e *Engine) settleTransfers(to *shard) error {
	for id := range to.accepted {
		if int(id.shard) >= Shards {
			return fmt.Errorf("shard %d took a message from the unknown shard %d", to.id, id.shard)
		}
		from := e.shards[id.shard]
		value, _, err := e.store.Get(nil, id.key(to.id))
		if err != nil {
			return err
		}
		lane := layout.MainLane
		if len(value) == 8 {
			lane = layout.Lane(binary.BigEndian.Uint64(value))
		}
		_, _ = runAll(true, func(*Tx) error {
			if qs := from.byIncarnation(id.incarnation); qs != nil {
				from.countMove(qs, id.sequence)
				// Gone is as good as removed.
				_, _ = from.do(qs, from.now(), queue.Remove{Lane: lane, Sequence: id.sequence})
			}
			to.batch.SingleDelete(id.key(to.id))
			return nil
		}, from, to)
	}
	to.accepted = nil
	return nil
}

func (sh *shard) byIncarnation(inc layout.Incarnation) *queueState {
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

// resume goes on where the process before left off.
func (sh *shard) resume() {
	sh.view(sh.resumeAll)
}

func (sh *shard) resumeAll() {
	for _, qs := range sh.backlogs {
		// Whether these attempts reached anybody is unknown: they are made again.
		for _, l := range qs.machine.Leases() {
			_, _ = sh.do(qs, sh.now(), queue.Return{Lease: l, Due: sh.now(), Uncounted: true})
			sh.commitMuch()
		}
		if !qs.machine.Empty() {
			sh.touch(qs)
			sh.commitMuch()
		}
	}
	for _, qs := range sh.queues {
		moves := slices.DeleteFunc(qs.machine.Leases(), func(l queue.Lease) bool { return !l.Moving || l.Task })
		if len(moves) > 0 {
			sh.moveLater(qs, moves)
		}
		if !qs.machine.Empty() {
			sh.touch(qs)
			sh.commitMuch()
		}
	}
	sh.commit(false)
	sh.resumeMoves()
	sh.startFanouts(nil)
	sh.resumeReplays()
	sh.reclaim()
	sh.arm() // also for subscriptions that nobody has confirmed
}
