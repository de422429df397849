package queues

import (
	"encoding/binary"
	"fmt"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/shard/queues/queuepolicy"
)

// An empty queue without waiting receives is parked: to save memory, it is kept as its
// encoded record and its next sequence in a packed map, and made a Queue again by the next
// lookup. That needs no read of the store.
//
// A *Queue may be used until the shard's lock is released. After that the queue may have been
// parked, which marks the *Queue as Gone: it has to be looked up again. Leases of its messages
// have ended then.

// emptiedKept is how many empty queues and backlogs of a shard are neither hibernated nor
// parked: those that became empty last, which are likely to be used again.
const emptiedKept = 32

// Queue finds a queue of the shard, which may be used for as long as the shard's lock is
// held.
func (sh *Shard) Queue(a arn.ARN) (qs *Queue, ok bool) {
	if qs, ok = sh.loaded[a]; !ok {
		if qs, ok = sh.unpark(a); !ok {
			return nil, false
		}
	}
	qs.lastCommand = sh.CommandCount
	return qs, true
}

// Use lets a command use a queue that an earlier command has looked up. It returns false if the
// queue has to be looked up again.
func (sh *Shard) Use(qs *Queue) bool {
	qs.lastCommand = sh.CommandCount
	return !qs.Gone
}

// noteEmpty adds a queue to the emptied ones if it is empty, and hibernates those that have
// been empty for longest.
func (sh *Shard) noteEmpty(qs *Queue) {
	if !qs.Machine.Empty() || qs.Emptied || qs.Ended() {
		return
	}
	qs.Emptied = true
	sh.emptied = append(sh.emptied, qs)
	for range 2 { // one added, at most two removed: so a long list shrinks without a long pause
		if len(sh.emptied) <= emptiedKept {
			return
		}
		old := sh.emptied[0]
		sh.emptied = slices.Delete(sh.emptied, 0, 1)
		if old.lastCommand == sh.CommandCount { // this command may use it
			sh.emptied = append(sh.emptied, old)
			continue
		}
		old.Emptied = false
		empty := old.Machine.Hibernate()
		old.forgetDurable()
		if empty && !old.used() {
			sh.park(old)
		}
	}
}

// used reports that an empty queue must not be parked: it has state beyond its record and its
// next sequence, or waiting receives.
func (qs *Queue) used() bool {
	return qs.Backlog || qs.Gone || qs.waiters.first != nil || qs.Dead != nil || qs.dirty
}

// gone is the record of a Queue that was parked.
var gone = &QueueRecord{}

// park parks a queue.
func (sh *Shard) park(qs *Queue) {
	sh.keepParked(qs, qs.Record.encode())
	sh.setTimer(qs, 0) // it may be set for former messages
	delete(sh.loaded, qs.ARN)
	sh.Duplicates.Forget(qs.dedup)
	qs.Gone, qs.Record, qs.Policy, qs.dedup = true, gone, queuepolicy.DenyAll, nil
}

// keepParked adds a queue to the parked ones.
func (sh *Shard) keepParked(qs *Queue, record []byte) {
	value := binary.AppendUvarint(nil, qs.Machine.NextSequence())
	value = binary.AppendUvarint(value, uint64(qs.Record.Created))
	sh.parked.Put(parkedKey(qs.ARN), append(value, record...))
}

// parkedKey is the key of a parked queue.
func parkedKey(a arn.ARN) []byte {
	var backing [128]byte
	key := append(append(backing[:0], a.Account...), 0)
	key = append(append(key, a.Region...), 0)
	return append(key, a.Resource...)
}

// unpark restores a parked queue.
func (sh *Shard) unpark(a arn.ARN) (*Queue, bool) {
	key := parkedKey(a)
	value, ok := sh.parked.Get(key)
	if !ok {
		return nil, false
	}
	next, _, value := parkedParts(value)
	record, err := DecodeQueueRecord(value)
	var cfg queue.Config
	if err == nil {
		cfg, err = attribute.Config(record.Attributes)
	}
	if err != nil { // cannot happen: it was read at the start, or written by this process
		sh.module.Fatal(fmt.Errorf("queue %s: %w", a, err))
		return nil, false
	}
	qs, _ := sh.queueOf(a.Own(), record, cfg)
	qs.Machine.ContinueAt(next)
	qs.lastCommand = sh.CommandCount
	sh.parked.Delete(key)
	sh.loaded[qs.ARN] = qs
	sh.noteEmpty(qs)
	return qs, true
}

// parkedParts decodes a parked queue: the next sequence, when the queue was created, in epoch
// milliseconds, and its encoded record.
func parkedParts(value []byte) (next uint64, created int64, record []byte) {
	next, n := binary.Uvarint(value)
	at, more := binary.Uvarint(value[n:])
	return next, int64(at), value[n+more:]
}

// isParked reports whether a queue is parked, and so empty, and when it was created, in
// epoch milliseconds.
func (sh *Shard) isParked(a arn.ARN) (created int64, ok bool) {
	if _, loaded := sh.loaded[a]; loaded {
		return 0, false
	}
	value, ok := sh.parked.Get(parkedKey(a))
	if ok {
		_, created, _ = parkedParts(value)
	}
	return created, ok
}
