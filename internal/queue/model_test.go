package queue

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/queue/fair"
	"godwit.dev/godwit/internal/queue/layout"
)

// modelMessage is a message of the reference model: a plain list of these,
// searched from end to end, is the specification of a queue.
type modelMessage struct {
	seq      uint64
	lane     layout.Lane
	tenant   layout.Lane
	sent     int64
	ready    int64 // when it can be received; with leased, when that ends
	fresh    bool
	leased   bool
	moving   bool
	stay     bool
	receives uint32
	epoch    uint32
	received int64
}

type model struct {
	cfg      Config
	fair     bool // messages have groups
	messages []*modelMessage
}

func (m *model) find(seq uint64) *modelMessage {
	for _, x := range m.messages {
		if x.seq == seq {
			return x
		}
	}
	return nil
}

func (m *model) remove(seq uint64) {
	m.messages = slices.DeleteFunc(m.messages, func(x *modelMessage) bool { return x.seq == seq })
}

// expire returns the leases that have run out.
func (m *model) expire(now int64) {
	for _, x := range m.messages {
		if x.leased && !x.moving && x.ready <= now {
			x.leased = false
		}
	}
}

// receive walks the available messages in the order in which they were sent, as
// far as a machine went that leased and moved as many as given: at the end of a
// window it may stop early. dropped reports whether it dropped an expired message.
func (m *model) receive(r modelReceive, dropped func(*modelMessage) bool) (leases, moves []uint64, err error) {
	m.expire(r.now)
	var order []*modelMessage
	for _, x := range m.messages {
		if !x.leased && x.ready <= r.now {
			order = append(order, x)
		}
	}
	slices.SortFunc(order, func(a, b *modelMessage) int {
		if m.fair || !r.exact { // then only that they could be found counts
			if c := boolCompare(slices.Contains(r.chosen, b.seq), slices.Contains(r.chosen, a.seq)); c != 0 {
				return c
			}
		}
		return cmp.Compare(a.seq, b.seq)
	})
	for _, x := range order {
		done := len(leases) == r.leased && len(moves) == r.moved
		if x.sent+m.cfg.Retention.Milliseconds() <= r.now && (!done || dropped(x)) {
			m.remove(x.seq)
			continue
		}
		if done {
			if r.leased == 0 {
				return nil, nil, fmt.Errorf("found nothing, but %+v can be received", x)
			}
			if m.fair || !r.exact {
				continue // what it dropped may stand anywhere
			}
			break
		}
		x.fresh, x.leased = false, true
		if m.cfg.MaxReceives > 0 && int(x.receives) >= m.cfg.MaxReceives && !x.stay {
			x.moving = true
			moves = append(moves, x.seq)
			continue
		}
		x.stay, x.ready = false, r.now+r.visibility
		x.receives++
		x.received, x.epoch = r.now, r.epoch
		leases = append(leases, x.seq)
	}
	return leases, moves, nil
}

type modelReceive struct {
	now, visibility int64
	epoch           uint32
	leased, moved   int
	chosen          []uint64 // what the machine found
	exact           bool     // memory held all that was delayed or had come back
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

func sequences(leases []Lease) (seqs []uint64) {
	for _, l := range leases {
		seqs = append(seqs, l.Sequence)
	}
	return seqs
}

// drawn is the configuration of a random history, with dead letters or without.
func drawn(t *rapid.T, deadLetters string) Config {
	cfg := Config{Retention: time.Hour, Visibility: 30 * time.Second}
	if rapid.Bool().Draw(t, "dead letters") {
		cfg.MaxReceives = rapid.IntRange(1, 3).Draw(t, "max receives")
		cfg.DeadLetter = arn.Queue("us-east-1", "000000000000", deadLetters)
	}
	return cfg
}

// player runs the commands of a random history that need no model.
type player struct {
	*rapid.T
	*bench
	handles []Handle // of all receives
}

func (p *player) must(err error) {
	if err != nil {
		p.Fatal(err)
	}
}

// handle draws that of some receive; without any it is of a message that never was.
func (p *player) handle() Handle {
	if len(p.handles) == 0 && p.kind.FIFO {
		return Handle{Sequence: 999, Lane: layout.GroupLane("0")}
	}
	if len(p.handles) == 0 {
		return Handle{Sequence: 999}
	}
	return p.handles[rapid.IntRange(0, len(p.handles)-1).Draw(p.T, "handle")]
}

// play draws a history of the given commands, and of time and restarts between
// them, and compares after each.
func (p *player) play(commands map[string]func(*rapid.T), compare func() error) {
	commands["time passes"] = func(t *rapid.T) {
		p.now += rapid.SampledFrom([]int64{1, 499, 1000, 31_000, 1_800_000, 3_700_000}).Draw(t, "ms")
	}
	commands["reopen"] = func(*rapid.T) { p.must(p.reopen()) }
	commands["an older version"] = func(*rapid.T) {
		p.must(p.forgetSizes())
		p.must(p.reopen())
	}
	commands[""] = func(t *rapid.T) {
		if len(p.broken) > 0 {
			t.Fatalf("counters disagree with records: %v", p.broken)
		}
		p.must(compare())
	}
	p.Repeat(commands)
}

// TestModel runs random histories on a machine with tiny windows and on the
// reference model, with reopening in between, and compares every answer and
// every count, and the records at the end.
func TestModel(t *testing.T) {
	defer func(n int) { windowSize = n }(windowSize)
	windowSize = 6

	t.Cleanup(func() { restingUntouched(t) })
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawn(t, "dlq")
		tenants := rapid.Bool().Draw(t, "tenants")
		ref := &model{cfg: cfg, fair: tenants}
		b := &player{T: t, bench: newBench(cfg, Kind{})}
		var id byte
		b.play(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				for range rapid.IntRange(1, 12).Draw(t, "n") {
					delay := rapid.SampledFrom([]int64{0, 0, 0, 1, 900, 1500, 5000}).Draw(t, "delay")
					id++
					group := ""
					if tenants {
						group = rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f"}).Draw(t, "group")
					}
					seq, err := b.send(id, group, delay)
					b.must(err)
					x := &modelMessage{seq: seq, lane: layout.GroupLane(group), tenant: layout.GroupLane(group), sent: b.now, ready: b.now + delay, fresh: delay == 0}
					if delay > 0 {
						x.lane = layout.DelayedLane
					}
					ref.messages = append(ref.messages, x)
				}
			},
			"move in": func(t *rapid.T) {
				age := rapid.Int64Range(0, 4_000_000).Draw(t, "age")
				id++
				seq, err := b.moveIn(id, b.now-age)
				b.must(err)
				ref.messages = append(ref.messages, &modelMessage{seq: seq, lane: layout.MovedLane, sent: b.now - age, ready: b.now})
			},
			"receive": func(t *rapid.T) {
				most := rapid.IntRange(1, 10).Draw(t, "max")
				visibility := rapid.SampledFrom([]int64{0, 1, 1000, 30_000}).Draw(t, "visibility")
				waiting := 0
				for _, x := range ref.messages {
					if !x.fresh {
						waiting++
					}
				}
				whole := b.m.due.Whole() || waiting <= windowSize/2 // as many as are read at once
				got, err := b.receive(most, visibility)
				b.must(err)
				exact := whole && waiting <= windowSize && b.m.due.Whole() // memory had all in order
				leases, moves, err := ref.receive(modelReceive{
					now: b.now, visibility: visibility, epoch: b.epoch, leased: len(got.Leases), moved: len(got.Moves),
					chosen: append(sequences(got.Leases), sequences(got.Moves)...), exact: exact,
				}, func(x *modelMessage) bool {
					_, kept := b.store.get(b.m.Keys().Record(x.lane, x.seq))
					return !kept
				})
				b.must(err)
				if tenants || !exact { // which come first is the tenants' matter, or that of the window
					slices.Sort(leases)
					slices.Sort(moves)
					slices.SortFunc(got.Leases, func(a, b Lease) int { return cmp.Compare(a.Sequence, b.Sequence) })
					slices.SortFunc(got.Moves, func(a, b Lease) int { return cmp.Compare(a.Sequence, b.Sequence) })
				}
				if !slices.Equal(sequences(got.Leases), leases) || !slices.Equal(sequences(got.Moves), moves) {
					t.Fatalf("received %v and moved %v, want %v and %v", sequences(got.Leases), sequences(got.Moves), leases, moves)
				}
				for _, l := range got.Leases {
					x := ref.find(l.Sequence)
					if l.Receives != x.receives || l.Sent != x.sent || l.Lane != x.lane {
						t.Fatalf("lease %+v, want %+v", l, x)
					}
					b.handles = append(b.handles, Handle{Sequence: l.Sequence, Lane: l.Lane, Receives: l.Receives, Epoch: l.Epoch})
				}
				for _, l := range got.Moves {
					if rapid.Bool().Draw(t, "moves away") {
						b.must(b.run(Remove{l.Lane, l.Sequence}))
						ref.remove(l.Sequence)
						continue
					}
					b.must(b.run(RejectMove{l.Sequence}))
					x := ref.find(l.Sequence)
					x.leased, x.moving, x.stay, x.ready = false, false, true, b.now
				}
			},
			"delete": func(t *rapid.T) {
				h := b.handle()
				err := b.run(Delete{h})
				if want := ref.find(h.Sequence) != nil; want != (err == nil) {
					t.Fatalf("delete of %d: %v, in the model: %v", h.Sequence, err, want)
				}
				ref.remove(h.Sequence)
			},
			"change visibility": func(t *rapid.T) {
				h := b.handle()
				timeout := rapid.SampledFrom([]int64{0, 1, 2000, 43_200_000, 43_200_001}).Draw(t, "timeout")
				err := b.run(ChangeVisibility{h, timeout})
				if want := ref.changeVisibility(b.now, h, timeout); !errors.Is(err, want) || (want == nil) != (err == nil) {
					t.Fatalf("change of %+v to %d: %v, want %v", h, timeout, err, want)
				}
			},
			"give back": func(t *rapid.T) {
				h := b.handle()
				x := ref.find(h.Sequence)
				if x == nil || !x.leased {
					return
				}
				due := b.now + rapid.SampledFrom([]int64{0, 700, 40_000}).Draw(t, "due")
				l, _ := b.m.Leased(h.Sequence)
				b.must(b.run(Return{Lease: l, Due: due}))
				x.leased, x.ready = false, due
			},
			"sweep": func(t *rapid.T) {
				dropped, err := b.sweep()
				b.must(err)
				for _, seq := range dropped {
					x := ref.find(seq)
					if x == nil || x.sent+cfg.Retention.Milliseconds() > b.now {
						t.Fatalf("swept %d, which is %+v", seq, x)
					}
					ref.remove(seq)
				}
				for _, x := range ref.messages {
					if x.sent+cfg.Retention.Milliseconds() <= b.now {
						t.Fatalf("the sweep left %+v", x)
					}
				}
			},
		}, func() error { return ref.compare(b.bench) })
	})
}

func (m *model) changeVisibility(now int64, h Handle, timeout int64) error {
	m.expire(now)
	x := m.find(h.Sequence)
	switch {
	case x == nil:
		return ErrGone
	case x.moving:
		return ErrNotLeased
	case now+timeout-x.received > maxVisibility:
		return ErrVisibility
	case !x.leased && timeout == 0:
		return nil
	}
	x.leased, x.ready = timeout > 0, now+timeout
	return nil
}

// compare holds counts and records against the model.
func (m *model) compare(b *bench) error {
	m.expire(b.now)
	var visible, inFlight, delayed, leases int64
	for _, x := range m.messages {
		switch {
		case x.leased && (x.moving || x.ready > b.now):
			inFlight++
		case x.ready > b.now:
			delayed++
		default:
			visible++
		}
	}
	if err := b.run(Expire{}); err != nil {
		return err
	}
	got := b.m.Counts(b.now)
	if got.InFlight != inFlight || got.Visible+got.Delayed != visible+delayed {
		return fmt.Errorf("counts %+v, want %d visible, %d in flight, %d delayed", got, visible, inFlight, delayed)
	}
	if b.m.due.Whole() && got.Delayed != delayed {
		return fmt.Errorf("%d delayed, want %d", got.Delayed, delayed)
	}
	if drift := got.Delayed - delayed; drift < 0 {
		return fmt.Errorf("%d delayed, but %d are", got.Delayed, delayed)
	}
	if err := m.compareWaits(b); err != nil {
		return err
	}
	keys := b.m.Keys()
	leases = int64(b.store.count(keys, layout.TagLease))
	due, dueOf := b.store.count(keys, layout.TagDue), b.store.count(keys, layout.TagDueOf)
	if records := b.store.count(keys, layout.TagRecord); records != len(m.messages) || leases != inFlight || due != dueOf {
		return fmt.Errorf("%d records, %d leases, %d and %d due, want %d, %d", records, leases, due, dueOf, len(m.messages), inFlight)
	}
	return nil
}

// compareWaits holds what tenants have waiting, in memory and on disk, against the
// model.
func (m *model) compareWaits(b *bench) error {
	want := map[layout.Lane]fair.Wait{}
	for _, x := range m.messages {
		if x.leased || !x.tenant.Grouped() {
			continue
		}
		w := want[x.tenant]
		w.Messages++
		if !x.fresh {
			w.Scheduled++
		}
		want[x.tenant] = w
	}
	have := map[layout.Lane]fair.Wait{}
	b.store.walk(b.m.Keys().Of(layout.TagTenant), func(key, value []byte) bool {
		tenant := layout.Lane(layout.KeySequence(key))
		have[tenant] = layout.DecodeWait(value)
		if in := b.m.groups.waits.Of(tenant); in != have[tenant] {
			have[tenant] = in
		}
		return true
	})
	if !maps.Equal(want, have) {
		return fmt.Errorf("tenants have waiting %v, want %v", have, want)
	}
	return nil
}
