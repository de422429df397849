package shard_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"testing"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/shard/shardtest"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/memory"
	"godwit.dev/godwit/internal/store/storetest"
	"godwit.dev/godwit/test/soak"
)

// TestReplay records the framed batches of random histories and replays them into
// empty stores, as a standby would: in the order in which they were made, and
// shard by shard. Both hold what the original holds, byte for byte.
func TestReplay(t *testing.T) {
	for _, how := range []transferMode{{immediate: true}, {}, {twoStep: true}} {
		for _, seed := range soak.Seeds(t, soak.Rounds(t, soak.Size(1, 2), 50)) {
			checkReplay(t, seed, how)
		}
	}
}

func checkReplay(t *testing.T, seed uint64, how transferMode) {
	original := shardtest.NewStore(t)
	batches := recordHistory(t, seed, original, how)
	checkStream(t, batches)
	byShard := slices.SortedStableFunc(slices.Values(batches), func(a, b *mutation.FramedBatch) int { return cmp.Compare(a.Stream, b.Stream) })
	if !storetest.Equal(t, original, replay(t, batches)) || !storetest.Equal(t, original, replay(t, byShard)) {
		t.Errorf("seed %d: the replay differs", seed)
	}
	if err := original.Close(); err != nil {
		t.Fatal(err)
	}
}

// recordHistory runs a random history with three restarts, and returns its batches.
func recordHistory(t *testing.T, seed uint64, s store.Store, how transferMode) (batches []*mutation.FramedBatch) {
	c := clock.NewVirtual(shardtest.Start)
	o := shard.Options{Journal: shardtest.JournalOf(t, s, func(sealed []byte) {
		batch, err := mutation.DecodeFramedBatch(bytes.Clone(sealed))
		if err != nil {
			t.Errorf("a framed batch cannot be decoded: %v", err)
			return
		}
		batches = append(batches, batch)
	}), Clock: c, TwoStep: how.twoStep}
	script := shardtest.NewScript(t, seed, c)
	if how.immediate {
		o.NewID, o.Render = script.NextID, script.Pump.Render
	}
	e := shardtest.Open(t, o)
	script.Attach(e)
	script.Setup()
	for i := range 200 {
		script.Step()
		if i%60 == 59 {
			e.Close()
			e = shardtest.Open(t, o)
			script.Attach(e)
			script.RunDue()
		}
	}
	e.Close()
	return batches
}

func ofShard(batches []*mutation.FramedBatch, id uint16) (of []*mutation.FramedBatch) {
	for _, c := range batches {
		if c.Stream == id {
			of = append(of, c)
		}
	}
	return of
}

// checkStream holds a stream to what a standby relies on: each shard's
// sequences have no gap, its epoch grows by one with each start, its batches
// write none but its own keys, and tell its own sequence and epoch.
func checkStream(t *testing.T, batches []*mutation.FramedBatch) {
	t.Helper()
	for id := range uint16(kernel.Shards) {
		var sequence uint64
		var epoch uint32
		var latest int64
		for _, c := range ofShard(batches, id) {
			if c.Sequence != sequence+1 {
				t.Fatalf("shard %d: batch %d follows %d", id, c.Sequence, sequence)
			}
			if c.Epoch != epoch && c.Epoch != epoch+1 {
				t.Fatalf("shard %d: epoch %d follows %d", id, c.Epoch, epoch)
			}
			sequence, epoch = c.Sequence, c.Epoch
			var own []byte
			err := c.Batch.Each(func(op mutation.Op, key, value []byte) error {
				if binary.BigEndian.Uint16(key) != id || op == mutation.DeleteRange && binary.BigEndian.Uint16(value) != id {
					t.Errorf("shard %d writes %q", id, key)
				}
				if op == mutation.Set && bytes.Equal(key, keyspace.Shard(id, keyspace.StreamState)) {
					own = value
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			m, told, ok := journal.DecodeState(own)
			if !ok || told != sequence || m.Epoch != epoch {
				t.Fatalf("shard %d: batch %d of epoch %d says %d, %+v", id, sequence, epoch, told, m)
			}
			if m.Now < latest {
				t.Fatalf("shard %d: time went back from %d to %d", id, latest, m.Now)
			}
			latest = m.Now
		}
		if epoch != 4 {
			t.Errorf("shard %d is at epoch %d after four starts", id, epoch)
		}
	}
}

// replay applies batches to an empty store. It holds them to the rule of
// SingleDelete, which a store in memory does not mind: the key was set once.
func replay(t *testing.T, batches []*mutation.FramedBatch) store.Store {
	t.Helper()
	s := memory.New()
	sets := map[string]int{}
	for _, c := range batches {
		err := c.Batch.Each(func(op mutation.Op, key, value []byte) error {
			switch op {
			case mutation.Set:
				sets[string(key)]++
			case mutation.SingleDelete:
				if n := sets[string(key)]; n != 1 {
					t.Errorf("SingleDelete of %q, which was set %d times", key, n)
				}
				delete(sets, string(key))
			case mutation.Delete:
				delete(sets, string(key))
			case mutation.DeleteRange:
				for have := range sets {
					if have >= string(key) && have < string(value) {
						delete(sets, have)
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(store.Sync, &c.Batch); err != nil {
			t.Fatal(err)
		}
	}
	return s
}
