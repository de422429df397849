package storetest

import (
	"fmt"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
)

// Disk holds one store and can crash.
type Disk interface {
	// Open opens the store on the disk. It ends the test on an error.
	Open(t testing.TB) store.Store
	// Crash is the disk as it might be found if the machine crashed now: everything synced and,
	// depending on the seed, about the given percentage of the rest. The store on the original
	// continues.
	Crash(seed uint64, percent int) Disk
}

// Crash runs the suite for an engine that survives crashes: synced batches survive, as a whole,
// and the survivors beyond them are a prefix of the applied ones.
func Crash(t *testing.T, empty func() Disk) {
	t.Run("History", func(t *testing.T) { testCrashHistory(t, empty) })
	t.Run("Concurrent", func(t *testing.T) { testCrashConcurrent(t, empty) })
}

var percents = rapid.SampledFrom([]int{0, 10, 50, 90, 100})

var syncModes = rapid.SampledFrom([]store.SyncMode{store.NoSync, store.Sync})

// every is Sync for each nth round, so that the others leave something to it.
func every(n, round int) store.SyncMode {
	if round%n == 0 {
		return store.Sync
	}
	return store.NoSync
}

// counterKey is written last in each unit of a history, so that it counts the units that
// survive a crash.
const counterKey = "counter"

func testCrashHistory(t *testing.T, empty func() Disk) {
	rapid.Check(t, func(rt *rapid.T) {
		disk := empty()
		s := disk.Open(t)
		defer func() { closed(rt, s) }()
		states := []model{{}} // after 0, 1, 2, … units
		durable := 0          // that many units must survive
		rt.Repeat(map[string]func(*rapid.T){
			"apply": func(rt *rapid.T) {
				m := maps.Clone(states[len(states)-1])
				var batches []*mutation.Batch
				for range rapid.IntRange(1, 3).Draw(rt, "batches") {
					b := drawBatch(rt, m)
					m.apply(rt, b)
					batches = append(batches, b)
				}
				last := Sets(counterKey, strconv.Itoa(len(states)))
				m.apply(rt, last)
				states = append(states, m)
				sync := syncModes.Draw(rt, "sync")
				write := s.Apply
				if rapid.Bool().Draw(rt, "commit") {
					write = func(sync store.SyncMode, batches ...*mutation.Batch) error { return commit(s, sync, batches...) }
				}
				if err := write(sync, append(batches, last)...); err != nil {
					rt.Fatalf("Apply: %v", err)
				}
				if sync == store.Sync {
					durable = len(states) - 1
				}
			},
			"sync": func(rt *rapid.T) {
				if err := s.Sync(); err != nil {
					rt.Fatalf("Sync: %v", err)
				}
				durable = len(states) - 1
			},
			"close": func(rt *rapid.T) {
				if rapid.IntRange(0, 3).Draw(rt, "rarely") == 0 {
					closed(rt, s)
					durable = len(states) - 1
					crash := disk.Crash(rapid.Uint64().Draw(rt, "seed"), percents.Draw(rt, "percent"))
					disk, s = crash, crash.Open(t)
					states[len(states)-1].check(rt, s)
				}
			},
			"crash": func(rt *rapid.T) {
				crash := disk.Crash(rapid.Uint64().Draw(rt, "seed"), percents.Draw(rt, "percent"))
				closed(rt, s)
				disk, s = crash, crash.Open(t)
				n := counter(rt, s)
				if n < durable || n >= len(states) {
					rt.Fatalf("%d units survived, of %d durable and %d applied", n, durable, len(states)-1)
				}
				states[n].check(rt, s)
				// The state found after a crash stays: it is durable now.
				states, durable = states[:n+1], n
			},
			"": func(rt *rapid.T) { states[len(states)-1].check(rt, s) },
		})
	})
}

// commit is Apply by Commit, if a store has that. With NoSync nobody waits until the batches are
// durable.
func commit(s store.Store, sync store.SyncMode, batches ...*mutation.Batch) error {
	c, ok := s.(store.Committer)
	if !ok {
		return s.Apply(sync, batches...)
	}
	durable, err := c.Commit(batches...)
	if err != nil || durable == nil || sync == store.NoSync {
		return err
	}
	return durable()
}

func counter(t TB, r store.Reader) int {
	t.Helper()
	v, ok, err := r.Get(nil, []byte(counterKey))
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	if !ok {
		return 0
	}
	n, err := strconv.Atoi(string(v))
	if err != nil {
		t.Fatalf("the counter is %q", v)
	}
	return n
}

// Crashes at any moment of several writers' work, and in the middle of flushes: each writer
// finds all its writes that it knows to be durable.
func testCrashConcurrent(t *testing.T, empty func() Disk) {
	const writers, crashes, rounds = 4, 12, 300
	disk := empty()
	s := disk.Open(t)
	defer closed(t, s)
	type progress struct{ begun, durable atomic.Int64 }
	var all [writers]progress
	var writing sync.WaitGroup
	filler := make([]byte, 400) // tables are written meanwhile
	for w := range writers {
		writing.Go(func() {
			p := &all[w]
			for i := int64(1); i <= rounds; i++ {
				p.begun.Store(i)
				head := Sets(fmt.Sprintf("head %d", w), strconv.FormatInt(i, 10))
				tail := Sets(fmt.Sprintf("tail %d", w), strconv.FormatInt(i, 10))
				tail.Set(fmt.Appendf(nil, "filler %d %d", w, i), filler)
				sync := every(3, int(i))
				write := s.Apply
				if w%2 == 1 {
					write = func(sync store.SyncMode, batches ...*mutation.Batch) error { return commit(s, sync, batches...) }
				}
				if err := write(sync, head, tail); err != nil {
					t.Errorf("Apply: %v", err)
					return
				}
				durable := sync == store.Sync
				if !durable && i%3 == 1 && w == 0 {
					if err := s.Sync(); err != nil {
						t.Errorf("Sync: %v", err)
						return
					}
					durable = true
				}
				if durable {
					p.durable.Store(i)
				}
			}
		})
	}
	for c := range crashes {
		// The next crash comes when a writer has made progress.
		for all[c%writers].durable.Load() < int64(c*rounds/crashes/2) && !t.Failed() {
			if err := s.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		var durable [writers]int64
		for w := range writers {
			durable[w] = all[w].durable.Load()
		}
		crash := disk.Crash(uint64(c), []int{0, 30, 60, 100}[c%4])
		found := crash.Open(t)
		for w := range writers {
			begun := all[w].begun.Load()
			head, tail := number(t, found, fmt.Sprintf("head %d", w)), number(t, found, fmt.Sprintf("tail %d", w))
			if head != tail {
				t.Errorf("crash %d: half a batch of writer %d: %d and %d", c, w, head, tail)
			}
			if head < durable[w] || head > begun {
				t.Errorf("crash %d: writer %d is at %d, of %d durable and %d begun", c, w, head, durable[w], begun)
			}
			fillers := int64(0)
			for range Range(t, found, fmt.Appendf(nil, "filler %d ", w), fmt.Appendf(nil, "filler %d!", w)) {
				fillers++
			}
			if fillers != tail {
				t.Errorf("crash %d: writer %d is at %d with %d records: not a prefix", c, w, tail, fillers)
			}
		}
		closed(t, found)
	}
	writing.Wait()
}

func number(t TB, r store.Reader, key string) int64 {
	t.Helper()
	v, ok, err := r.Get(nil, []byte(key))
	if err != nil {
		t.Fatalf("Get: %v", err)
	}
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if err != nil {
		t.Fatalf("%q is %q", key, v)
	}
	return n
}
