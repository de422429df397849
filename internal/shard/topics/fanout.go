package topics

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"runtime"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/topics/publication"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/topic"
)

// A fan-out step is one commit. The first is made by the publish itself. Where
// a topic has more matching subscriptions than fit, or many that do not keep up,
// the publication is kept with a cursor, and the steps that follow are made in
// the background.
const (
	fanoutStep   = 512     // subscriptions
	deferredStep = 128     // of a step in the background, which others wait for
	fanoutBytes  = 1 << 20 // of messages
	maxPassed    = 4096    // subscriptions that a step passes over
)

// Those that do not keep up get a standard topic's messages later if they are
// many: what they cost must not delay the others.
const (
	slowDepth   = 4  // messages that wait for an endpoint, or are under way to it
	maxSlow     = 64 // such subscriptions that get a publication with the others
	maxDeferred = 64 // publications of a topic that continue in the background; with more, its publishers make the steps
)

// slow reports that a subscriber does not keep up with what is published. Queues do.
func (sh *Shard) slow(sub *topic.Subscription) bool {
	if sub.Protocol == topic.SQS {
		return false
	}
	qs := sh.BacklogOf(sub)
	return qs != nil && qs.Machine.Len() >= slowDepth
}

// applyBackpressure makes steps in the place of the background for a standard topic
// which has too much under way: its publishers are to be no quicker than the steps.
// The lock is open in between.
func (sh *Shard) applyBackpressure(tx *kernel.Tx, t arn.ARN) {
	for more := true; more && !t.FIFO() && sh.spreading[t] >= maxDeferred; {
		tx.Yield(func() { more = sh.fanoutOnce() })
	}
}

// deferFanout leaves the subscriptions for which the plan has no room to the
// background, as part of the command that carries the plan out.
func (sh *Shard) deferFanout(fs []fanout, p plan) {
	for _, d := range p.deliveries {
		if d.f.later {
			d.f.alreadyDelivered = binary.AppendUvarint(d.f.alreadyDelivered, d.sub.Incarnation)
		}
	}
	for i := range fs {
		if f := &fs[i]; f.later {
			n := sh.addFanout(f.Topic)
			sh.Batch.Set(fanoutKey(sh.ID, n), f.Encode())
			sh.Batch.Set(alreadyDeliveredKey(sh.ID, n), f.alreadyDelivered)
			sh.reached[n] = f.reached
		}
	}
}

// pendingFanout is a publication that is still being spread.
type pendingFanout struct {
	n      uint64 // its number, in its key
	topic  arn.ARN
	opened *publication.Publication // once it has been decrypted; only of the oldest
}

// addFanout enqueues a publication for further fan-out steps, and returns its number.
func (sh *Shard) addFanout(t arn.ARN) uint64 {
	sh.nextFan++
	sh.fanouts = append(sh.fanouts, pendingFanout{n: sh.nextFan, topic: t})
	sh.spreading[t]++
	return sh.nextFan
}

// fanoutDone dequeues the oldest publication.
func (sh *Shard) fanoutDone() {
	t := sh.fanouts[0].topic
	sh.fanouts = sh.fanouts[1:]
	if sh.spreading[t]--; sh.spreading[t] == 0 {
		delete(sh.spreading, t)
	}
	sh.resumeReplays()
}

// spread makes one step of a fan-out: it puts the message into up to most of the
// backlogs behind the cursor, but for those of first, which have it, and moves
// the cursor. more says that there are others.
func (sh *Shard) spread(f *fanout, most int, first map[uint64]struct{}) (more bool) {
	now, n, passed, size := sh.Now(), 0, 0, 0
	for sub := range sh.Topics.Match(f.Topic, f.Cursor, f.Message(), nil) {
		if n == most || passed == maxPassed || size > fanoutBytes {
			return true
		}
		f.Cursor = sub.ID()
		_, has := first[sub.Incarnation]
		if has || sub.Incarnation > f.Incarnation || !sub.Wants(f.Sequence) {
			passed++ // or it subscribed after the publish, or has a replay for that
			continue
		}
		f.reached.Add(sub)
		size += sh.spreadTo(f, sub, now)
		n++
	}
	return false
}

// startFanouts continues with fan-outs in the background, one step at a time, the
// oldest first, once a group is durable.
func (sh *Shard) startFanouts(behind *journal.Commit) {
	if sh.fanning || len(sh.fanouts) == 0 {
		return
	}
	sh.fanning = true
	sh.engine.InSteps(func() bool {
		behind.Wait()
		runtime.Gosched() // those waiting for the lock go first
		return sh.fanoutOnce()
	})
}

// fanoutOnce makes one step of the oldest fan-out; false when there is none.
func (sh *Shard) fanoutOnce() (more bool) {
	var encrypted *fanout
	var number uint64
	sh.View(func() { more, number, encrypted = sh.stepFanout() })
	if encrypted == nil {
		return more
	}
	err := encrypted.Open(sh.engine.OpenWaiting)
	sh.View(func() {
		switch {
		case len(sh.fanouts) == 0 || sh.fanouts[0].n != number || sh.Closed:
		case err != nil:
			sh.endFanout(number, true)
			sh.Commit(false)
		default:
			sh.fanouts[0].opened = &encrypted.P
		}
	})
	if err != nil {
		sh.engine.Logger.Error("a publication cannot be decrypted, and goes to no more subscribers", "topic", encrypted.Topic.String(), "error", err)
	}
	return true
}

// stepFanout makes one step, or gives the publication that has to be decrypted for it.
func (sh *Shard) stepFanout() (more bool, number uint64, encrypted *fanout) {
	if len(sh.fanouts) == 0 || sh.Closed {
		sh.fanning = false
		return false, 0, nil
	}
	number = sh.fanouts[0].n
	key := fanoutKey(sh.ID, number)
	sh.Readable()
	value, ok, err := sh.engine.Store.Get(nil, key)
	if err == nil && !ok {
		err = fmt.Errorf("a publication that is being spread has no record")
	}
	f := new(fanout)
	if err == nil {
		f.Record, err = publication.Decode(value)
	}
	if err != nil {
		sh.engine.Fatal(err)
		return false, 0, nil
	}
	if f.P.Encrypted() {
		if sh.fanouts[0].opened == nil {
			return true, number, f
		}
		f.P = *sh.fanouts[0].opened
	}
	reached, known := sh.reached[number] // not of a fan-out that a restart interrupted
	f.reached = reached
	first, err := sh.readAlreadyDelivered(number)
	if err != nil {
		sh.engine.Fatal(err)
		return false, 0, nil
	}
	if sh.spread(f, deferredStep, first) {
		sh.Batch.Set(key, f.Encode())
		if known {
			sh.reached[number] = f.reached
		}
		sh.Commit(false)
		return true, 0, nil
	}
	sh.endFanout(number, first != nil)
	sh.Commit(false)
	if p := sh.publishedEvent(f, known); p != nil && known {
		p.Later, p.What = true, nil
		sh.Emit(&publishedEvent{sh.engine.options.Published, p})
	}
	return true, 0, nil
}

// endFanout removes the oldest publication, as part of the command under way; delivered
// says that it may have a list of whoever got it already.
func (sh *Shard) endFanout(number uint64, delivered bool) {
	sh.Batch.Delete(fanoutKey(sh.ID, number))
	if delivered {
		sh.Batch.SingleDelete(alreadyDeliveredKey(sh.ID, number))
	}
	sh.fanoutDone()
	delete(sh.reached, number)
}

func fanoutPrefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.Fanouts) }

func fanoutKey(shard uint16, n uint64) []byte {
	return binary.BigEndian.AppendUint64(fanoutPrefix(shard), n)
}

// alreadyDeliveredKey is where the incarnations stand of those subscriptions that got a
// publication with the publish, if the others are not just those behind a cursor.
func alreadyDeliveredKey(shard uint16, n uint64) []byte {
	return binary.BigEndian.AppendUint64(keyspace.Shard(shard, keyspace.Delivered), n)
}

// readAlreadyDelivered reads the subscriptions that got a publication with the publish; nil if
// that was not noted.
func (sh *Shard) readAlreadyDelivered(n uint64) (map[uint64]struct{}, error) {
	value, ok, err := sh.engine.Store.Get(nil, alreadyDeliveredKey(sh.ID, n))
	if err != nil || !ok {
		return nil, err
	}
	return DecodeIncarnations(value)
}

// loadFanouts finds the publications that were being spread when the process before ended.
func (sh *Shard) loadFanouts() error {
	var failed error
	err := store.Each(sh.engine.Store, keyspace.Prefix(fanoutPrefix(sh.ID)), func(key, value []byte) bool {
		var f publication.Record
		if f, failed = publication.Decode(value); failed == nil {
			sh.nextFan = binary.BigEndian.Uint64(key[3:]) - 1
			sh.addFanout(f.Topic)
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// DecodeIncarnations reads the subscriptions that got a publication already.
func DecodeIncarnations(value []byte) (map[uint64]struct{}, error) {
	all := map[uint64]struct{}{}
	for len(value) > 0 {
		inc, w := binary.Uvarint(value)
		if w <= 0 {
			return nil, message.ErrCorrupt
		}
		all[inc], value = struct{}{}, value[w:]
	}
	return all, nil
}
