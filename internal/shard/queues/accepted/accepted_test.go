package accepted_test

import (
	"encoding/binary"
	"log/slog"
	"strconv"
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
	"godwit.dev/godwit/internal/shard/queues/accepted"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
)

// world is a kernel's shard with a log, over a store that outlives it.
type world struct {
	*testing.T
	clock *clock.Virtual
	store store.Store
	shard *kernel.Shard
	log   accepted.Log
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
	w := &world{T: t, clock: c, store: st, shard: sh, log: accepted.New(k, sh)}
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
	if _, err := w.shard.Run(true, func(*kernel.Tx) error {
		command(w.shard.Now())
		return nil
	}); err != nil {
		w.Fatal(err)
	}
	w.shard.Log.Sync()
}

func (w *world) advance(d time.Duration) {
	w.Helper()
	if _, err := w.clock.Advance(w.Context(), d); err != nil {
		w.Fatal(err)
	}
}

func (w *world) records() (n int) {
	w.Helper()
	if err := store.Each(w.store, keyspace.Prefix(keyspace.Shard(w.shard.ID, keyspace.Duplicates)), func(_, value []byte) bool {
		n++
		if !accepted.CheckRecord(value) {
			w.Errorf("a record of %d bytes", len(value))
		}
		return true
	}); err != nil {
		w.Fatal(err)
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
	first := accepted.Original{ID: message.ID{1}, Sequence: 7, Found: true}
	entry := accepted.Entry{Dedup: id, ID: first.ID, Sequence: first.Sequence}
	expect := func(what string, scope string, id dedup.ID, want accepted.Original) {
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
	w.run(func(now int64) { w.log.Note(windows["a"], layout.Incarnation(scopes["a"]), now, entry) })
	expect("at once", "a", id, first)
	expect("another id", "a", other, accepted.Original{})
	expect("another queue", "b", id, accepted.Original{})
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
	expect("another queue, after a restart", "b", id, accepted.Original{})
	w.advance(time.Second)
	expect("five minutes later", "a", id, accepted.Original{})
	if n := w.records(); n != 1 {
		t.Errorf("%d records", n)
	}
	w.advance(2 * time.Minute)
	w.run(func(now int64) {
		w.log.Note(windows["b"], layout.Incarnation(scopes["b"]), now, accepted.Entry{Dedup: other})
	})
	if n := w.records(); n != 1 {
		t.Errorf("%d records once those of the first are over", n)
	}
}

// TestManyOfOneCommand: what a command accepts is in few records, each of which is found by
// each of its ids, and what comes after a restart does not take their places.
func TestManyOfOneCommand(t *testing.T) {
	const scope, many = layout.Incarnation(3), 150
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC))
	st := memory.New()
	w := open(t, st, c)
	window := &dedup.Window{}
	var all []accepted.Entry
	note := func(n int) {
		t.Helper()
		first := len(all)
		for range n {
			i := len(all)
			all = append(all, accepted.Entry{Dedup: dedup.NewID("", strconv.Itoa(i)), ID: message.ID{byte(i)}, Sequence: uint64(i)})
		}
		w.run(func(now int64) { w.log.Note(window, scope, now, all[first:]...) })
	}
	check := func(records int) {
		t.Helper()
		if n := w.records(); n != records {
			t.Errorf("%d records, want %d", n, records)
		}
		w.run(func(now int64) {
			for i, e := range all {
				if got, want := w.log.Recall(window, scope, now, e.Dedup), (accepted.Original{ID: e.ID, Sequence: e.Sequence, Found: true}); got != want {
					t.Errorf("%d: %+v, want %+v", i, got, want)
				}
			}
			if !w.log.SurelyNew(window, scope, now, dedup.NewID("", "new")) {
				t.Error("what is new is not")
			}
		})
	}
	note(many)
	note(1)
	note(0)
	check(4)
	w.close()
	w = open(t, st, c)
	w.run(func(now int64) { window = w.log.Load(scope, now) })
	check(4)
	note(10)
	check(5)
}

// TestRecordsOfAnOlderVersion: a record for each id, under the id, is found as long as it
// lives, beside those of this version.
func TestRecordsOfAnOlderVersion(t *testing.T) {
	const scope = layout.Incarnation(3)
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC))
	st := memory.New()
	old, young := dedup.NewID("", "old"), dedup.NewID("", "young")
	id := message.ID{9}
	now := c.Now().UnixMilli()
	w := open(t, st, c)
	key := keyspace.Shard(w.shard.ID, keyspace.Duplicates)
	key = binary.BigEndian.AppendUint64(key, uint64(dedup.Minute(now)))
	key = binary.BigEndian.AppendUint64(key, uint64(scope))
	value := binary.BigEndian.AppendUint64(nil, uint64(now))
	value = append(binary.BigEndian.AppendUint64(value, 7), id[:]...)
	if !accepted.CheckSingle(value) {
		t.Error("it cannot be read")
	}
	var b mutation.Batch
	b.Set(append(key, old[:]...), value)
	if err := st.Apply(true, &b); err != nil {
		t.Fatal(err)
	}
	expect := func(what string, sequence uint64, found bool) {
		t.Helper()
		w.run(func(now int64) {
			window := w.log.Load(scope, now)
			if got, want := w.log.Recall(window, scope, now, old), (accepted.Original{ID: id, Sequence: 7, Found: true}); found && got != want || !found && got.Found {
				t.Errorf("%s: %+v, want %+v", what, got, want)
			}
			if is := w.log.SurelyNew(window, scope, now, old); is == found {
				t.Errorf("%s: it is surely new: %v", what, is)
			}
			if sequence == 0 {
				w.log.Note(window, scope, now, accepted.Entry{Dedup: young, Sequence: 8})
			} else if got := w.log.Recall(window, scope, now, young); got.Sequence != sequence || !got.Found {
				t.Errorf("%s: of this version %+v", what, got)
			}
			if !w.log.SurelyNew(window, scope, now, dedup.NewID("", "new")) {
				t.Errorf("%s: what is new is not", what)
			}
		})
	}
	expect("at the start", 0, true)
	w.close()
	w = open(t, st, c)
	expect("after a restart", 8, true)
	w.advance(4*time.Minute + 59*time.Second)
	expect("just before the end", 8, true)
	w.advance(time.Second)
	w.run(func(now int64) {
		if got := w.log.Recall(w.log.Load(scope, now), scope, now, old); got.Found {
			t.Errorf("five minutes later: %+v", got)
		}
	})
}
