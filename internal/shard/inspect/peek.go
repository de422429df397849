package inspect

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/caller"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/queue"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues"
	"godwit.dev/godwit/internal/store"
)

// State is the state of a message.
type State string

// The states of a message.
const (
	Visible  State = "visible" // or blocked by another message of its group
	InFlight State = "in-flight"
	Delayed  State = "delayed"
)

// Bounds of what one scan reads.
const (
	maxScanned = 20_000
	maxBytes   = 32 << 20
	stepSize   = 256 // messages whose states are read under one lock
	stepBytes  = 1 << 20
)

// MaxScans bounds the concurrent scans; others wait. Each may hold as much memory as it reads.
const MaxScans = 4

// Place identifies a message of a queue.
type Place struct {
	Lane     layout.Lane
	Sequence uint64
}

// Message is a message of a queue and its state.
type Message struct {
	*message.Message
	Place
	Incarnation layout.Incarnation // of its queue
	State       State
	Available   int64 // epoch milliseconds: when a delayed one, or one in flight, can be received; 0: now
	Receives    int   // including those in queues that it was moved here from
	First       int64 // epoch milliseconds of the first receive; 0: none
	Encrypted   bool
	Refused     error // why it is not decrypted; nil: it is, or was not encrypted
}

// Query selects messages.
type Query struct {
	Queue  arn.ARN
	From   Cursor
	Limit  int    // 1 and more
	State  State  // empty: any
	Group  string // of FIFO and fair queues; empty: any
	Since  uint64 // only messages of this sequence and later ones, of any state; earlier ones are not read
	Caller *caller.Caller
	// Incarnation is that of the queue; 0: any. Another queue of the name is none.
	Incarnation layout.Incarnation
	// Match selects messages by their immutable fields; nil: all. It is called without locks.
	Match func(m *Message) bool
}

// Cursor is the position of a scan. The zero value is the beginning.
type Cursor struct {
	Lanes    bool // after the messages without a group
	Lane     layout.Lane
	Sequence uint64 // a lower bound of the sequence of the next message
	Due      int64  // of delayed ones
}

// Found is the result of a scan.
type Found struct {
	Messages   []Message
	Next       *Cursor // where to continue; nil: that was all
	Scanned    int     // messages that were examined
	Total      int64   // in the queue
	Unreadable int     // damaged records
	Origin     uint64  // of sequence numbers
	End        uint64  // the sequence of the next message to be sent
	// Incarnation is that of the queue.
	Incarnation layout.Incarnation
}

// target is the queue of a scan.
type target struct {
	shard       *queues.Shard
	arn         arn.ARN
	incarnation layout.Incarnation
	cfg         queue.Config
	keys        layout.Keys
	main, late  uint64 // no message is below them
	now         int64
}

// open finds a queue, and waits until the messages that a scan can show are durable. Errors:
// QueueDoesNotExist.
func (i *Inspector) open(ctx context.Context, a arn.ARN) (t *target, found *Found, err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	sh := i.queues.ShardOf(a)
	err = sh.RunDurableReads(func(*kernel.Tx) error {
		qs, err := sh.Lookup(a)
		if err != nil {
			return err
		}
		sh.FlushAppended()
		m := &qs.Machine
		t = &target{shard: sh, arn: a, incarnation: qs.Incarnation, cfg: m.Config(), keys: layout.NewKeys(sh.ID, qs.Incarnation), now: sh.Now()}
		t.main, t.late = m.Lowest()
		found = &Found{Total: total(m.Counts(t.now)), Origin: qs.Record.Origin, End: m.NextSequence(), Incarnation: qs.Incarnation}
		return nil
	})
	return t, found, err
}

// Scan reads messages of a queue in the order in which they were accepted. Messages of groups
// follow the others, group by group; if only delayed ones are selected, they are ordered by due
// time. It reads a bounded number of messages, so that even an empty page may have a next one.
// It waits while MaxScans others are in progress. Errors: QueueDoesNotExist; those of ctx.
func (i *Inspector) Scan(ctx context.Context, q Query) (*Found, error) {
	select {
	case i.scans <- struct{}{}:
		defer func() { <-i.scans }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	t, found, err := i.open(ctx, q.Queue)
	if err == nil && q.Incarnation != 0 && q.Incarnation != found.Incarnation {
		return nil, queues.ErrNoQueue
	}
	if err != nil || found.Total == 0 {
		return found, err
	}
	sc := &scan{i: i, t: t, q: q, found: found}
	switch q.State {
	case InFlight:
		err = sc.leased(ctx)
	case Delayed:
		err = sc.delayed(ctx)
	default:
		err = sc.all(ctx)
	}
	return found, err
}

// At reads one message of a queue of an incarnation, of any if that is 0, and the origin of the
// queue's sequence numbers. Errors: QueueDoesNotExist; ErrNone.
func (i *Inspector) At(ctx context.Context, a arn.ARN, of layout.Incarnation, at Place, who *caller.Caller) (m Message, origin uint64, err error) {
	t, found, err := i.open(ctx, a)
	if err == nil && of != 0 && of != t.incarnation {
		err = ErrNone
	}
	if err != nil {
		return m, 0, err
	}
	sc := &scan{i: i, t: t, q: Query{Queue: a, Limit: 1, Caller: who}, found: &Found{}}
	record, ok, err := i.queues.Store.Get(nil, t.keys.Record(at.Lane, at.Sequence))
	if err != nil {
		return m, 0, err
	}
	if ok {
		_, err = sc.take(ctx, []candidate{{at, record}})
	}
	if err != nil || len(sc.found.Messages) == 0 {
		return m, 0, cmp.Or(err, error(ErrNone))
	}
	return sc.found.Messages[0], found.Origin, nil
}

// ErrNone says that there is no such message.
var ErrNone = fault.NewRule(fault.NotFound, "inspect: no such message")

// scan is a Scan in progress.
type scan struct {
	i     *Inspector
	t     *target
	q     Query
	found *Found
	bytes int
}

// candidate is a message that may be selected.
type candidate struct {
	Place
	record []byte
}

// full reports that the page is full, or that enough was read.
func (sc *scan) full() bool {
	return len(sc.found.Messages) >= sc.q.Limit || sc.found.Scanned >= maxScanned || sc.bytes >= maxBytes
}

// all scans the records of the queue.
func (sc *scan) all(ctx context.Context) error {
	if !sc.q.From.Lanes && sc.q.Group == "" {
		if err := sc.ungrouped(ctx); err != nil || sc.found.Next != nil {
			return err
		}
	}
	span := sc.t.keys.RecordsFrom(max(sc.q.From.Lane, layout.GroupLanes), 0)
	if sc.q.Group != "" {
		span = sc.t.keys.Lane(layout.GroupLane(sc.q.Group), 0)
	}
	if sc.q.From.Lanes {
		from := sc.t.keys.RecordsFrom(sc.q.From.Lane, sc.q.From.Sequence)
		if bytes.Compare(from.Lower, span.Lower) > 0 {
			span.Lower = from.Lower
		}
	}
	it, err := sc.i.queues.Store.Iter(span.Lower, span.Upper)
	if err != nil {
		return err
	}
	lanes := &laneIterator{it: it}
	err = sc.collect(ctx, func() (candidate, bool) {
		for lanes.next() {
			if lanes.place.Sequence >= sc.q.Since || lanes.seek(sc.t.keys.Record(lanes.place.Lane, sc.q.Since)) && lanes.place.Sequence >= sc.q.Since {
				return lanes.candidate(), true
			}
		}
		return candidate{}, false
	}, func(p Place) Cursor { return Cursor{Lanes: true, Lane: p.Lane, Sequence: p.Sequence} })
	return cmp.Or(err, it.Close())
}

// ungrouped scans the messages without a group, merging three lanes.
func (sc *scan) ungrouped(ctx context.Context) (err error) {
	var lanes []*laneIterator
	defer func() {
		for _, l := range lanes {
			err = cmp.Or(err, l.it.Close())
		}
	}()
	for lane, low := range map[layout.Lane]uint64{layout.MainLane: sc.t.main, layout.DelayedLane: sc.t.late, layout.MovedLane: 0} {
		span := sc.t.keys.Lane(lane, max(low, sc.q.From.Sequence, sc.q.Since))
		it, err := sc.i.queues.Store.Iter(span.Lower, span.Upper)
		if err != nil {
			return err
		}
		lanes = append(lanes, &laneIterator{it: it})
	}
	for _, l := range lanes {
		l.next()
	}
	return sc.collect(ctx, func() (c candidate, ok bool) {
		var first *laneIterator
		for _, l := range lanes {
			if l.there && (first == nil || l.place.Sequence < first.place.Sequence) {
				first = l
			}
		}
		if first == nil {
			return c, false
		}
		c = first.candidate()
		first.next()
		return c, true
	}, func(p Place) Cursor { return Cursor{Sequence: p.Sequence} })
}

// laneIterator reads the records of a lane, or of several one after the other.
type laneIterator struct {
	it    store.Iterator
	place Place
	there bool
}

func (l *laneIterator) next() bool { return l.at(l.it.Next()) }

// seek moves to the first record from a key on.
func (l *laneIterator) seek(key []byte) bool { return l.at(l.it.Seek(key)) }

func (l *laneIterator) at(there bool) bool {
	if l.there = there; there {
		key := l.it.Key()
		l.place = Place{layout.KeyLane(key), layout.KeySequence(key)}
	}
	return l.there
}

func (l *laneIterator) candidate() candidate { return candidate{l.place, bytes.Clone(l.it.Value())} }

// collect examines candidates until the page is full or there are no more.
func (sc *scan) collect(ctx context.Context, next func() (candidate, bool), cursor func(Place) Cursor) error {
	var step []candidate
	inStep := 0 // bytes of the step
	for {
		c, ok := next()
		if ok {
			step = append(step, c)
			sc.bytes += len(c.record)
			inStep += len(c.record)
		}
		// A step has the size that the page lacks, so that little is read in vain.
		size := stepSize
		if sc.q.Match == nil {
			size = min(size, max(sc.q.Limit-len(sc.found.Messages), 16))
		}
		if !ok || len(step) >= size || inStep >= stepBytes || sc.bytes >= maxBytes {
			rest, err := sc.take(ctx, step)
			if err != nil {
				return err
			}
			if len(rest) > 0 {
				at := cursor(rest[0].Place)
				sc.found.Next = &at
				return nil
			}
			clear(step)
			step, inStep = step[:0], 0
		}
		switch {
		case !ok:
			return nil
		case sc.full():
			if c, ok := next(); ok {
				at := cursor(c.Place)
				sc.found.Next = &at
			}
			return nil
		}
	}
}

// leased scans the messages that are in flight.
func (sc *scan) leased(ctx context.Context) error {
	var all []queue.Lease
	sc.t.shard.View(func() {
		if qs := sc.here(); qs != nil {
			all = qs.Machine.Leases()
		}
	})
	at, _ := slices.BinarySearchFunc(all, sc.q.From.Sequence, func(a queue.Lease, seq uint64) int { return cmp.Compare(a.Sequence, seq) })
	all = all[at:]
	return sc.collect(ctx, func() (c candidate, ok bool) {
		for len(all) > 0 {
			p := Place{all[0].Lane, all[0].Sequence}
			all = all[1:]
			record, ok, err := sc.i.queues.Store.Get(nil, sc.t.keys.Record(p.Lane, p.Sequence))
			if err == nil && ok {
				return candidate{p, record}, true
			}
		}
		return c, false
	}, func(p Place) Cursor { return Cursor{Sequence: p.Sequence} })
}

// delayed scans the messages that are not due yet.
func (sc *scan) delayed(ctx context.Context) error {
	span := sc.t.keys.DueFrom(max(sc.q.From.Due, sc.t.now+1), 0)
	if sc.q.From.Due > sc.t.now {
		span = sc.t.keys.DueFrom(sc.q.From.Due, sc.q.From.Sequence)
	}
	it, err := sc.i.queues.Store.Iter(span.Lower, span.Upper)
	if err != nil {
		return err
	}
	due := map[Place]int64{}
	err = sc.collect(ctx, func() (c candidate, ok bool) {
		for it.Next() {
			s, err := layout.DecodeState(it.Key(), it.Value())
			if err != nil {
				sc.found.Unreadable++
				continue
			}
			p := Place{s.Lane, s.Sequence}
			record, ok, err := sc.i.queues.Store.Get(nil, sc.t.keys.Record(p.Lane, p.Sequence))
			if err == nil && ok {
				due[p] = s.Due
				return candidate{p, record}, true
			}
		}
		return c, false
	}, func(p Place) Cursor { return Cursor{Due: due[p], Sequence: p.Sequence} })
	return cmp.Or(err, it.Close())
}

// here is the queue, under the shard's lock; nil: it was deleted or purged.
func (sc *scan) here() *queues.Queue {
	if qs, ok := sc.t.shard.Queue(sc.t.arn); ok && qs.Incarnation == sc.t.incarnation {
		return qs
	}
	return nil
}

// take reads the states of messages, and adds the selected ones until the page is full; rest
// are those that were not examined.
func (sc *scan) take(ctx context.Context, step []candidate) (rest []candidate, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	leases := map[uint64]lease{}
	sc.t.shard.View(func() {
		sc.t.shard.FlushAppended() // the state of what is not leased any more is read from the store
		if qs := sc.here(); qs != nil {
			for _, c := range step {
				if due, of, ok := qs.Machine.LeasedUntil(c.Sequence); ok {
					leases[c.Sequence] = lease{due, of}
				}
			}
		}
	})
	for i, c := range step {
		if len(sc.found.Messages) >= sc.q.Limit {
			return step[i:], nil
		}
		if err := sc.takeOne(c, leases); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// lease is the lease of a message.
type lease struct {
	due int64
	of  queue.Lease
}

func (sc *scan) takeOne(c candidate, leases map[uint64]lease) error {
	sc.found.Scanned++
	m, err := message.DecodeRecord(c.record)
	if err != nil {
		sc.found.Unreadable++
		return nil //nolint:nilerr // it is counted
	}
	out := Message{Message: m, Place: c.Place, Incarnation: sc.t.incarnation, State: Visible, Receives: int(m.Receives), First: m.FirstReceived, Encrypted: m.Cipher != nil}
	if sc.q.Group != "" && m.Group != sc.q.Group {
		return nil
	}
	if out.Encrypted {
		refused, err := sc.i.queues.Reveal(sc.t.cfg, sc.t.arn.Account, sc.q.Caller, m)
		if err != nil && !refused {
			sc.found.Unreadable++
			return nil //nolint:nilerr // likewise
		}
		out.Refused = err
	}
	if sc.q.Match != nil && !sc.q.Match(&out) {
		return nil
	}
	if le, ok := leases[c.Sequence]; ok {
		out.Receives, out.First = out.Receives+int(le.of.Receives), cmp.Or(out.First, le.of.First)
		if le.due > sc.t.now { // otherwise it has ended, and is not swept yet
			out.State = InFlight
		}
		if le.due > sc.t.now && le.due != math.MaxInt64 {
			out.Available = le.due
		}
	} else if err := sc.scheduled(&out); err != nil {
		return err
	}
	if sc.q.State == "" || out.State == sc.q.State {
		sc.found.Messages = append(sc.found.Messages, out)
	}
	return nil
}

// scheduled completes a message that is not leased with the fields that are not in its record.
func (sc *scan) scheduled(m *Message) error {
	reader, keys := sc.i.queues.Store, &sc.t.keys
	value, ok, err := reader.Get(nil, keys.DueOf(m.Sequence))
	if err != nil {
		return err
	}
	var key []byte
	switch {
	case ok:
		key = bytes.Clone(keys.Due(int64(layout.Number(value)), m.Sequence))
	case m.Lane.Grouped():
		key = bytes.Clone(keys.HeldState(m.Lane, m.Sequence))
	default:
		return nil
	}
	if value, ok, err = reader.Get(nil, key); err != nil || !ok {
		return err
	}
	s, err := layout.DecodeState(key, value)
	if err != nil {
		return nil //nolint:nilerr // the message itself can be read
	}
	m.Receives += int(s.Receives)
	m.First = cmp.Or(m.First, s.First)
	if s.Due > sc.t.now {
		m.State, m.Available = Delayed, s.Due
	}
	return nil
}
