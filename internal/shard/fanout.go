package shard

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/topic"
)

// A fan-out step is one commit. The first is made by the publish itself. Where
// a topic has more matching subscriptions than fit, or many that do not keep up,
// the publication is kept with a cursor, and the steps that follow are made in
// the background.
const (
	fanoutStep  = 512     // subscriptions
	laterStep   = 128     // of a step in the background, which others wait for
	fanoutBytes = 1 << 20 // of messages
	passedMost  = 4096    // subscriptions that a step passes over
)

// Those that do not keep up get a standard topic's messages later if they are
// many: what they cost must not delay the others.
const (
	slowDepth = 4  // messages that wait for an endpoint, or are under way to it
	slowMost  = 64 // such subscriptions that get a publication with the others
	laterMost = 64 // publications of a topic that go on in the background; with more, its publishers make the steps
)

// slow reports that a subscriber does not keep up with what is published. Queues do.
func (sh *topicShard) slow(sub *topic.Subscription) bool {
	if sub.Protocol == topic.SQS {
		return false
	}
	qs := sh.backlogOf(sub)
	return qs != nil && qs.machine.Len() >= slowDepth
}

// applyBackpressure makes steps in the place of the background for a standard topic
// of which too much goes on there: its publishers are to be no quicker than the steps.
// The lock is open in between.
func (sh *topicShard) applyBackpressure(tx *Tx, t arn.ARN) {
	for more := true; more && !t.FIFO() && sh.spreading[t] >= laterMost; {
		tx.yield(func() { more = sh.fanoutOnce() })
	}
}

// deferFanout has those get publications later for whom there is no place in the
// plan, as part of the command that carries it out.
func (sh *topicShard) deferFanout(fs []fanout, p plan) {
	for _, d := range p.deliveries {
		if d.f.later {
			d.f.first = binary.AppendUvarint(d.f.first, d.sub.Incarnation)
		}
	}
	for i := range fs {
		if f := &fs[i]; f.later {
			n := sh.addFanout(f.topic)
			sh.batch.Set(fanoutKey(sh.id, n), f.encode())
			sh.batch.Set(firstKey(sh.id, n), f.first)
			sh.reached[n] = f.reached
		}
	}
}

// pendingFanout is a publication that is still being spread.
type pendingFanout struct {
	n     uint64 // its number, in its key
	topic arn.ARN
}

// addFanout lines up the next publication to be spread, and returns its number.
func (sh *topicShard) addFanout(t arn.ARN) uint64 {
	sh.nextFan++
	sh.fanouts = append(sh.fanouts, pendingFanout{n: sh.nextFan, topic: t})
	sh.spreading[t]++
	return sh.nextFan
}

// fanoutDone takes the oldest publication out of the line.
func (sh *topicShard) fanoutDone() {
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
func (sh *topicShard) spread(f *fanout, most int, first map[uint64]struct{}) (more bool) {
	now, n, passed, size := sh.now(), 0, 0, 0
	for sub := range sh.topics.Match(f.topic, f.cursor, f.message(), nil) {
		if n == most || passed == passedMost || size > fanoutBytes {
			return true
		}
		f.cursor = sub.ID()
		_, has := first[sub.Incarnation]
		if has || sub.Incarnation > f.incarnation || !sub.Wants(f.sequence) {
			passed++ // or it subscribed after the publish, or has a replay for that
			continue
		}
		f.reached.Add(sub)
		size += sh.spreadTo(f, sub, now)
		n++
	}
	return false
}

// startFanouts goes on with fan-outs in the background, one step at a time, the
// oldest first, once a group is durable.
func (sh *topicShard) startFanouts(behind *journal.Commit) {
	if sh.fanning || len(sh.fanouts) == 0 {
		return
	}
	sh.fanning = true
	sh.engine.inSteps(func() bool {
		behind.Wait()
		runtime.Gosched() // who waits for the lock goes first
		return sh.fanoutOnce()
	})
}

// fanoutOnce makes one step of the oldest fan-out; false when there is none.
func (sh *topicShard) fanoutOnce() (more bool) {
	sh.view(func() { more = sh.stepFanout() })
	return more
}

func (sh *topicShard) stepFanout() bool {
	if len(sh.fanouts) == 0 || sh.closed {
		sh.fanning = false
		return false
	}
	number := sh.fanouts[0].n
	key := fanoutKey(sh.id, number)
	sh.readable()
	value, ok, err := sh.engine.store.Get(nil, key)
	if err == nil && !ok {
		err = fmt.Errorf("a publication that is being spread has no record")
	}
	var f *fanout
	if err == nil {
		f, err = decodeFanout(value)
	}
	if err != nil {
		sh.engine.fatal(err)
		return false
	}
	reached, known := sh.reached[number] // not of a fan-out that a restart interrupted
	f.reached = reached
	first, err := sh.firstOf(number)
	if err != nil {
		sh.engine.fatal(err)
		return false
	}
	if sh.spread(f, laterStep, first) {
		sh.batch.Set(key, f.encode())
		if known {
			sh.reached[number] = f.reached
		}
		sh.commit(false)
		return true
	}
	sh.batch.Delete(key)
	if first != nil {
		sh.batch.SingleDelete(firstKey(sh.id, number))
	}
	sh.fanoutDone()
	delete(sh.reached, number)
	sh.commit(false)
	if p := sh.publishedEvent(f, known); p != nil && known {
		p.Later = true
		sh.emit(&publishedEvent{sh.engine.options.Published, p})
	}
	return true
}

func fanoutPrefix(shard uint16) []byte { return keyspace.Shard(shard, keyspace.Fanouts) }

func fanoutKey(shard uint16, n uint64) []byte {
	return binary.BigEndian.AppendUint64(fanoutPrefix(shard), n)
}

// firstKey is where the incarnations stand of those subscriptions that got a
// publication with the publish, if the others are not just those behind a cursor.
func firstKey(shard uint16, n uint64) []byte {
	return binary.BigEndian.AppendUint64(keyspace.Shard(shard, keyspace.Delivered), n)
}

// firstOf reads the subscriptions that got a publication with the publish; nil if
// that was not noted.
func (sh *topicShard) firstOf(n uint64) (map[uint64]struct{}, error) {
	value, ok, err := sh.engine.store.Get(nil, firstKey(sh.id, n))
	if err != nil || !ok {
		return nil, err
	}
	return decodeIncarnations(value)
}

// encode writes the fan-out as a message's record behind what that has no
// place for.
func (f *fanout) encode() []byte {
	buf := appendText(nil, f.cursor)
	buf = binary.AppendUvarint(buf, f.incarnation)
	buf = binary.AppendUvarint(buf, uint64(len(f.p.Bodies)))
	for _, protocol := range slices.Sorted(maps.Keys(f.p.Bodies)) {
		buf = appendText(appendText(buf, protocol), f.p.Bodies[protocol])
	}
	m := f.stored()
	return m.AppendRecord(buf)
}

func decodeFanout(p []byte) (*fanout, error) {
	f := &fanout{}
	var ok bool
	if f.cursor, p, ok = takeText(p); !ok {
		return nil, message.ErrCorrupt
	}
	var w int
	if f.incarnation, w = binary.Uvarint(p); w <= 0 {
		return nil, message.ErrCorrupt
	}
	p = p[w:]
	n, w := binary.Uvarint(p)
	if w <= 0 {
		return nil, message.ErrCorrupt
	}
	p = p[w:]
	for range n {
		var protocol, body string
		if protocol, p, ok = takeText(p); !ok {
			return nil, message.ErrCorrupt
		}
		if body, p, ok = takeText(p); !ok {
			return nil, message.ErrCorrupt
		}
		if f.p.Bodies == nil {
			f.p.Bodies = map[string]string{}
		}
		f.p.Bodies[protocol] = body
	}
	m, err := message.DecodeRecord(p)
	if err != nil {
		return nil, err
	}
	if m.Notice == nil {
		return nil, message.ErrCorrupt
	}
	f.topic, err = arn.Parse(m.Notice.Topic)
	f.signature, f.sent, f.sequence = m.Notice.SignatureVersion, m.Sent, m.Notice.Sequence
	f.p.ID, f.p.Sender, f.p.Subject, f.p.Trace = m.ID, m.Sender, m.Notice.Subject, m.Trace
	f.p.Group, f.p.Dedup = m.Group, m.Dedup
	f.p.Attributes, f.p.Body = m.Attributes, m.Body
	return f, err
}

// loadFanouts finds the publications that were being spread when the process before ended.
func (sh *topicShard) loadFanouts() error {
	var failed error
	err := each(sh.engine.store, keyspace.Prefix(fanoutPrefix(sh.id)), func(key, value []byte) bool {
		var f *fanout
		if f, failed = decodeFanout(value); failed == nil {
			sh.nextFan = binary.BigEndian.Uint64(key[3:]) - 1
			sh.addFanout(f.topic)
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// decodeIncarnations reads the subscriptions that got a publication already.
func decodeIncarnations(value []byte) (map[uint64]struct{}, error) {
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
