package queue

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// strictStore applies batches to a map, and holds machines to the rules that
// a real store relies on: a SingleDelete meets exactly one Set, and a record
// that is written once is never written over.
type strictStore struct {
	values map[string][]byte
	sets   map[string]int
}

func newStrictStore() *strictStore {
	return &strictStore{values: map[string][]byte{}, sets: map[string]int{}}
}

func (s *strictStore) apply(b *mutation.Batch) error {
	err := b.Each(func(op mutation.Op, key, value []byte) error {
		k := string(key)
		switch op {
		case mutation.Set:
			s.values[k] = bytes.Clone(value)
			s.sets[k]++
		case mutation.Delete:
			delete(s.values, k)
			delete(s.sets, k)
		case mutation.SingleDelete:
			if s.sets[k] != 1 {
				return fmt.Errorf("SingleDelete of %q, which was set %d times", k, s.sets[k])
			}
			delete(s.values, k)
			delete(s.sets, k)
		case mutation.DeleteRange:
			for have := range s.values {
				if have >= k && have < string(value) {
					delete(s.values, have)
					delete(s.sets, have)
				}
			}
		}
		return nil
	})
	b.Reset()
	return err
}

func (s *strictStore) get(key []byte) ([]byte, bool) {
	v, ok := s.values[string(key)]
	return v, ok
}

func (s *strictStore) walk(span layout.Span, f func(key, value []byte) bool) {
	for _, k := range slices.Sorted(maps.Keys(s.values)) {
		if k >= string(span.Lower) && k < string(span.Upper) && !f([]byte(k), s.values[k]) {
			return
		}
	}
}

// count is the number of records of a kind.
func (s *strictStore) count(k *layout.Keys, kind layout.Kind) (n int) {
	s.walk(k.Of(kind), func(_, _ []byte) bool { n++; return true })
	return n
}

// bench drives a machine over a strict store the way a shard does.
type bench struct {
	store  *strictStore
	m      *Machine
	cfg    Config
	kind   Kind
	now    int64
	epoch  uint32
	batch  mutation.Batch
	broken []string // counters that disagreed with records
	// restless is every other time: an empty queue need not rest.
	restless bool
}

func newBench(cfg Config, kind Kind) *bench {
	return &bench{store: newStrictStore(), cfg: cfg, kind: kind, now: 10_000_000, epoch: 1, m: New(layout.NewKeys(3, 7), cfg, kind)}
}

// commit writes what a command changed, with the counters.
func (t *bench) commit() error {
	if t.restless = !t.restless; !t.restless { // a shard lets it rest now and then
		defer t.m.Rest()
	}
	return t.write()
}

func (t *bench) write() error {
	t.m.PutTenants(&t.batch)
	t.batch.Set(t.m.Keys().Counters(), t.m.AppendCounters(nil))
	return t.store.apply(&t.batch)
}

func (t *bench) fill(need Need) error {
	if err := t.write(); err != nil {
		return err
	}
	var failed error
	switch need.Kind {
	case NeedGroup:
		value, _ := t.store.get(t.m.Keys().Group(need.Lane))
		t.m.FillGroup(need.Lane, value)
	case NeedState:
		record, exists := t.store.get(t.m.Keys().Record(need.Lane, need.Sequence))
		sent, _ := message.RecordSent(record)
		var scheduled []byte
		if due, ok := t.store.get(t.m.Keys().DueOf(need.Sequence)); ok {
			scheduled, _ = t.store.get(t.m.Keys().Due(int64(layout.Number(due)), need.Sequence))
		}
		failed = t.m.FillState(need, exists, sent, scheduled)
	default:
		n, exhausted := 0, true
		t.store.walk(t.m.Span(need), func(key, value []byte) bool {
			if n == need.Limit && n > 0 {
				exhausted = false
				return false
			}
			n++
			failed = t.m.Fill(need, key, value)
			return failed == nil
		})
		if !t.m.FillEnd(need, exhausted) {
			t.broken = append(t.broken, fmt.Sprintf("fill of kind %d", need.Kind))
		}
	}
	return failed
}

// run repeats a command until it needs nothing more, and commits it.
func (t *bench) run(command func() (Need, error)) error {
	for {
		need, err := command()
		if need.Kind == NeedNothing {
			if e := t.commit(); e != nil {
				return e
			}
			return err
		}
		if err := t.fill(need); err != nil {
			return err
		}
	}
}

func (t *bench) send(id byte, group string, delay int64) (uint64, error) {
	m := message.Message{ID: message.ID{id}, Sent: t.now, Group: group, Body: []byte{id}}
	return t.accept(Arrival{Record: m.AppendRecord(nil), Sent: t.now, Due: t.now + delay, Lane: layout.GroupLane(group)})
}

func (t *bench) moveIn(id byte, sent int64) (uint64, error) {
	m := message.Message{ID: message.ID{id}, Sent: sent, Body: []byte{id}}
	return t.accept(Arrival{Record: m.AppendRecord(nil), Sent: sent, Moved: true})
}

func (t *bench) accept(a Arrival) (seq uint64, err error) {
	err = t.run(func() (Need, error) {
		need := t.m.PrepareAccept(a.Lane)
		if need.Kind == NeedNothing {
			seq = t.m.Accept(&t.batch, t.now, a)
		}
		return need, nil
	})
	return seq, err
}

// receive is one receive as a shard runs it: it ends with something, or when
// nothing is available.
func (t *bench) receive(most int, visibility int64) (r Receive, err error) {
	for {
		for {
			need := t.m.Prepare(t.now, most)
			if need.Kind == NeedNothing {
				break
			}
			if err := t.fill(need); err != nil {
				return r, err
			}
		}
		step := Receive{Max: most, Visibility: visibility, Epoch: t.epoch}
		if err := t.m.Receive(&t.batch, t.now, &step); err != nil {
			return r, err
		}
		if err := t.commit(); err != nil {
			return r, err
		}
		r.Leases, r.Moves = step.Leases, append(r.Moves, step.Moves...)
		if len(r.Leases) > 0 {
			return r, nil
		}
		for {
			more, need := t.m.Available(t.now)
			if need.Kind == NeedNothing {
				if !more {
					return r, nil
				}
				break
			}
			if err := t.fill(need); err != nil {
				return r, err
			}
		}
	}
}

// reopen replaces the machine by one that is loaded from the store.
func (t *bench) reopen() error {
	t.epoch++
	t.m = New(layout.NewKeys(3, 7), t.cfg, t.kind)
	value, ok := t.store.get(t.m.Keys().Counters())
	if !ok {
		return nil
	}
	if err := t.m.Load(value, t.now); err != nil {
		return err
	}
	for need := range t.m.LoadNeeds() {
		if err := t.fill(need); err != nil {
			return err
		}
	}
	return nil
}

// sweep drops what is past its retention, as a shard does.
func (t *bench) sweep() (dropped []uint64, err error) {
	cutoff, due := t.m.SweepDue(t.now)
	if !due {
		return nil, nil
	}
	mainLow, delayedLow := t.m.Lows()
	var oldest int64
	keep := func(sent int64) bool {
		if sent > cutoff {
			if oldest == 0 || sent < oldest {
				oldest = sent
			}
			return true
		}
		return false
	}
	var found []Expired
	for lane, low := range map[layout.Lane]*uint64{layout.MainLane: &mainLow, layout.DelayedLane: &delayedLow} {
		t.store.walk(t.m.Keys().Lane(lane, *low), func(key, value []byte) bool {
			sent, _ := message.RecordSent(value)
			*low = layout.KeySequence(key)
			if keep(sent) {
				return false
			}
			found = append(found, Expired{Lane: lane, Sequence: *low})
			return true
		})
	}
	t.store.walk(t.m.Keys().Of(layout.KindExpiry), func(key, value []byte) bool {
		if keep(layout.KeyTime(key)) {
			return false
		}
		found = append(found, Expired{Lane: layout.Lane(binary.BigEndian.Uint64(value)), Sequence: layout.KeySequence(key)})
		return true
	})
	for _, e := range found {
		if err := t.run(func() (Need, error) { return t.m.Remove(&t.batch, t.now, e.Lane, e.Sequence) }); err != nil {
			return dropped, err
		}
		dropped = append(dropped, e.Sequence)
	}
	t.m.Swept(t.now, mainLow, delayedLow, oldest, false)
	return dropped, t.commit()
}
