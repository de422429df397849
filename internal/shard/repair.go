package shard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/attribute"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/shard/topics"
)

// sequenceGap is added to the last known sequence of a queue whose counters are lost: a
// sequence must not be used twice.
const sequenceGap = 1 << 20

// Repair rebuilds records that a damaged store has lost and that other records depend on. It
// gets all remaining records, in the order of their keys. A leased or scheduled message whose
// record is lost gets an unreadable one: it stays quarantined until its retention is over.
// Messages that no index has can be received again.
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
	dropping    bool                        // backlogs that belong to nothing are being dropped anyway
	latest      layout.Incarnation          // of the shard
	now         int64
	present     int64 // epoch milliseconds
	queue       *repaired
	incarnation layout.Incarnation

	sequenced map[layout.Incarnation]bool    // FIFO topics with a sequence
	fifo      map[layout.Incarnation]arn.ARN // all of them

	found   map[layout.Incarnation]*repaired // with messages
	orphans []orphan                         // of all shards
	homes   map[home]int                     // how many names each account and region has
}

// orphan is a queue whose name is lost, but not its messages.
type orphan struct {
	shard       uint16
	incarnation layout.Incarnation
	*repaired
}

type home struct{ account, region string }

// repaired is the known state of one queue.
type repaired struct {
	states     map[uint64]layout.Lane // of messages that are leased, scheduled or returned
	counts     layout.Counters
	head       uint64
	highest    uint64 // sequence of any message
	unreached  []lostState
	hasCounter bool

	messages int   // readable messages
	created  int64 // the earliest time of a message
	backlog  bool  // they belong to a subscription
	grouped  bool
	tenants  bool // groups are tenants, without an order
	expiries int
}

type lostState struct {
	sequence uint64
	sent     int64
}

// NewRepair begins a repair at a time, the present.
func NewRepair(at time.Time) *Repair {
	return &Repair{homes: map[home]int{}, present: at.UnixMilli()}
}

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
			out: r.out, lost: r.lost, orphans: r.orphans, homes: r.homes, present: r.present, shard: shard, begun: true,
			sequenced: map[layout.Incarnation]bool{}, fifo: map[layout.Incarnation]arn.ARN{},
			found: map[layout.Incarnation]*repaired{}, counters: map[layout.Incarnation][]byte{}, known: map[layout.Incarnation]bool{}, owned: map[layout.Incarnation]bool{},
		}
	}
	if n, ok := k.Number(keyspace.PartIncarnation); ok {
		r.latest = max(r.latest, layout.Incarnation(n))
	}
	if account, ok := k.Text(keyspace.PartAccount); ok {
		region, _ := k.Text(keyspace.PartRegion)
		r.homes[home{account, region}]++
	}
	switch k.ID {
	case keyspace.KindStreamState:
		if m, sequence, ok := journal.DecodeState(value); ok {
			r.meta, r.sequence = &m, sequence
		}
	case keyspace.KindQueue:
		r.seeName(value)
		r.own(value)
	case keyspace.KindTopicSequence:
		n, _ := k.Number(keyspace.PartIncarnation)
		r.sequenced[layout.Incarnation(n)] = true
	case keyspace.KindTopic:
		if inc := r.own(value); inc != 0 { // a FIFO topic
			r.fifo[inc] = topicIn(&k)
		}
	case keyspace.KindSubscription, keyspace.KindFunction, keyspace.KindDirect, keyspace.KindPlatformApplication:
		r.own(value)
	case keyspace.KindDeletedTopics:
		r.dropping = true
	default:
	}
	if k.ID == keyspace.KindCounters {
		n, _ := k.Number(keyspace.PartIncarnation)
		r.counters[layout.Incarnation(n)] = bytes.Clone(value)
	}
	if key[2] != keyspace.Data {
		r.endQueue()
		return
	}
	n, _ := k.Number(keyspace.PartIncarnation)
	inc := layout.Incarnation(n)
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
	case keyspace.KindExpiry:
		q.expiries++
	case keyspace.KindListedGroup:
		q.counts.Listed++
	case keyspace.KindReturnedGroup:
		q.counts.Back++
		q.counts.Turn = max(q.counts.Turn, layout.KeySequence(key))
	case keyspace.KindTenant:
		q.tenants = true
	case keyspace.KindMessage:
		sequence, lane := layout.KeySequence(key), layout.KeyLane(key)
		q.highest = max(q.highest, sequence)
		_, reached := q.states[sequence]
		delete(q.states, sequence)
		sent, _ := message.RecordSent(value)
		r.now = max(r.now, sent)
		q.note(lane, value)
		switch {
		case reached:
		case lane.Grouped():
			q.counts.Grouped++
		case lane == layout.MainLane && sequence >= q.head:
			q.counts.Fresh++
		default:
			q.unreached = append(q.unreached, lostState{sequence, sent})
			q.states[sequence] = lane // removed by endQueue
		}
	default:
	}
}

// note notes the information about a queue in one of its messages.
func (q *repaired) note(lane layout.Lane, value []byte) {
	m, err := message.DecodeRecord(value)
	if err != nil {
		return
	}
	if q.messages++; q.messages == 1 || m.Sent < q.created {
		q.created = m.Sent
	}
	q.backlog = q.backlog || m.Notice != nil
	q.grouped = q.grouped || lane.Grouped() && m.Dedup != ""
}

// endQueue writes the lost records of a queue.
func (r *Repair) endQueue() {
	q := r.queue
	if q == nil {
		return
	}
	r.queue = nil
	if q.messages > 0 {
		r.found[r.incarnation] = q
	}
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
	if q.hasCounter && len(q.unreached) == 0 && len(q.states) == 0 {
		return
	}
	c.Bytes = 0 // the start counts them
	if !q.hasCounter {
		c.Head, c.Next = q.head, q.highest+sequenceGap
		if q.grouped && !q.tenants && q.expiries < q.messages {
			c.HeldAges = 1
		}
	}
	r.out.Set(keys.Counters(), c.Append(nil))
}

// endShard writes the lost records of a shard.
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
	for _, inc := range slices.Sorted(maps.Keys(r.fifo)) {
		if !r.sequenced[inc] {
			topics.RenewSequence(&r.out, r.shard, r.fifo[inc], inc, max(m.Now, r.present))
		}
	}
	if r.meta == nil || m.Incarnation < uint64(r.latest) {
		m.Incarnation = uint64(r.latest) + sequenceGap
		m.Put(&r.out, r.shard, r.sequence)
	}
}

// topicIn is the topic of a key.
func topicIn(k *keyspace.Key) arn.ARN {
	account, _ := k.Text(keyspace.PartAccount)
	region, _ := k.Text(keyspace.PartRegion)
	name, _ := k.Text(keyspace.PartName)
	return arn.Topic(region, account, name)
}

// own notes the incarnations in a named record, and returns its latest; 0: it has none.
func (r *Repair) own(value []byte) layout.Incarnation {
	var record struct {
		Incarnation layout.Incarnation   `json:"incarnation"`
		First       layout.Incarnation   `json:"first"`
		Former      []layout.Incarnation `json:"former"`
	}
	if len(value) == 0 || json.Unmarshal(value[1:], &record) != nil {
		return 0
	}
	for _, inc := range append(record.Former, record.First, record.Incarnation) {
		r.owned[inc] = true
		r.latest = max(r.latest, inc)
	}
	return record.Incarnation
}

// disown drops backlogs whose names are lost, and queues without messages whose names are lost.
func (r *Repair) disown() {
	for inc := range r.counters {
		r.known[inc] = true
	}
	for _, inc := range slices.Sorted(maps.Keys(r.known)) {
		if r.owned[inc] {
			continue
		}
		if q := r.found[inc]; q != nil && !q.backlog {
			r.orphans = append(r.orphans, orphan{r.shard, inc, q})
			continue
		}
		if r.dropping {
			continue
		}
		keys := layout.NewKeys(r.shard, inc)
		all := keys.All()
		r.out.DeleteRange(all.Lower, all.Upper)
		r.out.Delete(keys.Counters())
		r.lost = append(r.lost, fmt.Sprintf("all messages of a queue, subscription or function whose name is lost (shard %d, incarnation %d)", r.shard, inc))
	}
}

// salvagedRetention is the retention of a queue whose attributes are lost, in seconds: the
// longest possible.
const salvagedRetention = "1209600"

// adopt gives queues whose names are lost new names, in the account and region with the most
// names.
func (r *Repair) adopt() {
	at := home{"000000000000", "us-east-1"}
	for h, n := range r.homes {
		if most := r.homes[at]; n > most || n == most && h.account+h.region < at.account+at.region {
			at = h
		}
	}
	for _, o := range r.orphans {
		record := queues.QueueRecord{
			Incarnation: o.incarnation, Created: o.created, Modified: o.created,
			Attributes: map[string]string{attribute.MessageRetentionPeriod: salvagedRetention},
		}
		end := ""
		if o.grouped && !o.tenants {
			end, record.Attributes[attribute.FifoQueue] = ".fifo", "true"
		}
		name := arn.ARN{}
		for n := 1; n == 1 || kernel.ShardNumber(name) != o.shard; n++ { // the name determines the shard
			name = arn.Queue(at.region, at.account, fmt.Sprintf("salvaged-%d-%d-%d%s", o.shard, o.incarnation, n, end))
		}
		record.Put(&r.out, o.shard, name)
		r.lost = append(r.lost, fmt.Sprintf("the name, attributes and tags of a queue, whose %d messages are in %s now", o.messages, name))
	}
	r.orphans = nil
}

// Lost lists what was dropped, as it is useless without lost records, and what was renamed.
func (r *Repair) Lost() []string { return r.lost }

// seeName makes counters for a queue of which only the name is left.
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

// Repairs are the writes that the store needs, when all records have been seen.
func (r *Repair) Repairs() *mutation.Batch {
	r.endShard()
	r.adopt()
	return &r.out
}
