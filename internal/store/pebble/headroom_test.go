package pebble_test

import (
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
)

// smallFS is a file system in memory with room for so many bytes.
type smallFS struct {
	vfs.FS
	mu      sync.Mutex
	total   int64 // bytes
	hog     int64 // bytes that others take
	least   int64 // free bytes that a write of a table ever left
	created int   // tables
}

func newSmallFS(total int64) *smallFS { return &smallFS{FS: vfs.NewMem(), total: total, least: total} }

// free is the room that is left; f.mu is held.
func (f *smallFS) free() int64 {
	names, err := f.List("data")
	if err != nil {
		return f.total - f.hog
	}
	used := f.hog
	for _, name := range names {
		if info, err := f.Stat(f.PathJoin("data", name)); err == nil {
			used += info.Size()
		}
	}
	return f.total - used
}

func (f *smallFS) GetDiskUsage(string) (vfs.DiskUsage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return vfs.DiskUsage{AvailBytes: uint64(max(0, f.free())), TotalBytes: uint64(f.total)}, nil
}

// others has others take so many bytes.
func (f *smallFS) others(take int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hog = take
}

func (f *smallFS) Create(name string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.Create(name, c)
	return f.wrap(name, file, err)
}

func (f *smallFS) ReuseForWrite(from, to string, c vfs.DiskWriteCategory) (vfs.File, error) {
	file, err := f.FS.ReuseForWrite(from, to, c)
	return f.wrap(to, file, err)
}

func (f *smallFS) wrap(name string, file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	table := strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ".blob")
	if table {
		f.mu.Lock()
		f.created++
		f.mu.Unlock()
	}
	return &smallFile{File: file, fs: f, table: table}, nil
}

type smallFile struct {
	vfs.File
	fs    *smallFS
	table bool
}

func (f *smallFile) Write(p []byte) (int, error) {
	f.fs.mu.Lock()
	defer f.fs.mu.Unlock()
	left := f.fs.free() - int64(len(p))
	if left < 0 {
		return 0, syscall.ENOSPC
	}
	if f.table {
		f.fs.least = min(f.fs.least, left)
	}
	return f.File.Write(p)
}

// pass waits for d of a synctest bubble's time.
func pass(d time.Duration) {
	over, _ := clock.After(clock.System, d)
	<-over
}

const buffer = 1 << 20 // bytes of a write buffer

// onSmallDisk opens a store on a disk of 32 MiB that is filled with 20 MiB of
// records.
func onSmallDisk(t *testing.T) (f *smallFS, s *pebble.Store, records int, fulls *atomic.Int32) {
	f = newSmallFS(32 << 20)
	o := options(t, f)
	o.MemTableBytes = buffer
	fulls = new(atomic.Int32)
	o.OnDiskFull = func() { fulls.Add(1) }
	s = open(t, "data", o)
	value := make([]byte, 16<<10)
	incompressible(value)
	for ; records < 1250; records++ {
		b := new(mutation.Batch)
		b.Set(key(uint64(records)), value)
		if err := s.Apply(store.NoSync, b); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	return f, s, records, fulls
}

// What is written to tidy up leaves the log its room, so that deletes continue,
// and waits between its tries.
func TestTablesLeaveTheLogItsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s, records, fulls := onSmallDisk(t)
		defer closed(t, s)
		if s.Reclaim() != nil {
			t.Fatal("Reclaim failed")
		}
		synctest.Wait()
		f.mu.Lock()
		// No compaction of all there is fits in now.
		f.hog = 0
		f.hog = f.free() - 4*buffer
		f.least, f.created = f.total, 0
		f.mu.Unlock()
		for range 120 {
			if err := s.Reclaim(); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		f.mu.Lock()
		least, tries := f.least, f.created
		f.mu.Unlock()
		if least < buffer {
			t.Errorf("a table left %d bytes for a log of %d", least, buffer)
		}
		if tries < 10 || tries > 200 {
			t.Errorf("%d tables were tried in 120 s", tries)
		}

		// Everything can be deleted, and gives its space back.
		for i := range records {
			b := new(mutation.Batch)
			b.SingleDelete(key(uint64(i)))
			if err := s.Apply(store.NoSync, b); err != nil {
				t.Fatal(err)
			}
		}
		for range 60 {
			if err := s.Reclaim(); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		if size := tables(t, f, "data"); size > 1<<20 {
			t.Errorf("everything is deleted, but tables take %d bytes", size)
		}
		if n := fulls.Load(); n > 0 {
			t.Errorf("OnDiskFull was called %d times, but the log had room", n)
		}
	})
}

// Where compactions had no space when everything was deleted, and nothing is written once there is
// some, the space of what was deleted comes back all the same.
func TestReclaimOnceThereIsSpace(t *testing.T) {
	for _, left := range []int64{buffer * 3 / 2, 3 * buffer, 6 * buffer} {
		synctest.Test(t, func(t *testing.T) {
			f, s, records, _ := onSmallDisk(t)
			defer closed(t, s)
			f.mu.Lock()
			f.hog = 0
			f.hog = f.free() - left
			f.mu.Unlock()
			b := new(mutation.Batch)
			for i := range records {
				b.SingleDelete(key(uint64(i)))
			}
			if err := s.Apply(store.NoSync, b); err != nil {
				t.Fatal(err)
			}
			reclaim := func(seconds int) {
				t.Helper()
				for range seconds {
					if err := s.Reclaim(); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					pass(time.Second)
				}
			}
			reclaim(30)
			f.others(0)
			reclaim(120)
			if size := tables(t, f, "data"); size > 1<<20 {
				t.Errorf("with %d bytes left at first: tables take %d bytes with nothing in them", left, size)
			}
		})
	}
}

// Writes wait where no buffer can be flushed, which is reported, and continue as
// soon as there is room again.
func TestWritesWaitForRoomToFlush(t *testing.T) {
	f := newSmallFS(64 << 20)
	o := options(t, f)
	o.MemTableBytes = buffer
	reported := make(chan struct{}, 1)
	o.OnDiskFull = func() {
		select {
		case reported <- struct{}{}:
		default:
		}
	}
	s := open(t, "data", o)
	defer closed(t, s)
	f.others(f.total - 4*buffer)
	const records = 10_000
	var n atomic.Int32
	done := make(chan error)
	go func() {
		defer close(done)
		value := make([]byte, 1024)
		incompressible(value)
		for i := range records {
			b := new(mutation.Batch)
			b.Set(key(uint64(i)), value)
			if err := s.Apply(store.NoSync, b); err != nil {
				done <- err
				return
			}
			n.Add(1)
		}
	}()
	for range 4 {
		select {
		case <-reported:
		case err := <-done:
			t.Fatalf("writes did not wait: %v", err)
		}
	}
	if n := n.Load(); n == records {
		t.Error("more was written than the disk can hold")
	}
	f.others(0)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A store whose writes wait for room can be closed.
func TestCloseOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s, _, _ := onSmallDisk(t)
		f.mu.Lock()
		f.hog = f.free() - 2*buffer
		f.mu.Unlock()
		if err := s.Reclaim(); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		began := clock.System.Now()
		closed(t, s)
		if waited := clock.System.Now().Sub(began); waited > 200*time.Millisecond {
			t.Errorf("Close took %s", waited)
		}
	})
}
