package queue

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
)

// makeOld gives the records the form that an older version wrote: all groups listed by
// the sequences of their first messages, and no turns.
func (t *bench) makeOld() error {
	k := t.m.Keys()
	type old struct{ key, value []byte }
	var set, gone []old
	t.store.walk(k.Of(layout.TagReturned), func(key, value []byte) bool {
		lane, seq, _ := layout.DecodeReturned(value)
		t.batch.SingleDelete(slices.Clone(key))
		layout.PutListing(&t.batch, slices.Clone(k.Listed(seq)), layout.Listing{Lane: lane, At: layout.KeyTime(key), Returned: true})
		return true
	})
	for _, kind := range []layout.Tag{layout.TagHeld, layout.TagLease} {
		t.store.walk(k.Of(kind), func(key, value []byte) bool {
			gone = append(gone, old{key: slices.Clone(key)})
			set = append(set, old{slices.Clone(key), slices.Clone(value[:57])})
			return true
		})
	}
	for _, o := range gone {
		t.batch.SingleDelete(o.key)
	}
	if err := t.store.apply(&t.batch); err != nil {
		return err
	}
	for _, o := range set {
		t.batch.Set(o.key, o.value)
	}
	value, _ := t.store.get(k.Counters())
	c, err := layout.DecodeCounters(value)
	if err != nil {
		return err
	}
	c.Listed, c.Back, c.Turn = c.Listed+c.Back, 0, 0
	t.batch.Set(k.Counters(), c.Append(nil))
	return t.store.apply(&t.batch)
}

// makeAged has the order of expiries as an older version wrote it, with all messages.
func (t *bench) makeAged() error {
	if t.m.counters.HeldAges == 0 {
		return nil
	}
	k := t.m.Keys()
	t.store.walk(k.Of(layout.TagExpiry), func(key, _ []byte) bool {
		t.batch.SingleDelete(slices.Clone(key))
		return true
	})
	if err := t.store.apply(&t.batch); err != nil {
		return err
	}
	t.store.walk(k.Of(layout.TagRecord), func(key, value []byte) bool {
		sent, _ := message.RecordSent(value)
		layout.PutNumber(&t.batch, k.Expiry(sent, layout.KeySequence(key)), uint64(layout.KeyLane(key)))
		return true
	})
	t.m.counters.HeldAges = 0
	return t.write()
}

// TestOldAges: in a FIFO queue of an older version all messages stand in the order of
// expiries, until it has been empty.
func TestOldAges(t *testing.T) {
	b := newBench(Config{Visibility: 30 * time.Second, Retention: time.Hour}, Kind{FIFO: true})
	send := func() {
		t.Helper()
		if _, err := b.send(1, "g", 0); err != nil {
			t.Fatal(err)
		}
	}
	expiries := func(want int) {
		t.Helper()
		if n := b.store.count(b.m.Keys(), layout.TagExpiry); n != want {
			t.Errorf("%d messages stand in the order of expiries, want %d", n, want)
		}
	}
	send()
	expiries(0)
	if err := errors.Join(b.makeAged(), b.reopen()); err != nil {
		t.Fatal(err)
	}
	send()
	expiries(2)
	for range 2 {
		r, err := b.receive(1, 30_000)
		if err != nil || len(r.Leases) != 1 {
			t.Fatal(r, err)
		}
		l := r.Leases[0]
		if err := b.run(Delete{Handle{Sequence: l.Sequence, Lane: l.Lane, Receives: l.Receives, Epoch: l.Epoch}}); err != nil {
			t.Fatal(err)
		}
	}
	expiries(0)
	send()
	expiries(0)
}

// TestOldOrder: the orders of a FIFO queue that an older version left are rebuilt, also
// where a crash comes in between, and from then on are as if there had been no other.
func TestOldOrder(t *testing.T) {
	defer func(n, o int) { resortStep, orderSize = n, o }(resortStep, orderSize)
	resortStep, orderSize = 16, 8
	const groups = 50
	for _, crash := range []int{0, 1, 2} {
		t.Run(fmt.Sprint("crash after step ", crash), func(t *testing.T) {
			b := newBench(Config{Visibility: 30 * time.Second, Retention: time.Hour}, Kind{FIFO: true})
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			for i := range groups {
				_, err := b.send(byte(i), fmt.Sprint(i), 0)
				must(err)
			}
			b.now++
			var first, leases []Lease
			for len(leases) < groups-1 { // the last group is never received from
				r, err := b.receive(min(10, groups-1-len(leases)), 30_000)
				must(err)
				leases = append(leases, r.Leases...)
			}
			// They come back in the opposite order, but for the first three.
			first, leases = leases[:3], leases[3:]
			slices.Reverse(leases)
			for _, l := range leases {
				b.now++
				must(b.run(ChangeVisibility{Handle{Sequence: l.Sequence, Lane: l.Lane, Receives: l.Receives, Epoch: l.Epoch}, 0}))
			}
			must(b.makeOld())
			must(b.reopen())
			for range crash {
				var r Result
				need, err := b.m.Step(&b.batch, b.now, Probe{}, &r)
				must(err)
				if _, err := b.m.Fill(b, need); err != nil {
					t.Fatal(err)
				}
				if need, err = b.m.Step(&b.batch, b.now, Probe{}, &r); err != nil || need.Nothing() {
					t.Fatal(need, err)
				}
				must(b.write())
				must(b.reopen())
			}
			b.now += 40_000
			want := []uint64{groups}
			for _, l := range append(leases, first...) {
				want = append(want, l.Sequence)
			}
			var got []uint64
			for len(got) < groups {
				r, err := b.receive(10, 3_600_000)
				must(err)
				got = append(got, sequences(r.Leases)...)
			}
			if !slices.Equal(got, want) {
				t.Errorf("received %v, want %v", got, want)
			}
			if len(b.broken) > 0 || b.m.Stale() || b.store.count(b.m.Keys(), layout.TagListed) != 0 || b.store.count(b.m.Keys(), layout.TagReturned) != 0 {
				t.Errorf("corrected %v, stale %v", b.broken, b.m.Stale())
			}
		})
	}
}
