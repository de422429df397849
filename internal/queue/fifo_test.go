package queue

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/queue/layout"
)

// fifoModel is the specification of a FIFO queue: a list of messages in the
// order of acceptance, searched from end to end.
type fifoModel struct {
	cfg      Config
	messages []*fifoMessage
	turns    int
}

type fifoMessage struct {
	seq      uint64
	group    string
	sent     int64
	leased   bool
	moving   bool
	stay     bool
	until    int64 // leased: when that ends
	receives uint32
	received int64
	epoch    uint32
	turn     int // of the latest receive: the order in which they gave
}

func (m *fifoModel) find(seq uint64) *fifoMessage {
	for _, x := range m.messages {
		if x.seq == seq {
			return x
		}
	}
	return nil
}

func (m *fifoModel) remove(seq uint64) {
	m.messages = slices.DeleteFunc(m.messages, func(x *fifoMessage) bool { return x.seq == seq })
}

func (m *fifoModel) expire(now int64) {
	for _, x := range m.messages {
		if x.leased && !x.moving && x.until <= now {
			x.leased = false
		}
	}
}

func (m *fifoModel) expired(x *fifoMessage, now int64) bool {
	return x.sent+m.cfg.Retention.Milliseconds() <= now
}

// taken gives messages that a receive has leased and moved their turns, in the order in which it
// came to them.
func (m *fifoModel) taken(order, leased, moved []*fifoMessage) {
	for len(leased)+len(moved) > 0 {
		next := &leased
		if len(leased) == 0 || len(moved) > 0 && slices.Index(order, moved[0]) < slices.Index(order, leased[0]) {
			next = &moved
		}
		m.turns++
		(*next)[0].turn = m.turns
		*next = (*next)[1:]
	}
}

// receivable lists what one receive may get, group by group; with moves, those
// that go to the dead-letter queue instead. order are both, as a receive comes to them.
func (m *fifoModel) receivable(now int64) (leases, moves, order []*fifoMessage) {
	m.expire(now)
	var groups []string
	for _, x := range m.messages {
		if !slices.Contains(groups, x.group) {
			groups = append(groups, x.group)
		}
	}
	// A group is as old as its first message's being available.
	heads := map[string]*fifoMessage{}
	for _, x := range m.messages {
		if heads[x.group] == nil {
			heads[x.group] = x
		}
	}
	since := func(x *fifoMessage) int64 {
		if x.receives > 0 {
			return x.until
		}
		return x.sent + m.cfg.Delay.Milliseconds()
	}
	slices.SortStableFunc(groups, func(a, b string) int {
		x, y := heads[a], heads[b]
		return cmp.Or(cmp.Compare(since(x), since(y)), boolCompare(y.receives == 0, x.receives == 0), cmp.Compare(x.turn, y.turn), cmp.Compare(x.seq, y.seq))
	})
	for _, g := range groups {
		for _, x := range m.messages {
			switch {
			case x.group != g:
				continue
			case m.expired(x, now) && !x.leased:
				continue
			}
			if x.leased || x.receives == 0 && x.sent+m.cfg.Delay.Milliseconds() > now {
				break
			}
			if m.cfg.MaxReceives > 0 && int(x.receives) >= m.cfg.MaxReceives && !x.stay {
				moves, order = append(moves, x), append(order, x)
				break
			}
			leases, order = append(leases, x), append(order, x)
		}
	}
	return leases, moves, order
}

// TestFIFOModel runs random histories on a FIFO queue with tiny windows and on
// the model, with reopening in between.
func TestFIFOModel(t *testing.T) {
	defer func(w, o, g int) { windowSize, orderSize, groupSize = w, o, g }(windowSize, orderSize, groupSize)
	windowSize, orderSize, groupSize = 6, 4, 3
	defer func(n int) { recountStep = n }(recountStep)
	recountStep = 5

	t.Cleanup(func() { restingUntouched(t) })
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawn(t, "dlq.fifo")
		cfg.Delay = rapid.SampledFrom([]time.Duration{0, 0, 2 * time.Second}).Draw(t, "delay")
		ref := &fifoModel{cfg: cfg}
		b := &player{T: t, bench: newBench(cfg, Kind{FIFO: true})}
		var id byte
		b.play(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "n") {
					group := fmt.Sprint(rapid.IntRange(0, 9).Draw(t, "group"))
					id++
					seq, err := b.send(id, group, 0)
					b.must(err)
					ref.messages = append(ref.messages, &fifoMessage{seq: seq, group: group, sent: b.now})
				}
			},
			"receive": func(t *rapid.T) {
				most := rapid.IntRange(1, 10).Draw(t, "max")
				visibility := rapid.SampledFrom([]int64{0, 1, 1000, 30_000}).Draw(t, "visibility")
				want, moves, order := ref.receivable(b.now)
				var leased, moved []*fifoMessage
				old := slices.ContainsFunc(ref.messages, func(x *fifoMessage) bool { return ref.expired(x, b.now) })
				got, err := b.receive(most, visibility)
				b.must(err)
				// Behind a window full of groups that are all delayed nothing is found.
				hidden := b.m.groups != nil && ref.cfg.Delay > 0 && (!b.m.groups.Order.Whole || !b.m.groups.Back.Whole)
				if !hidden && len(want) > 0 && len(got.Leases) == 0 || !hidden && !old && len(moves) == 0 && len(got.Leases) < min(most, len(want)) {
					t.Fatalf("received %v, want %d of %v", sequences(got.Leases), most, want)
				}
				for _, l := range got.Leases {
					// What expired or went to the dead letters on the way may have changed
					// the order of groups, never that within one.
					i := 0
					if old || len(moves) > 0 {
						i = slices.IndexFunc(want, func(x *fifoMessage) bool { return layout.GroupLane(x.group) == l.Lane })
					}
					if i < 0 || i >= len(want) || l.Sequence != want[i].seq || l.Receives != want[i].receives+1 {
						t.Fatalf("received %+v of %v, want the first of %v", l, sequences(got.Leases), want)
					}
					x := want[i]
					want = slices.Delete(want, i, i+1)
					x.leased, x.stay, x.until = true, false, b.now+visibility
					x.receives, x.received, x.epoch = x.receives+1, b.now, b.epoch
					leased = append(leased, x)
					b.handles = append(b.handles, Handle{Sequence: l.Sequence, Lane: l.Lane, Receives: l.Receives, Epoch: l.Epoch})
				}
				for _, l := range got.Moves {
					x := ref.find(l.Sequence)
					if !slices.Contains(moves, x) {
						t.Fatalf("moves %+v, want some of %v", x, moves)
					}
					moved = append(moved, x)
				}
				ref.taken(order, leased, moved)
				for _, x := range moved {
					switch rapid.IntRange(0, 2).Draw(t, "fate") {
					case 0:
						b.must(b.run(Remove{layout.GroupLane(x.group), x.seq}))
						ref.remove(x.seq)
					case 1:
						b.must(b.run(RejectMove{x.seq}))
						x.stay, x.until = true, b.now
					case 2: // under way for the rest of the history
						x.leased, x.moving = true, true
					}
				}
			},
			"delete": func(t *rapid.T) {
				h := b.handle()
				err := b.run(Delete{h})
				ref.expire(b.now)
				x := ref.find(h.Sequence)
				want := error(nil)
				switch {
				case x == nil:
					want = ErrGone
				case !x.leased || x.receives != h.Receives || x.epoch != h.Epoch:
					want = ErrExpired
				default:
					ref.remove(h.Sequence)
				}
				if !errors.Is(err, want) {
					t.Fatalf("delete of %+v: %v, want %v", h, err, want)
				}
			},
			"change visibility": func(t *rapid.T) {
				h := b.handle()
				timeout := rapid.SampledFrom([]int64{0, 1, 2000}).Draw(t, "timeout")
				err := b.run(ChangeVisibility{h, timeout})
				ref.expire(b.now)
				x := ref.find(h.Sequence)
				want := error(nil)
				switch {
				case x == nil:
					want = ErrGone
				case x.moving && x.receives == h.Receives && x.epoch == h.Epoch:
					want = ErrNotLeased
				case !x.leased || x.receives != h.Receives || x.epoch != h.Epoch:
					want = ErrExpired
				default:
					x.leased, x.until = timeout > 0, b.now+timeout
				}
				if !errors.Is(err, want) {
					t.Fatalf("change of %+v to %d: %v, want %v", h, timeout, err, want)
				}
			},
			"delay": func(t *rapid.T) {
				ref.cfg.Delay = rapid.SampledFrom([]time.Duration{0, time.Second, 5 * time.Second}).Draw(t, "delay")
				b.cfg = ref.cfg
				b.must(b.run(Configure{ref.cfg}))
			},
			"recount": func(*rapid.T) { b.must(b.run(Recount{})) },
			"sweep": func(*rapid.T) {
				for again := true; again; again = b.m.sweepAt != 0 && b.m.sweepAt <= b.now && !b.m.Empty() {
					dropped, err := b.sweep()
					b.must(err)
					for _, seq := range dropped {
						if x := ref.find(seq); x == nil || !ref.expired(x, b.now) {
							t.Fatalf("swept %d, which is %+v", seq, x)
						}
						ref.remove(seq)
					}
				}
				for _, x := range ref.messages {
					if _, there := b.store.get(b.m.Keys().Record(layout.GroupLane(x.group), x.seq)); there && ref.expired(x, b.now) {
						t.Fatalf("%+v was not swept", x)
					}
				}
			},
			"older version": func(*rapid.T) { b.must(b.makeAged()) },
		}, func() error { return ref.compare(b.bench) })
	})
}

// compare holds counts and records against the model. Of what is past its
// retention a receive may have dropped some; the model forgets that here.
func (m *fifoModel) compare(b *bench) error {
	m.messages = slices.DeleteFunc(m.messages, func(x *fifoMessage) bool {
		_, there := b.store.get(b.m.Keys().Record(layout.GroupLane(x.group), x.seq))
		return !there && m.expired(x, b.now)
	})
	m.expire(b.now)
	if err := b.run(Expire{}); err != nil {
		return err
	}
	inFlight, groups := 0, map[string]bool{}
	hidden := 0 // by the delay
	oldest := int64(0)
	for _, x := range m.messages {
		groups[x.group] = true
		if x.leased {
			inFlight++
		}
		if due := x.sent + m.cfg.Delay.Milliseconds(); x.receives == 0 && due > b.now {
			hidden++
		}
		if oldest == 0 || x.sent < oldest {
			oldest = x.sent
		}
	}
	if r, err := b.m.Do(b, &b.batch, b.now, Oldest{}); err != nil || r.Sent != oldest {
		return fmt.Errorf("the oldest was sent at %d, want %d: %w", r.Sent, oldest, err)
	}
	c := b.m.Counts(b.now)
	if int(c.InFlight) != inFlight || int(c.Visible+c.Delayed) != len(m.messages)-inFlight || c.Visible < 0 {
		return fmt.Errorf("counts %+v, want %d in flight of %d", c, inFlight, len(m.messages))
	}
	if int(c.Delayed) < hidden && b.m.recount == nil { // of those that were hidden within the last second some may be counted, too
		return fmt.Errorf("%d are delayed, want %d", c.Delayed, hidden)
	}
	k := b.m.Keys()
	expiries := b.store.count(k, layout.TagHeld)
	if b.m.counters.HeldAges == 0 {
		expiries = len(m.messages)
	}
	for kind, want := range map[layout.Tag]int{
		layout.TagRecord: len(m.messages), layout.TagExpiry: expiries, layout.TagLease: inFlight, layout.TagGroup: len(groups),
		layout.TagDue: 0, layout.TagDueOf: 0,
	} {
		if n := b.store.count(k, kind); n != want {
			return fmt.Errorf("%d records of kind %c, want %d", n, kind, want)
		}
	}
	listed, back := b.store.count(k, layout.TagListed), b.store.count(k, layout.TagReturned)
	free, returned := 0, 0
	for g := range groups {
		first := m.messages[slices.IndexFunc(m.messages, func(x *fifoMessage) bool { return x.group == g })]
		switch {
		case first.leased:
		case first.receives > 0:
			returned++
		default:
			free++
		}
	}
	if listed != free || back != returned {
		return fmt.Errorf("%d and %d groups are listed, but %d and %d are free", listed, back, free, returned)
	}
	if b.m.groups != nil && (int(b.m.groups.Listed) != listed || int(b.m.groups.Returned) != back || b.m.groups.Order.Len() > 10+orderSize) {
		return fmt.Errorf("%d groups counted, %d in memory, %d are listed", b.m.groups.Listed, b.m.groups.Order.Len(), listed)
	}
	return nil
}
