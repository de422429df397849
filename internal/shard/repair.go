package shard

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/queues"
)

// sequenceGap is how far the next sequence of a queue is put behind the last one that
// is known, where the counters are lost: a sequence must not be given twice.
const sequenceGap = 1 << 20

// Repair makes records that others cannot do without and that a damaged store has
// lost. It is shown all records that are left, in the order of their keys.
//
// A message whose record is lost and which is leased or scheduled gets one that
// cannot be read, which is in nobody's way, and goes when its retention is over.
// Messages that nothing leads to can be received again.
type Repair struct {
	out   mutation.Batch
	lost  []string
	shard uint16
	begun bool

	counters    map[layout.Incarnation][]byte
	known       map[layout.Incarnation]bool // seen in counters or data
	meta        *journal.State              // nil: it is lost
	sequence    uint64
	owned       map[layout.Incarnation]bool // a queue, subscription, topic or function has it
	dropping    bool                        // what nobody owns is being dropped anyway
	latest      layout.Incarnation          // of the shard
	now         int64
	queue       *repaired
	incarnation layout.Incarnation
}

// repaired is what is known of one queue.
type repaired struct {
	states     map[uint64]layout.Lane // of messages that are leased, scheduled or returned
	counts     layout.Counters
	head       uint64
	highest    uint64 // sequence of any message
	unreached  []lostState
	hasCounter bool
}

type lostState struct {
	sequence uint64
	sent     int64
}

// NewRepair begins a repair.
func NewRepair() *Repair { return new(Repair) }

// See takes the next record into account.
func (r *Repair) See(key, value []byte) {
	k, err := keyspace.Parse(key)
	if err != nil {
		return
	}
	shard, ok := k.Shard()
	if !ok || key[0] != keyspace.ShardSpace {
		r.endShard()
		return
	}
	if !r.begun || shard != r.shard {
		r.endShard()
		*r = Repair{
			out: r.out, lost: r.lost, shard: shard, begun: true,
			counters: map[layout.Incarnation][]byte{}, known: map[layout.Incarnation]bool{}, owned: map[layout.Incarnation]bool{},
		}
	}
	if n, ok := k.Number(keyspace.PartIncarnation); ok {
		r.latest = max(r.latest, layout.Incarnation(n))
	}
	switch k.ID {
	case keyspace.KindStreamState:
		if m, sequence, ok := journal.DecodeState(value); ok {
			r.meta, r.sequence = &m, sequence
		}
	case keyspace.KindQueue:
		r.seeName(value)
		r.own(value)
	case keyspace.KindSubscription, keyspace.KindTopic, keyspace.KindFunction:
		r.own(value)
	case keyspace.KindDeletedTopics:
		r.dropping = true
	default:
	}
	if k.ID == keyspace.KindCounters {
		r.counters[layout.CountersIncarnation(key)] = bytes.Clone(value)
	}
	if key[2] != keyspace.Data {
		r.endQueue()
		return
	}
	inc := layout.Incarnation(binary.BigEndian.Uint64(key[3:]))
	if r.queue == nil || inc != r.incarnation {
		r.endQueue()
		r.begin(inc)
	}
	r.seeQueue(&k, key, value)
}

func (r *Repair) begin(inc layout.Incarnation) {
	q := &repaired{states: map[uint64]layout.Lane{}}
	if value, ok := r.counters[inc]; ok {
		if c, err := layout.DecodeCounters(value); err == nil {
			q.hasCounter, q.head = true, c.Head
		}
	}
	r.queue, r.incarnation = q, inc
	r.known[inc] = true
}

func (r *Repair) seeQueue(k *keyspace.Key, key, value []byte) {
	q := r.queue
	switch k.ID {
	case keyspace.KindDue, keyspace.KindHeld, keyspace.KindLease:
		s, err := layout.DecodeState(key, value)
		if err != nil {
			return
		}
		q.states[s.Sequence] = s.Lane
		q.highest = max(q.highest, s.Sequence)
		r.now = max(r.now, s.Sent, s.Received)
		switch k.ID {
		case keyspace.KindDue:
			q.counts.Scheduled++
		case keyspace.KindHeld:
			q.counts.Returned++
		default:
			q.counts.Leased++
		}
		if !q.hasCounter && s.Lane == layout.MainLane {
			q.head = max(q.head, s.Sequence+1)
		}
	case keyspace.KindListedGroup:
		q.counts.Listed++
	case keyspace.KindMessage:
		sequence, lane := layout.KeySequence(key), layout.KeyLane(key)
		q.highest = max(q.highest, sequence)
		_, reached := q.states[sequence]
		delete(q.states, sequence)
		sent, _ := message.RecordSent(value)
		r.now = max(r.now, sent)
		switch {
		case reached:
		case lane.Grouped():
			q.counts.Grouped++
		case lane == layout.MainLane && sequence >= q.head:
			q.counts.Fresh++
		default:
			q.unreached = append(q.unreached, lostState{sequence, sent})
			q.states[sequence] = lane // until endQueue
		}
	default:
	}
}

// endQueue writes what a queue lacks.
func (r *Repair) endQueue() {
	q := r.queue
	if q == nil {
		return
	}
	r.queue = nil
	keys := layout.NewKeys(r.shard, r.incarnation)
	c := q.counts
	if value, ok := r.counters[r.incarnation]; ok && q.hasCounter {
		c, _ = layout.DecodeCounters(value)
	}
	for _, m := range q.unreached {
		s := layout.State{Sequence: m.sequence, Due: m.sent, Sent: m.sent, Lane: q.states[m.sequence]}
		delete(q.states, m.sequence)
		layout.PutNumber(&r.out, keys.DueOf(m.sequence), uint64(s.Due))
		layout.PutState(&r.out, keys.Due(s.Due, m.sequence), &s)
		c.Scheduled++
	}
	for sequence, lane := range q.states {
		r.out.Set(keys.Record(lane, sequence), nil)
	}
	if q.hasCounter && len(q.unreached) == 0 {
		return
	}
	if !q.hasCounter {
		c.Head, c.Next = q.head, q.highest+sequenceGap
	}
	r.out.Set(keys.Counters(), c.Append(nil))
}

// endShard writes what a shard lacks.
func (r *Repair) endShard() {
	r.endQueue()
	if !r.begun {
		return
	}
	r.begun = false
	r.disown()
	m := r.meta
	if m == nil {
		m = &journal.State{Epoch: 1 << 20, Now: r.now}
		r.sequence = sequenceGap
	}
	if r.meta == nil || m.Incarnation < uint64(r.latest) {
		m.Incarnation = uint64(r.latest) + sequenceGap
		m.Put(&r.out, r.shard, r.sequence)
	}
}

// own notes the incarnations that a record of a name has.
func (r *Repair) own(value []byte) {
	var record struct {
		Incarnation layout.Incarnation   `json:"incarnation"`
		First       layout.Incarnation   `json:"first"`
		Former      []layout.Incarnation `json:"former"`
	}
	if len(value) == 0 || json.Unmarshal(value[1:], &record) != nil {
		return
	}
	for _, inc := range append(record.Former, record.First, record.Incarnation) {
		r.owned[inc] = true
		r.latest = max(r.latest, inc)
	}
}

// disown drops what is left of queues and backlogs whose names are lost.
func (r *Repair) disown() {
	if r.dropping {
		return
	}
	for inc := range r.counters {
		r.known[inc] = true
	}
	for _, inc := range slices.Sorted(maps.Keys(r.known)) {
		if r.owned[inc] {
			continue
		}
		keys := layout.NewKeys(r.shard, inc)
		all := keys.All()
		r.out.DeleteRange(all.Lower, all.Upper)
		r.out.Delete(keys.Counters())
		r.lost = append(r.lost, fmt.Sprintf("all messages of a queue, subscription or function whose name is lost (shard %d, incarnation %d)", r.shard, inc))
	}
}

// Lost says what was dropped, as it is of no use without what is lost.
func (r *Repair) Lost() []string { return r.lost }

// seeName makes counters for a queue of which nothing else is left.
func (r *Repair) seeName(value []byte) {
	r.endQueue()
	record, err := queues.DecodeQueueRecord(value)
	if err != nil {
		return
	}
	r.latest = max(r.latest, record.Incarnation)
	if _, ok := r.counters[record.Incarnation]; ok || r.known[record.Incarnation] {
		return
	}
	keys := layout.NewKeys(r.shard, record.Incarnation)
	c := layout.Counters{Next: sequenceGap}
	r.out.Set(keys.Counters(), c.Append(nil))
}

// Repairs are the writes that the store lacks, after all has been seen.
func (r *Repair) Repairs() *mutation.Batch {
	r.endShard()
	return &r.out
}
