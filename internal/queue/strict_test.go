package queue

import (
	"bytes"
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
func (s *strictStore) count(k *layout.Keys, kind layout.Tag) (n int) {
	s.walk(k.Of(kind), func(_, _ []byte) bool { n++; return true })
	return n
}

// size is that of the records of all messages, in bytes.
func (s *strictStore) size(k *layout.Keys) (n int64) {
	s.walk(k.Of(layout.TagRecord), func(_, value []byte) bool { n += int64(len(value)); return true })
	return n
}

// bench drives a machine over a strict store the way a shard does.
type bench struct {
	store   *strictStore
	m       *Machine
	cfg     Config
	kind    Kind
	now     int64
	epoch   uint32
	batch   mutation.Batch
	saved   Saved
	commits uint64
	broken  []string // counters that disagreed with records
	visited int      // records that scans have passed to the machine
	// restless is every other time: an empty queue need not rest.
	restless bool
}

func newBench(cfg Config, kind Kind) *bench {
	return &bench{store: newStrictStore(), cfg: cfg, kind: kind, now: 10_000_000, epoch: 1, m: New(layout.NewKeys(3, 7), cfg, kind)}
}

// commit writes what a command changed, with the counters.
func (t *bench) commit() error {
	if t.restless = !t.restless; !t.restless { // a shard lets it rest now and then
		defer t.m.Hibernate()
	}
	if err := t.write(); err != nil {
		return err
	}
	if have := t.store.size(t.m.Keys()); have != t.m.Bytes() {
		t.broken = append(t.broken, fmt.Sprintf("%d bytes of messages are said to be %d", have, t.m.Bytes()))
	}
	return nil
}

func (t *bench) write() error {
	t.commits++
	t.m.Save(&t.batch, t.commits, &t.saved)
	return t.store.apply(&t.batch)
}

// Flush, Get and Scan make the bench a Reader.
func (t *bench) Flush() error { return t.write() }

func (t *bench) Get(key []byte) ([]byte, bool, error) {
	value, ok := t.store.get(key)
	return value, ok, nil
}

func (t *bench) Scan(span layout.Span, f func(key, value []byte) bool) error {
	t.store.walk(span, func(key, value []byte) bool {
		t.visited++
		return f(key, value)
	})
	return nil
}

// do runs a command and commits it.
func (t *bench) do(c Command) (Result, error) {
	r, err := t.m.Do(t, &t.batch, t.now, c)
	if r.Corrected {
		t.broken = append(t.broken, fmt.Sprintf("%T", c))
	}
	if e := t.commit(); e != nil {
		return r, e
	}
	return r, err
}

// run is do for a command whose result is its error.
func (t *bench) run(c Command) error {
	_, err := t.do(c)
	return err
}

func (t *bench) send(id byte, group string, delay int64) (uint64, error) {
	m := message.Message{ID: message.ID{id}, Sent: t.now, Group: group, Body: make([]byte, 1+id%5)}
	return t.accept(Arrival{Record: m.AppendRecord(nil), Sent: t.now, Due: t.now + delay, Lane: layout.GroupLane(group)})
}

func (t *bench) moveIn(id byte, sent int64) (uint64, error) {
	m := message.Message{ID: message.ID{id}, Sent: sent, Body: make([]byte, 1+id%5)}
	return t.accept(Arrival{Record: m.AppendRecord(nil), Sent: sent, Moved: true})
}

func (t *bench) accept(a Arrival) (seq uint64, err error) {
	r, err := t.do(Accept{a})
	return r.Sequence, err
}

// receive is one receive as a shard runs it: it ends with something, or when
// nothing is available.
func (t *bench) receive(limit int, visibility int64) (all Result, err error) {
	for {
		r, err := t.do(Receive{Max: limit, Visibility: visibility, Epoch: t.epoch})
		if err != nil {
			return all, err
		}
		all.Leases, all.Moves = r.Leases, append(all.Moves, r.Moves...)
		if len(all.Leases) > 0 {
			return all, nil
		}
		if r, err = t.m.Do(t, &t.batch, t.now, Probe{}); err != nil || !r.Found {
			return all, err
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
	corrected, err := t.m.Load(t, value, t.now)
	if corrected {
		t.broken = append(t.broken, "loaded")
	}
	return err
}

// sweep drops what is past its retention, and reports what that was.
func (t *bench) sweep() (dropped []uint64, err error) {
	kept := func() map[uint64]bool {
		all := map[uint64]bool{}
		t.store.walk(t.m.Keys().Of(layout.TagRecord), func(key, _ []byte) bool {
			all[layout.KeySequence(key)] = true
			return true
		})
		return all
	}
	before := kept()
	r, err := t.do(Sweep{})
	after := kept()
	for seq := range before {
		if !after[seq] {
			dropped = append(dropped, seq)
		}
	}
	if err == nil && len(dropped) != r.Removed {
		err = fmt.Errorf("swept %d, and says %d", dropped, r.Removed)
	}
	return dropped, err
}
