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
	FanoutStep   = 512     // subscriptions
	DeferredStep = 128     // of a step in the background, which others wait for
	FanoutBytes  = 1 << 20 // of messages
	PassedMost   = 4096    // subscriptions that a step passes over
)

// Those that do not keep up get a standard topic's messages later if they are
// many: what they cost must not delay the others.
const (
	SlowDepth    = 4  // messages that wait for an endpoint, or are under way to it
	SlowMost     = 64 // such subscriptions that get a publication with the others
	DeferredMost = 64 // publications of a topic that go on in the background; with more, its publishers make the steps
)

// slow reports that a subscriber does not keep up with what is published. Queues do.
func (sh *Shard) slow(sub *topic.Subscription) bool {
	if sub.Protocol == topic.SQS {
		return false
	}
	qs := sh.BacklogOf(sub)
	return qs != nil && qs.Machine.Len() >= SlowDepth
}

// applyBackpressure makes steps in the place of the background for a standard topic
// of which too much goes on there: its publishers are to be no quicker than the steps.
// The lock is open in between.
func (sh *Shard) applyBackpressure(tx *kernel.Tx, t arn.ARN) {
	for more := true; more && !t.FIFO() && sh.Spreading[t] >= DeferredMost; {
		tx.Yield(func() { more = sh.fanoutOnce() })
	}
}

// deferFanout leaves the subscriptions for which the plan has no room to the
// background, as part of the command that carries the plan out.
func (sh *Shard) deferFanout(fs []Fanout, p Plan) {
	for _, d := range p.Deliveries {
		if d.f.Later {
			d.f.alreadyDelivered = binary.AppendUvarint(d.f.alreadyDelivered, d.Sub.Incarnation)
		}
	}
	for i := range fs {
		if f := &fs[i]; f.Later {
			n := sh.addFanout(f.Topic)
			sh.Batch.Set(fanoutKey(sh.ID, n), f.Encode())
			sh.Batch.Set(alreadyDeliveredKey(sh.ID, n), f.alreadyDelivered)
			sh.Reached[n] = f.reached
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
	sh.Fanouts = append(sh.Fanouts, pendingFanout{n: sh.nextFan, topic: t})
	sh.Spreading[t]++
	return sh.nextFan
}

// fanoutDone dequeues the oldest publication.
func (sh *Shard) fanoutDone() {
	t := sh.Fanouts[0].topic
	sh.Fanouts = sh.Fanouts[1:]
	if sh.Spreading[t]--; sh.Spreading[t] == 0 {
		delete(sh.Spreading, t)
	}
	sh.resumeReplays()
}

// Spread makes one step of a fan-out: it puts the message into up to most of the
// backlogs behind the cursor, but for those of first, which have it, and moves
// the cursor. more says that there are others.
func (sh *Shard) Spread(f *Fanout, most int, first map[uint64]struct{}) (more bool) {
	now, n, passed, size := sh.Now(), 0, 0, 0
	for sub := range sh.Topics.Match(f.Topic, f.Cursor, f.Message(), nil) {
		if n == most || passed == PassedMost || size > FanoutBytes {
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

// StartFanouts goes on with fan-outs in the background, one step at a time, the
// oldest first, once a group is durable.
func (sh *Shard) StartFanouts(behind *journal.Commit) {
	if sh.Fanning || len(sh.Fanouts) == 0 {
		return
	}
	sh.Fanning = true
	sh.Engine.InSteps(func() bool {
		behind.Wait()
		runtime.Gosched() // those waiting for the lock go first
		return sh.fanoutOnce()
	})
}

// fanoutOnce makes one step of the oldest fan-out; false when there is none.
func (sh *Shard) fanoutOnce() (more bool) {
	var encrypted *Fanout
	var number uint64
	sh.View(func() { more, number, encrypted = sh.stepFanout() })
	if encrypted == nil {
		return more
	}
	err := encrypted.Open(sh.Engine.OpenWaiting)
	sh.View(func() {
		switch {
		case len(sh.Fanouts) == 0 || sh.Fanouts[0].n != number || sh.Closed:
		case err != nil:
			sh.endFanout(number, true)
			sh.Commit(false)
		default:
			sh.Fanouts[0].opened = &encrypted.P
		}
	})
	if err != nil {
		sh.Engine.Logger.Error("a publication cannot be decrypted, and goes to no more subscribers", "topic", encrypted.Topic.String(), "error", err)
	}
	return true
}

// stepFanout makes one step, or gives the publication that has to be decrypted for it.
func (sh *Shard) stepFanout() (more bool, number uint64, encrypted *Fanout) {
	if len(sh.Fanouts) == 0 || sh.Closed {
		sh.Fanning = false
		return false, 0, nil
	}
	number = sh.Fanouts[0].n
	key := fanoutKey(sh.ID, number)
	sh.Readable()
	value, ok, err := sh.Engine.Store.Get(nil, key)
	if err == nil && !ok {
		err = fmt.Errorf("a publication that is being spread has no record")
	}
	f := new(Fanout)
	if err == nil {
		f.Record, err = publication.Decode(value)
	}
	if err != nil {
		sh.Engine.Fatal(err)
		return false, 0, nil
	}
	if f.P.Encrypted() {
		if sh.Fanouts[0].opened == nil {
			return true, number, f
		}
		f.P = *sh.Fanouts[0].opened
	}
	reached, known := sh.Reached[number] // not of a fan-out that a restart interrupted
	f.reached = reached
	first, err := sh.readAlreadyDelivered(number)
	if err != nil {
		sh.Engine.Fatal(err)
		return false, 0, nil
	}
	if sh.Spread(f, DeferredStep, first) {
		sh.Batch.Set(key, f.Encode())
		if known {
			sh.Reached[number] = f.reached
		}
		sh.Commit(false)
		return true, 0, nil
	}
	sh.endFanout(number, first != nil)
	sh.Commit(false)
	if p := sh.publishedEvent(f, known); p != nil && known {
		p.Later = true
		sh.Emit(&publishedEvent{sh.Engine.Options.Published, p})
	}
	return true, 0, nil
}

// endFanout removes the oldest publication, as part of the command under way; delivered
// says that it may have a list of who got it already.
func (sh *Shard) endFanout(number uint64, delivered bool) {
	sh.Batch.Delete(fanoutKey(sh.ID, number))
	if delivered {
		sh.Batch.SingleDelete(alreadyDeliveredKey(sh.ID, number))
	}
	sh.fanoutDone()
	delete(sh.Reached, number)
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
	value, ok, err := sh.Engine.Store.Get(nil, alreadyDeliveredKey(sh.ID, n))
	if err != nil || !ok {
		return nil, err
	}
	return DecodeIncarnations(value)
}

// loadFanouts finds the publications that were being spread when the process before ended.
func (sh *Shard) loadFanouts() error {
	var failed error
	err := store.Each(sh.Engine.Store, keyspace.Prefix(fanoutPrefix(sh.ID)), func(key, value []byte) bool {
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
