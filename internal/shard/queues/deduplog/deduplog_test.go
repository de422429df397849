package deduplog_test

import (
	"log/slog"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
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
	if err := store.Each(w.store, keyspace.Prefix(keyspace.Shard(w.shard.ID, keyspace.Duplicates)), func(_, value []byte) error {
		n++
		if !deduplog.CheckRecord(value) {
			w.Errorf("a record of %d bytes", len(value))
		}
		return nil
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
	w.run(func(now int64) { w.log.Note(windows["a"], layout.Incarnation(scopes["a"]), now, id, first) })
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
	w.run(func(now int64) { w.log.Note(windows["b"], layout.Incarnation(scopes["b"]), now, other, first) })
	if n := w.records(); n != 1 {
		t.Errorf("%d records once those of the first are over", n)
	}
}
