package pebble_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
)

// restful writes records of 20 KiB and deletes them, some while they are in the write
// buffer and some when they are in tables.
func restful(t *testing.T, s *pebble.Store, records uint64) {
	t.Helper()
	value := make([]byte, 20<<10)
	incompressible(value)
	for n := range records {
		b := new(mutation.Batch)
		value[0], value[1] = byte(n), byte(n>>8)
		b.Set(key(n), value)
		if err := s.Apply(store.NoSync, b); err != nil {
			t.Fatal(err)
		}
	}
	b := new(mutation.Batch)
	for n := range records {
		b.SingleDelete(key(n))
	}
	if err := s.Apply(store.Sync, b); err != nil {
		t.Fatal(err)
	}
}

// What was deleted gives its space back within two minutes when nothing else is done,
// and what is not much worth is not merged over and over.
func TestSpaceIsGivenBackAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		o := options(t, fs)
		o.MemTableBytes = 1 << 20
		s := open(t, "data", o)
		idle := func(d time.Duration) {
			t.Helper()
			for range d / (5 * time.Second) {
				pass(5 * time.Second)
				synctest.Wait()
			}
		}
		idle(time.Minute) // what a start does is over
		restful(t, s, 400)
		if size := tables(t, fs, "data"); size < 4<<20 {
			t.Fatalf("only %d bytes are in tables: the test tests nothing", size)
		}
		idle(2 * time.Minute)
		if size := tables(t, fs, "data"); size > 100<<10 {
			t.Errorf("tables take %d bytes with nothing in them, two minutes later", size)
		}
		before, err := fs.List("data")
		if err != nil {
			t.Fatal(err)
		}
		idle(3 * time.Minute)
		after, err := fs.List("data")
		if err != nil {
			t.Fatal(err)
		}
		if len(before) != len(after) {
			t.Errorf("a store that is idle wrote: %q, before %q", after, before)
		}

		// A process that ends at once leaves it to the next one.
		restful(t, s, 400)
		closed(t, s)
		s = open(t, "data", o)
		defer closed(t, s)
		idle(2 * time.Minute)
		if size := tables(t, fs, "data"); size > 100<<10 {
			t.Errorf("tables take %d bytes with nothing in them, two minutes after a start", size)
		}
	})
}

// Under load, merging is left to the load.
func TestRestWaitsForTheEndOfLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		s := open(t, "data", options(t, fs))
		defer closed(t, s)
		list := func() int {
			t.Helper()
			all, err := fs.List("data")
			if err != nil {
				t.Fatal(err)
			}
			return len(all)
		}
		pass(time.Minute)
		synctest.Wait()
		before := list()
		for range 20 {
			b := new(mutation.Batch)
			for n := range uint64(6000) {
				b.Set(key(n), nil)
				b.Delete(key(n))
			}
			if err := s.Apply(store.NoSync, b); err != nil {
				t.Fatal(err)
			}
			pass(5 * time.Second)
			synctest.Wait()
		}
		if after := list(); after > before+2 { // a log or two
			t.Errorf("%d files, before %d", after, before)
		}
	})
}
