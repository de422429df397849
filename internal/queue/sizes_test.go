package queue

import (
	"testing"
	"time"

	"godwit.dev/godwit/internal/queue/layout"
)

// forgetSizes has the store be as an older version wrote it, which did not count the bytes of
// messages.
func (t *bench) forgetSizes() error {
	k := t.m.Keys()
	for _, kind := range []layout.Tag{layout.TagDue, layout.TagLease, layout.TagHeld} {
		var failed error
		t.store.walk(k.Of(kind), func(key, value []byte) bool {
			s, err := layout.DecodeState(key, value)
			if failed = err; err == nil {
				s.Size = 0
				t.store.values[string(key)] = s.Append(nil)
			}
			return err == nil
		})
		if failed != nil {
			return failed
		}
	}
	key := string(k.Counters())
	value, ok := t.store.values[key]
	if !ok {
		return nil
	}
	c, err := layout.DecodeCounters(value)
	if err != nil {
		return err
	}
	c.Bytes = 0
	t.store.values[key] = c.Append(nil)
	return nil
}

// The bytes of messages are those of their records, in whatever state they are, from one
// process to the next, and also where an older version did not count them.
func TestBytes(t *testing.T) {
	for _, kind := range []Kind{{}, {FIFO: true}, {Backlog: true}, {Backlog: true, FIFO: true}} {
		for _, forget := range []bool{false, true} {
			b := newBench(Config{Visibility: 30 * time.Second, Retention: time.Hour}, kind)
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			reopen := func() {
				t.Helper()
				if forget {
					must(b.forgetSizes())
				}
				must(b.reopen())
				if have := b.store.size(b.m.Keys()); b.m.Bytes() != have || have == 0 {
					t.Errorf("%+v: %d bytes of messages are said to be %d", kind, have, b.m.Bytes())
				}
			}
			for id := range byte(10) {
				delay := int64(0)
				if id > 6 && !kind.FIFO {
					delay = 60_000
				}
				_, err := b.send(id, "g", delay)
				must(err)
			}
			reopen()
			got, err := b.receive(4, 30_000)
			must(err)
			reopen()
			for i, l := range got.Leases {
				if l, ok := b.m.Leased(l.Sequence); ok && i%2 == 0 {
					must(b.run(Return{Lease: l, Due: b.now}))
				}
			}
			reopen()
			b.now += 120_000
			for _, l := range b.m.Leases() {
				must(b.run(Remove{Lane: l.Lane, Sequence: l.Sequence}))
			}
			for range 10 {
				got, err := b.receive(3, 30_000)
				must(err)
				for _, l := range got.Leases {
					must(b.run(Remove{Lane: l.Lane, Sequence: l.Sequence}))
				}
			}
			if b.m.Bytes() != 0 || !b.m.Empty() || len(b.broken) > 0 {
				t.Errorf("%+v: %d bytes without a message, %q", kind, b.m.Bytes(), b.broken)
			}
		}
	}
}
