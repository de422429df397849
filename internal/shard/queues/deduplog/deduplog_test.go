package deduplog_test

import (
	"encoding/binary"
	"log/slog"
	"math/bits"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/queues/deduplog"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// world is a kernel's shard with a log, over a store that outlives it.
type world struct {
	*testing.T
	clock *clock.Virtual
	store store.Store
	shard *kernel.Shard
	log   deduplog.Log
	close func()
}

func open(t *testing.T, st store.Store, c *clock.Virtual) *world {
	t.Helper()
	j := journal.Open(journal.Options{Store: st})
	k := kernel.New(kernel.Options{Journal: j, Clock: c, Logger: slog.New(slog.DiscardHandler)})
	sh := k.OwnShard(keyspace.MetricStream)
	if err := k.Load(); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, clock: c, store: st, shard: sh, log: deduplog.New(k, sh)}
	w.close = func() {
		_ = k.Close()
		j.Close()
		w.close = func() {}
	}
	t.Cleanup(func() { w.close() })
	return w
}

func (w *world) run(command func(now int64)) {
	w.Helper()
	if _, err := w.shard.Run(journal.Eager, func(*kernel.Tx) error {
		command(w.shard.Now())
		return nil
	}); err != nil {
		w.Fatal(err)
	}
	w.shard.Stream.Sync()
}

func (w *world) advance(d time.Duration) {
	w.Helper()
	if _, err := w.clock.Advance(w.Context(), d); err != nil {
		w.Fatal(err)
	}
}

func (w *world) records() (n int) {
	w.Helper()
	for tag, check := range map[byte]func([]byte) bool{
		keyspace.Duplicates: deduplog.CheckRecord, keyspace.DuplicateBatches: deduplog.CheckBatch,
	} {
		if err := store.Each(w.store, keyspace.Prefix(keyspace.Shard(w.shard.ID, tag)), func(_, value []byte) error {
			n++
			if !check(value) {
				w.Errorf("a record of %d bytes", len(value))
			}
			return nil
		}); err != nil {
			w.Fatal(err)
		}
	}
	return n
}

// TestRemembers: for five minutes, each scope for itself, also over a restart; then the
// records go.
func TestRemembers(t *testing.T) {
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC))
	st := memory.New()
	w := open(t, st, c)
	windows := map[string]*dedup.Window{"a": {}, "b": {}}
	scopes := map[string]uint64{"a": 1, "b": 2}
	id, other := dedup.NewID("", "id"), dedup.NewID("", "other")
	first := deduplog.Original{ID: message.ID{1}, Sequence: 7, Found: true}
	expect := func(what string, scope string, id dedup.ID, want deduplog.Original) {
		t.Helper()
		w.run(func(now int64) {
			of := layout.Incarnation(scopes[scope])
			if got := w.log.Recall(windows[scope], of, now, id); got != want {
				t.Errorf("%s: %+v, want %+v", what, got, want)
			}
			if is := w.log.SurelyNew(windows[scope], of, now, id); is && want.Found {
				t.Errorf("%s: it is surely new", what)
			}
		})
	}
	w.run(func(now int64) { w.log.Note(windows["a"], layout.Incarnation(scopes["a"]), now, entry(id, first)) })
	expect("at once", "a", id, first)
	expect("another id", "a", other, deduplog.Original{})
	expect("another queue", "b", id, deduplog.Original{})
	w.advance(4*time.Minute + 59*time.Second)
	expect("just before the end", "a", id, first)
	w.close()
	w = open(t, st, c)
	w.run(func(now int64) {
		for name, scope := range scopes {
			windows[name] = w.log.Load(layout.Incarnation(scope), now)
		}
	})
	expect("after a restart", "a", id, first)
	expect("another queue, after a restart", "b", id, deduplog.Original{})
	w.advance(time.Second)
	expect("five minutes later", "a", id, deduplog.Original{})
	if n := w.records(); n != 1 {
		t.Errorf("%d records", n)
	}
	w.advance(2 * time.Minute)
	w.run(func(now int64) { w.log.Note(windows["b"], layout.Incarnation(scopes["b"]), now, entry(other, first)) })
	if n := w.records(); n != 1 {
		t.Errorf("%d records once those of the first are over", n)
	}
}

func entry(id dedup.ID, o deduplog.Original) deduplog.Entry {
	return deduplog.Entry{Dedup: id, ID: o.ID, Sequence: o.Sequence}
}

// TestRemembersBatches: messages that were accepted together have one record, in which each is
// found for five minutes, also over a restart.
func TestRemembersBatches(t *testing.T) {
	const scope, other = layout.Incarnation(1), layout.Incarnation(2)
	w := open(t, memory.New(), clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)))
	window := &dedup.Window{}
	number := uint64(100)
	var accepted []deduplog.Entry
	accept := func(n int) {
		t.Helper()
		var batch []deduplog.Entry
		for range n {
			number++
			id := message.ID{byte(number)}
			batch = append(batch, deduplog.Entry{Dedup: dedup.NewID("", id.String()), ID: id, Sequence: number})
		}
		w.run(func(now int64) { w.log.Note(window, scope, now, batch...) })
		accepted = append(accepted, batch...)
	}
	expect := func(when string, found bool) {
		t.Helper()
		w.run(func(now int64) {
			for _, e := range accepted {
				want := deduplog.Original{}
				if found {
					want = deduplog.Original{ID: e.ID, Sequence: e.Sequence, Found: true}
				}
				if got := w.log.Recall(window, scope, now, e.Dedup); got != want {
					t.Errorf("%s: %d is %+v", when, e.Sequence, got)
				}
				if is := w.log.SurelyNew(window, scope, now, e.Dedup); is && found {
					t.Errorf("%s: %d is surely new", when, e.Sequence)
				}
				if got := w.log.Recall(w.log.Load(other, now), other, now, e.Dedup); got.Found {
					t.Errorf("%s: another queue has %+v", when, got)
				}
			}
			if got := w.log.Recall(window, scope, now, dedup.NewID("", "new")); got.Found {
				t.Errorf("%s: a new id is %+v", when, got)
			}
		})
	}
	for _, n := range []int{10, 1, 2, 10} {
		accept(n)
		expect("at once", true)
	}
	if n := w.records(); n != 4 {
		t.Errorf("%d records of three batches and a message", n)
	}
	w.advance(5*time.Minute - time.Millisecond)
	w.close()
	w = open(t, w.store, w.clock)
	w.run(func(now int64) { window = w.log.Load(scope, now) })
	expect("after a restart", true)
	w.advance(time.Millisecond)
	expect("five minutes later", false)
	w.advance(2 * time.Minute)
	accepted = nil
	accept(2)
	expect("a later batch", true)
	if n := w.records(); n != 1 {
		t.Errorf("%d records once those of the first are over", n)
	}
}

// A bucket whose index is full gets a record a message.
func TestManyBatches(t *testing.T) {
	const scope = layout.Incarnation(1)
	w := open(t, memory.New(), clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)))
	window, minute := &dedup.Window{}, dedup.Minute(w.shard.Now())
	for number := uint64(1); window.TakesBatch(minute, number); number++ { // as if they were there
		var id dedup.ID
		binary.BigEndian.PutUint32(id[:], bits.Reverse32(uint32(number)))
		window.AddBatched(minute, number, id)
	}
	var batch []deduplog.Entry
	for i := range 10 {
		batch = append(batch, deduplog.Entry{Dedup: dedup.NewID("", message.ID{byte(i)}.String()), ID: message.ID{byte(i)}, Sequence: 1<<40 + uint64(i)})
	}
	w.run(func(now int64) { w.log.Note(window, scope, now, batch...) })
	if n := w.records(); n != len(batch) {
		t.Errorf("%d records", n)
	}
	w.run(func(now int64) {
		for _, e := range batch {
			if got := w.log.Recall(window, scope, now, e.Dedup); !got.Found || got.ID != e.ID || got.Sequence != e.Sequence {
				t.Errorf("%d is %+v", e.Sequence, got)
			}
		}
	})
	if !window.TakesBatch(minute+1, 1<<41) {
		t.Error("the next minute takes no batch")
	}
}

// What a queue loads at a start is freed once it has expired, though the queue is used no more.
func TestLoadedExpires(t *testing.T) {
	const scope = layout.Incarnation(1)
	w := open(t, memory.New(), clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)))
	accepted := deduplog.Entry{Dedup: dedup.NewID("", "id"), ID: message.ID{1}, Sequence: 7}
	w.run(func(now int64) { w.log.Note(&dedup.Window{}, scope, now, accepted) })
	w.close()
	w = open(t, w.store, w.clock)
	if at := w.log.NextDue(); at != 0 {
		t.Errorf("due at %d before anything is loaded", at)
	}
	var window *dedup.Window
	w.run(func(now int64) {
		window = w.log.Load(scope, now)
		if at, want := w.log.NextDue(), now+(6*time.Minute).Milliseconds(); at != want {
			t.Errorf("due at %d, want %d", at, want)
		}
	})
	if n := window.Len(); n != 1 {
		t.Errorf("%d minutes are loaded", n)
	}
	w.advance(6 * time.Minute)
	w.run(w.log.Expire)
	if n, at := window.Len(), w.log.NextDue(); n != 0 || at != 0 {
		t.Errorf("%d minutes are left, and the next is due at %d", n, at)
	}
}

// The buckets that have expired are dropped once a minute, not with each message.
func TestExpiredBucketsAreDroppedOnce(t *testing.T) {
	w := open(t, memory.New(), clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)))
	window, number := &dedup.Window{}, uint64(0)
	drops := func() (n int) {
		t.Helper()
		number++
		w.run(func(now int64) {
			w.log.Note(window, 1, now, deduplog.Entry{Dedup: dedup.NewID("", message.ID{byte(number)}.String()), Sequence: number})
			if err := w.shard.Batch.Each(func(op mutation.Op, _, _ []byte) error {
				if op == mutation.DeleteRange {
					n++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
		return n
	}
	for _, minute := range []string{"the first", "the next"} {
		if n := drops(); n != 2 { // of single messages and of batches
			t.Errorf("%d drops in %s minute", n, minute)
		}
		if n := drops(); n != 0 {
			t.Errorf("%d more drops in %s minute", n, minute)
		}
		w.advance(time.Minute)
	}
}
