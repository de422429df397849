package pebble_test

import (
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/storetest"
)

// tables is the size of all tables in dir, and of the values kept apart from
// them, in bytes.
func tables(t *testing.T, fs vfs.FS, dir string) (size int64) {
	t.Helper()
	names, err := fs.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, ".blob") {
			continue
		}
		info, err := fs.Stat(fs.PathJoin(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	return size
}

// What is deleted gives its space back without another write, also where it
// has sunk to the bottom of the tree and the deletes are few.
func TestReclaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, s := openRoomy(t)
		defer closed(t, s)
		value := make([]byte, 20<<10)
		incompressible(value)
		const records = 400
		for n := range uint64(records) {
			b := new(mutation.Batch)
			value[0], value[1] = byte(n), byte(n>>8)
			b.Set(key(n), value)
			if err := s.Apply(store.NoSync, b); err != nil {
				t.Fatal(err)
			}
		}
		reclaim := func() int64 { // as in the seconds after the last write
			t.Helper()
			for range 15 {
				if err := s.Reclaim(); err != nil {
					t.Fatal(err)
				}
				synctest.Wait() // for flushes and compactions
				pass(time.Second)
			}
			return tables(t, fs, "data")
		}
		if size := reclaim(); size < records*20<<10 {
			t.Fatalf("tables take %d bytes with everything in them", size)
		}
		for half := range uint64(2) {
			b := new(mutation.Batch)
			for n := range uint64(records / 2) {
				b.SingleDelete(key(half*records/2 + n))
			}
			if err := s.Apply(store.Sync, b); err != nil {
				t.Fatal(err)
			}
			if size, left := reclaim(), int64(1-half)*records/2*20<<10; size > left+100<<10 {
				t.Errorf("tables take %d bytes with records of %d in them", size, left)
			}
		}
		for range 2 { // rounds 1 and 2; the next is 4
			reclaim()
		}
		before, err := fs.List("data")
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if err := s.Reclaim(); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			pass(time.Second)
		}
		after, err := fs.List("data")
		if err != nil {
			t.Fatal(err)
		}
		if len(before) != len(after) {
			t.Errorf("Reclaim of nothing wrote: %q, before %q", after, before)
		}
	})
}

// What is deleted while it is young gives its space back, too: a first compaction may only bring
// tombstones to the level of what they delete.
func TestReclaimOfYoungRecords(t *testing.T) {
	for _, records := range []uint64{200, 400, 1000} {
		reclaims(t, records, 0)
	}
}

// TestReclaimWhileFlushesAreSlow: flushes that end later than the next begins are one sublevel of
// L0, so that as many as should do do not. The space comes back all the same.
func TestReclaimWhileFlushesAreSlow(t *testing.T) { reclaims(t, 400, 20) }

// reclaims expects the space of deleted records to come back within a minute, behind calls at
// once: as if each flush took longer than all of them.
func reclaims(t *testing.T, records uint64, atOnce int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		fs, s := openRoomy(t)
		defer closed(t, s)
		restful(t, s, records)
		for n := range atOnce + 60 {
			if err := s.Reclaim(); err != nil {
				t.Fatal(err)
			}
			if n >= atOnce {
				synctest.Wait()
				pass(time.Second)
			}
		}
		if size := tables(t, fs, "data"); size > 100<<10 {
			t.Errorf("%d records: tables take %d bytes with nothing in them", records, size)
		}
	})
}

// A disk with less room than a whole log, which Pebble sets aside at once, is
// no failure.
func TestPreallocationMayFail(t *testing.T) {
	var refused atomic.Int32
	disk := new(faulty)
	disk.set(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFilePreallocate {
			refused.Add(1)
			return syscall.ENOSPC
		}
		return nil
	})
	s := open(t, filepath.Join(t.TempDir(), "data"), options(t, errorfs.Wrap(vfs.Default, disk)))
	defer closed(t, s)
	if err := s.Apply(store.Sync, storetest.Sets("a", "1")); err != nil {
		t.Error(err)
	}
	fill(t, s, "b")
	if refused.Load() == 0 {
		t.Error("nothing was set aside: the test tests nothing")
	}
}
