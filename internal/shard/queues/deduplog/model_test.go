package deduplog_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/queue/dedup"
	"godwit.dev/godwit/internal/queue/layout"
	"godwit.dev/godwit/internal/queue/message"
	"godwit.dev/godwit/internal/shard/queues/deduplog"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// remembered is what a queue has accepted under an id last, and when, in epoch milliseconds.
type remembered struct {
	original deduplog.Original
	at       int64
}

// TestModel holds the log of two queues against a map, over random sends, restarts and crashes,
// times at the edges of minutes, and sequence numbers as after a repair: far ahead, or behind.
func TestModel(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { model(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func model(t *testing.T, r *rand.Rand) {
	const steps, ids, start = 150, 40, uint64(1) << 40
	scopes := []layout.Incarnation{1, 2}
	w := open(t, memory.New(), clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)))
	known := map[layout.Incarnation]map[dedup.ID]remembered{1: {}, 2: {}}
	windows := map[layout.Incarnation]*dedup.Window{}
	next := map[layout.Incarnation]uint64{1: start, 2: start}
	window := func(scope layout.Incarnation, now int64) *dedup.Window {
		if windows[scope] == nil {
			windows[scope] = w.log.Load(scope, now)
		}
		return windows[scope]
	}
	some := func() dedup.ID { return dedup.NewID("", fmt.Sprint(r.IntN(ids))) }
	accepted := uint64(0)
	send := func(step int) {
		scope := scopes[r.IntN(2)]
		command := func(now int64) {
			var batch []deduplog.Entry
			here := map[dedup.ID]bool{}
			for range 1 + r.IntN(10) {
				id := some()
				want := known[scope][id]
				if now-want.at >= dedup.Life {
					want = remembered{}
				}
				if got := w.log.Recall(window(scope, now), scope, now, id); got != want.original {
					t.Fatalf("step %d, %d ms after it was accepted: %+v, want %+v", step, now-known[scope][id].at, got, want.original)
				}
				if w.log.SurelyNew(window(scope, now), scope, now, id) && want.original.Found {
					t.Fatalf("step %d: %+v is surely new", step, want.original)
				}
				if want.original.Found || here[id] {
					continue
				}
				here[id] = true
				accepted++
				e := deduplog.Entry{Dedup: id, ID: message.ID{byte(accepted >> 8), byte(accepted)}, Sequence: next[scope]}
				next[scope]++
				batch = append(batch, e)
			}
			if len(batch) == 0 {
				return
			}
			w.log.Note(window(scope, now), scope, now, batch...)
			for _, e := range batch {
				known[scope][e.Dedup] = remembered{deduplog.Original{ID: e.ID, Sequence: e.Sequence, Found: true}, now}
			}
		}
		w.run(command)
	}
	for step := range steps {
		switch r.IntN(20) {
		case 0: // restart
			w.close()
			w, windows = open(t, w.store, w.clock), map[layout.Incarnation]*dedup.Window{}
		case 1: // crash
			var all mutation.Batch
			for key, value := range storetest.Dump(t, w.store) {
				all.Set(key, value)
			}
			left := memory.New()
			if err := left.Apply(store.Sync, &all); err != nil {
				t.Fatal(err)
			}
			w.close()
			w, windows = open(t, left, w.clock), map[layout.Incarnation]*dedup.Window{}
		case 2: // parked, and looked up again
			delete(windows, scopes[r.IntN(2)])
		case 3: // the counters are lost
			next[scopes[r.IntN(2)]] = start + r.Uint64N(30)
		case 4: // and are guessed
			next[scopes[r.IntN(2)]] += 1 << (20 + r.IntN(20))
		case 5, 6: // to the edge of a minute
			now := w.clock.Now()
			w.advance(now.Truncate(time.Minute).Add(time.Minute - time.Millisecond).Sub(now))
		case 7, 8:
			w.advance(time.Millisecond)
		case 9:
			w.advance([]time.Duration{time.Minute, 5*time.Minute - time.Millisecond, 5 * time.Minute, 7 * time.Minute}[r.IntN(4)])
		case 10, 11:
			w.advance(time.Duration(r.IntN(90_000)) * time.Millisecond)
		default:
			send(step)
		}
	}
}
