// Package journaltest has the suite that the journal must pass on every store: that of one
// machine, and that of a cluster.
package journaltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
)

// Run runs the suite. open returns an empty store, which the end of the test closes. own
// reports whether the store itself has written a key.
func Run(t *testing.T, open func(t testing.TB) store.Store, own func(key []byte) bool) {
	t.Run("Append", func(t *testing.T) { testAppend(t, open(t)) })
	t.Run("SeveralStreams", func(t *testing.T) { testSeveralStreams(t, open(t)) })
	t.Run("Large", func(t *testing.T) { testLarge(t, open(t)) })
	t.Run("Replay", func(t *testing.T) { testReplay(t, open(t), own) })
	t.Run("Counters", func(t *testing.T) { testCounters(t, open(t)) })
}

func start(t testing.TB, o journal.Options) *journal.Journal {
	t.Helper()
	o.Fatal = func(err error) { t.Errorf("the journal ends the process: %v", err) }
	return journal.Open(o)
}

func stream(t testing.TB, j *journal.Journal, id uint16) *journal.Stream {
	t.Helper()
	s, _, err := j.Stream(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	s.BeginEpoch()
	return s
}

// An append is visible to its own stream at once, and to others when it is durable, which it
// becomes also without any waiter.
func testAppend(t *testing.T, st store.Store) {
	for _, awaited := range []bool{false, true} {
		j := start(t, journal.Options{Store: st, Replicated: awaited})
		s := stream(t, j, 1)
		lazy := s.Append(journal.Lazy, 0, storetest.Sets("k", "1"))
		storetest.Wants(t, s.Reader(), "k", "1")
		lazy.Wait()
		storetest.Wants(t, j.Reader(), "k", "1")
		c := s.Append(journal.Eager, 0, storetest.Sets("k", "2"))
		c.Wait()
		if !c.Durable() || !c.Applied() {
			t.Error("it was waited for, and is not durable")
		}
		storetest.Wants(t, j.Reader(), "k", "2")
		c = s.Append(journal.Lazy, 0, storetest.Sets("k", "3"))
		if j.AwaitIfSlow(c); awaited && !c.Durable() {
			t.Error("answered before it was durable")
		}
		c = s.Append(journal.Lazy, 0, storetest.Sets("k", "4"))
		if j.AwaitReplicated(c); awaited && !c.Durable() {
			t.Error("answered before other nodes had it")
		}
		j.Close()
		if !c.Durable() {
			t.Error("Close leaves something behind")
		}
	}
}

// An append of several streams is visible as a whole or not at all.
func testSeveralStreams(t *testing.T, st store.Store) {
	j := start(t, journal.Options{Store: st})
	defer j.Close()
	a, b := stream(t, j, 1), stream(t, j, keyspace.LogStream)
	stop := make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			view := j.Reader().Snapshot()
			x, _, errX := view.Get(nil, []byte("a"))
			y, _, errY := view.Get(nil, []byte("b"))
			if errX != nil || errY != nil || !bytes.Equal(x, y) {
				t.Errorf("half of an append is seen: %q, %q, %v, %v", x, y, errX, errY)
				_ = view.Close()
				return
			}
			_ = view.Close()
		}
	})
	for i := range 200 {
		c := j.Append(journal.EagerIf(i%10 == 0), journal.Change{Stream: a, Batch: storetest.Sets("a", strconv.Itoa(i))}, journal.Change{Stream: b, Batch: storetest.Sets("b", strconv.Itoa(i))})
		if i%10 == 0 {
			c.Wait()
		}
	}
	close(stop)
	looking.Wait()
}

func testLarge(t *testing.T, st store.Store) {
	j := start(t, journal.Options{Store: st})
	defer j.Close()
	a, b := stream(t, j, 1), stream(t, j, 2)
	large := func(i int) string { return strings.Repeat(string(rune('a'+i)), 700<<10) }
	var last *journal.Commit
	for i := range 8 {
		last = j.Append(journal.EagerIf(i == 7),
			journal.Change{Stream: a, Batch: storetest.Sets(fmt.Sprint("a", i), large(i))}, journal.Change{Stream: b, Batch: storetest.Sets(fmt.Sprint("b", i), large(i))})
	}
	last.Wait()
	for i := range 8 {
		storetest.Wants(t, j.Reader(), fmt.Sprint("a", i), large(i))
		storetest.Wants(t, j.Reader(), fmt.Sprint("b", i), large(i))
	}
}

// Replaying the history of all streams gives the same store; each stream's sequence has no
// gap over restarts.
func testReplay(t *testing.T, st store.Store, own func(key []byte) bool) {
	replayed := memory.New()
	var mu sync.Mutex
	next := map[uint16]uint64{}
	observe := func(p []byte) {
		mu.Lock()
		defer mu.Unlock()
		c, err := mutation.DecodeFramedBatch(bytes.Clone(p))
		if err == nil {
			err = replayed.Apply(store.Sync, &c.Batch)
		}
		if err != nil {
			t.Error(err)
			return
		}
		if next[c.Stream]++; c.Sequence != next[c.Stream] {
			t.Errorf("stream %d: batch %d is called %d", c.Stream, next[c.Stream], c.Sequence)
		}
	}
	for life := range 3 {
		j := start(t, journal.Options{Store: st, Observe: observe, Replicated: life == 1})
		var all sync.WaitGroup
		for id := range keyspace.Streams {
			s := stream(t, j, id)
			n := 1 + (5*int(id)+7*life)%20
			all.Go(func() {
				for i := range n {
					key := binary.BigEndian.AppendUint64(keyspace.Shard(id, 'x'), uint64(i%7))
					b := storetest.Sets(string(key), fmt.Sprint(life, i))
					if i%5 == 4 {
						b.Reset()
						b.DeleteRange(key[:3], key)
					}
					s.Append(journal.EagerIf(i%3 == 0), int64(life+1), b)
				}
			})
		}
		all.Wait()
		j.Close()
	}
	storetest.Equal(t, without{st, own}, replayed)
}

// without is a store without some keys.
type without struct {
	store.Reader
	hides func(key []byte) bool
}

func (w without) Iter(lower, upper []byte) (store.Iterator, error) {
	it, err := w.Reader.Iter(lower, upper)
	return visible{it, w.hides}, err
}

type visible struct {
	store.Iterator
	hides func(key []byte) bool
}

func (v visible) Next() bool {
	for v.Iterator.Next() {
		if !v.hides(v.Key()) {
			return true
		}
	}
	return false
}

// Callers that read their own writes count correctly.
func testCounters(t *testing.T, st store.Store) {
	j := start(t, journal.Options{Store: st})
	defer j.Close()
	const rounds = 100
	var all sync.WaitGroup
	for id := range uint16(8) {
		s := stream(t, j, id)
		all.Go(func() {
			key := string(keyspace.Shard(id, 'x'))
			for i := range rounds {
				v, _, err := s.Reader().Get(nil, []byte(key))
				if err != nil || string(v) != strings.Repeat("x", i) {
					t.Errorf("stream %d reads %q, %v in round %d", id, v, err, i)
					return
				}
				if c := s.Append(journal.EagerIf(i%4 == 0), 0, storetest.Sets(key, string(v)+"x")); i%4 == 0 {
					c.Wait()
				}
			}
		})
	}
	all.Wait()
}
