package topics

import (
	"encoding/binary"
	"errors"
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

// A fan-out step is one commit. The publish itself makes the first. If a topic has more
// matching subscriptions than fit into one commit, or many slow ones, the publication is stored
// with a cursor, and further steps are made in the background.
const (
	fanoutStep   = 512     // matching subscriptions of a step
	deferredStep = 128     // the same in the background, where other commands wait for the lock
	fanoutBytes  = 1 << 20 // bytes of messages of a step
	maxPassed    = 4096    // subscriptions that a step skips, as they do not match
)

// Many slow subscriptions of a standard topic get its messages later, so that their cost does
// not delay the others.
const (
	slowDepth   = 4  // messages in a backlog, including leased ones, from which on it is slow
	maxSlow     = 64 // slow subscriptions that get a publication with the others
	maxDeferred = 64 // fan-outs of a topic in the background; from this number on there is backpressure
)

// slow reports that a subscriber does not keep up with the publishes. Queues always keep up.
func (sh *Shard) slow(sub *topic.Subscription) bool {
	if sub.Protocol == topic.SQS {
		return false
	}
	qs := sh.BacklogOf(sub)
	return qs != nil && qs.Machine.Len() >= slowDepth
}

// applyBackpressure makes fan-out steps in the publisher's goroutine while its standard topic
// has maxDeferred fan-outs or more, so that publishers are not faster than the steps. The lock
// is released between steps.
func (sh *Shard) applyBackpressure(tx *kernel.Tx, t arn.ARN) {
	for more := true; more && !t.FIFO() && sh.fanningOut[t] >= maxDeferred; {
		tx.Yield(func() { more = sh.fanoutOnce() })
	}
}

// deferFanout leaves the subscriptions that are not in the plan to the background, as part of
// the command that executes the plan.
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

// pendingFanout is a publication whose fan-out continues in the background.
type pendingFanout struct {
	n      uint64 // its number, in its key
	topic  arn.ARN
	opened *publication.Publication // the decrypted publication; only of the oldest
}

// addFanout enqueues a publication for further fan-out steps, and returns its number.
func (sh *Shard) addFanout(t arn.ARN) uint64 {
	sh.nextFan++
	sh.fanouts = append(sh.fanouts, pendingFanout{n: sh.nextFan, topic: t})
	sh.fanningOut[t]++
	return sh.nextFan
}

// fanoutDone dequeues the oldest publication.
func (sh *Shard) fanoutDone() {
	t := sh.fanouts[0].topic
	sh.fanouts = sh.fanouts[1:]
	if sh.fanningOut[t]--; sh.fanningOut[t] == 0 {
		delete(sh.fanningOut, t)
	}
	sh.resumeReplays()
}

// enqueueStep makes one step of a fan-out: it puts the message into the backlogs of up to limit
// matching subscriptions after the cursor, and advances the cursor. It skips the subscriptions
// in alreadyDelivered. more says that there are others.
func (sh *Shard) enqueueStep(f *fanout, limit int, alreadyDelivered map[uint64]struct{}) (more bool) {
	now, n, passed, size := sh.Now(), 0, 0, 0
	for sub := range sh.Topics.Match(f.Topic, f.Cursor, f.Message()) {
		if n == limit || passed == maxPassed || size > fanoutBytes {
			return true
		}
		f.Cursor = sub.ID()
		_, has := alreadyDelivered[sub.Incarnation]
		if has || sub.Incarnation > f.Incarnation || !sub.Wants(f.Sequence) {
			passed++ // or it subscribed after the publish, or its replay delivers the message
			continue
		}
		f.reached.Add(sub)
		size += sh.enqueueFor(f, sub, now)
		n++
	}
	return false
}

// startFanouts continues fan-outs in the background, one step at a time, the oldest first, once
// the commit behind is durable.
func (sh *Shard) startFanouts(behind *journal.Commit) {
	if sh.fanning || len(sh.fanouts) == 0 {
		return
	}
	sh.fanning = true
	sh.module.InSteps(func() bool {
		behind.Wait()
		runtime.Gosched() // commands that wait for the lock go first
		return sh.fanoutOnce()
	})
}

// fanoutOnce makes one step of the oldest fan-out; false when there is none.
func (sh *Shard) fanoutOnce() (more bool) {
	var encrypted *fanout
	var number uint64
	sh.RunLazy(func() { more, number, encrypted = sh.stepFanout() })
	if encrypted == nil {
		return more
	}
	err := encrypted.Open(sh.module.OpenWaiting)
	sh.RunLazy(func() {
		switch {
		case len(sh.fanouts) == 0 || sh.fanouts[0].n != number || sh.Closed:
		case err != nil:
			sh.endFanout(number, true)
			sh.Append(journal.Lazy)
		default:
			sh.fanouts[0].opened = &encrypted.P
		}
	})
	if err != nil {
		sh.module.Logger.Error("a publication cannot be decrypted, and goes to no more subscribers", "topic", encrypted.Topic.String(), "error", err)
	}
	return true
}

// stepFanout makes one step, or returns the publication that must be decrypted for it.
func (sh *Shard) stepFanout() (more bool, number uint64, encrypted *fanout) {
	if len(sh.fanouts) == 0 || sh.Closed {
		sh.fanning = false
		return false, 0, nil
	}
	number = sh.fanouts[0].n
	key := fanoutKey(sh.ID, number)
	sh.FlushAppended()
	value, ok, err := sh.module.Store.Get(nil, key)
	if err == nil && !ok {
		err = errors.New("a publication that is being fanned out has no record")
	}
	f := new(fanout)
	if err == nil {
		f.Record, err = publication.Decode(value)
	}
	if err != nil {
		sh.module.Fatal(err)
		return false, 0, nil
	}
	if f.P.Encrypted() {
		if sh.fanouts[0].opened == nil {
			return true, number, f
		}
		f.P = *sh.fanouts[0].opened
	}
	reached, known := sh.reached[number] // not known of a fan-out that a restart interrupted
	f.reached = reached
	alreadyDelivered, err := sh.readAlreadyDelivered(number)
	if err != nil {
		sh.module.Fatal(err)
		return false, 0, nil
	}
	if sh.enqueueStep(f, deferredStep, alreadyDelivered) {
		sh.Batch.Set(key, f.Encode())
		if known {
			sh.reached[number] = f.reached
		}
		sh.Append(journal.Lazy)
		return true, 0, nil
	}
	sh.endFanout(number, alreadyDelivered != nil)
	sh.Append(journal.Lazy)
	if p := sh.publishedEvent(f, known); p != nil && known {
		p.Later, p.What = true, nil
		sh.Emit(&publishedEvent{sh.module.options.Published, p})
	}
	return true, 0, nil
}

// endFanout removes the oldest publication, as part of the current command; delivered says that
// it may have a list of the subscriptions that got it with the publish.
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

// alreadyDeliveredKey is the key of the list of subscriptions (by incarnation) that got a
// publication with the publish itself, if the cursor alone does not say it.
func alreadyDeliveredKey(shard uint16, n uint64) []byte {
	return binary.BigEndian.AppendUint64(keyspace.Shard(shard, keyspace.Delivered), n)
}

// readAlreadyDelivered reads the subscriptions that got a publication with the publish; nil if
// there is no such list.
func (sh *Shard) readAlreadyDelivered(n uint64) (map[uint64]struct{}, error) {
	value, ok, err := sh.module.Store.Get(nil, alreadyDeliveredKey(sh.ID, n))
	if err != nil || !ok {
		return nil, err
	}
	return DecodeIncarnations(value)
}

// loadFanouts finds the fan-outs that the last process has not finished.
func (sh *Shard) loadFanouts() error {
	return store.EachOf(sh.module.Store, keyspace.KindFanout, keyspace.Prefix(fanoutPrefix(sh.ID)), func(k *keyspace.Key, value []byte) error {
		f, err := publication.Decode(value)
		if err != nil {
			return err
		}
		n, _ := k.Number(keyspace.PartCount)
		sh.nextFan = n - 1
		sh.addFanout(f.Topic)
		return nil
	})
}

// DecodeIncarnations reads the list of subscriptions that got a publication already.
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
