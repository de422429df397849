package queue

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// FuzzLoad: what a machine is loaded with is what it writes, but for what it
// counts itself.
func FuzzLoad(f *testing.F) {
	f.Add((&layout.Counters{Next: 9, Head: 4, Fresh: 3, LowMain: 2}).Append(nil))
	f.Add((&layout.Counters{Next: 9, Head: 4, Grouped: 1, Listed: 1}).Append(nil))
	f.Add((&layout.Counters{Next: 48, Leased: 48, LowMain: 48, Listed: 48}).Append(nil)) // without a lease it is empty
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, p []byte) {
		m := New(layout.NewKeys(1, 1), Config{}, Kind{})
		if _, err := m.load(p, 1); err != nil {
			if !errors.Is(err, layout.ErrCorrupt) {
				t.Fatalf("%d bytes: %v", len(p), err)
			}
			return
		}
		m.Hibernate() // as Load does, once it has read the leases
		again := New(layout.NewKeys(1, 1), Config{}, Kind{})
		written := m.appendCounters(nil)
		if _, err := again.load(written, 1); err != nil || !bytes.Equal(again.appendCounters(nil), written) {
			t.Fatalf("read %x, wrote %x, %v", p, written, err)
		}
	})
}

// FuzzFill hands a machine what a damaged store might hold.
func FuzzFill(f *testing.F) {
	f.Add([]byte("0123456789abcdef"), (&layout.State{}).Append(nil))
	f.Add([]byte("0123456789abcdef"), make([]byte, 17))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		if len(key) < 8 {
			return // no store gives one: it is not within a span
		}
		m := New(layout.NewKeys(1, 1), Config{}, Kind{FIFO: len(key)%2 == 0})
		m.wake()
		errs := []error{m.fillState(Need{sequence: 1}, true, 1, 1, value)}
		for _, kind := range []needKind{needLane, needHeld, needDue, needOrder, needLeases, needBuckets, needTenants} {
			errs = append(errs, m.fill(newBench(Config{}, Kind{}), Need{kind: kind, lane: layout.GroupLanes}, key, value))
		}
		m.fillGroup(layout.GroupLanes, value)
		_, err := m.load(value, 1)
		for _, err := range append(errs, err) {
			if err != nil && !errors.Is(err, layout.ErrCorrupt) && !errors.Is(err, message.ErrCorrupt) {
				t.Fatal(err)
			}
		}
	})
}

// restingUntouched: what all empty machines share is as it was made.
func restingUntouched(t *testing.T) {
	t.Helper()
	if !reflect.DeepEqual(hibernated, newContent()) {
		t.Error("a machine has changed what all empty ones share")
	}
}

// An empty queue that hibernates is as small as one that was never used, and continues
// where it was; one that is not empty does not.
func TestHibernate(t *testing.T) {
	for _, kind := range []Kind{{}, {FIFO: true}, {Backlog: true}} {
		b := newBench(Config{Visibility: time.Minute, Retention: time.Hour}, kind)
		for want := uint64(1); want < 4; want++ {
			if seq, err := b.send(1, "g", 0); err != nil || seq != want {
				t.Fatalf("sequence %d, %v; want %d", seq, err, want)
			}
			if b.m.Hibernate(); b.m.content == hibernated || b.m.Counts(b.now).Visible != 1 {
				t.Fatalf("%+v: it hibernates with %+v", kind, b.m.Counts(b.now))
			}
			r := b.mustReceive(t, 1000)
			if b.m.Hibernate(); b.m.content == hibernated {
				t.Fatalf("%+v: it hibernates with a lease", kind)
			}
			l := r.Leases[0]
			if err := b.run(Remove{l.Lane, l.Sequence}); err != nil {
				t.Fatal(err)
			}
			if b.m.Hibernate(); b.m.content != hibernated || unsafe.Sizeof(*b.m) > 80 {
				t.Fatalf("%+v: it is empty and does not hibernate, or is of %d bytes", kind, unsafe.Sizeof(*b.m))
			}
			if err := b.reopen(); err != nil {
				t.Fatal(err)
			}
			if b.m.content != hibernated {
				t.Fatalf("%+v: it is empty and does not hibernate after a restart", kind)
			}
		}
	}
	restingUntouched(t)
}
