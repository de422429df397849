package pebble_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
)

// withoutLog are options of a store without a log, with write buffers of buffer bytes.
func withoutLog(t testing.TB, fs vfs.FS) pebble.Options {
	o := options(t, fs)
	o.NoLog, o.MemTableBytes = true, buffer
	return o
}

func put(t *testing.T, s store.Store, kv ...string) {
	t.Helper()
	if err := s.Apply(store.NoSync, storetest.Sets(kv...)); err != nil {
		t.Fatal(err)
	}
}

func crashed(fs *vfs.MemFS) *vfs.MemFS { return fs.CrashClone(vfs.CrashCloneCfg{}) }

// has compares what a directory has under a key, opened with a log or without; empty: nothing.
func has(t *testing.T, fs vfs.FS, dir, key, want string) {
	t.Helper()
	for _, noLog := range []bool{true, false} {
		o := options(t, fs)
		o.NoLog = noLog
		s := open(t, dir, o)
		if v, ok, err := s.Get(nil, []byte(key)); err != nil || ok != (want != "") || string(v) != want {
			t.Errorf("NoLog %t: %q is %q, %t, %v; want %q", noLog, key, v, ok, err, want)
		}
		closed(t, s)
	}
}

// Without a log a write is in no file until it is flushed, which each of the ways to make it durable
// does.
func TestNoLog(t *testing.T) {
	for name, flush := range map[string]func(t *testing.T, fs *vfs.MemFS, s *pebble.Store) *vfs.MemFS{
		"nothing": func(_ *testing.T, fs *vfs.MemFS, _ *pebble.Store) *vfs.MemFS { return crashed(fs) },
		"Sync": func(t *testing.T, fs *vfs.MemFS, s *pebble.Store) *vfs.MemFS {
			if err := s.Sync(); err != nil {
				t.Error(err)
			}
			return crashed(fs)
		},
		"Apply nothing": func(t *testing.T, fs *vfs.MemFS, s *pebble.Store) *vfs.MemFS {
			if err := s.Apply(store.Sync); err != nil {
				t.Error(err)
			}
			return crashed(fs)
		},
		"Apply": func(t *testing.T, fs *vfs.MemFS, s *pebble.Store) *vfs.MemFS {
			if err := s.Apply(store.Sync, storetest.Sets("b", "1")); err != nil {
				t.Error(err)
			}
			return crashed(fs)
		},
		"Commit": func(t *testing.T, fs *vfs.MemFS, s *pebble.Store) *vfs.MemFS {
			durable, err := s.Commit(storetest.Sets("b", "1"))
			if err != nil {
				t.Fatal(err)
			}
			if err := durable(); err != nil {
				t.Error(err)
			}
			return crashed(fs)
		},
		"Close": func(t *testing.T, fs *vfs.MemFS, s *pebble.Store) *vfs.MemFS {
			closed(t, s)
			return crashed(fs)
		},
		"a full buffer": func(t *testing.T, fs *vfs.MemFS, s *pebble.Store) *vfs.MemFS {
			for i := range 3000 {
				put(t, s, fmt.Sprint("filler ", i), strings.Repeat("x", 1024))
			}
			synctest.Wait()
			return crashed(fs)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := vfs.NewCrashableMem()
				s := open(t, "data", withoutLog(t, fs))
				defer closed(t, s)
				put(t, s, "a", "1")
				if v, ok, err := s.GetDurable(nil, []byte("a")); ok || err != nil {
					t.Errorf("before it is flushed, %q is durable, %v", v, err)
				}
				disk := flush(t, fs, s)
				want := "1"
				if name == "nothing" {
					want = ""
				}
				if v, ok, err := s.GetDurable([]byte("="), []byte("a")); !errors.Is(err, store.ErrClosed) && (ok != (want != "") || string(v) != "="+want || err != nil) {
					t.Errorf("durable is %q, %t, %v", v, ok, err)
				}
				if err := pebble.Verify(disk, "data"); err != nil {
					t.Errorf("after a crash: %v", err)
				}
				if st := s.Stats(); st.WALWritten+st.WALBytes > 0 {
					t.Errorf("a log of %d bytes, of %d that were written", st.WALBytes, st.WALWritten)
				}
				for _, log := range named(t, fs, "data", ".log") {
					if n := sized(t, fs, log); n > 100 { // how it ends, once it is closed
						t.Errorf("%s has %d bytes", log, n)
					}
				}
				has(t, disk, "data", "a", want)
			})
		})
	}
}

// Flush is not waited for, and GetDurable tells of its end.
func TestFlush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewCrashableMem()
		s := open(t, "data", withoutLog(t, fs))
		defer closed(t, s)
		for _, value := range []string{"1", "2"} {
			put(t, s, "a", value)
			if err := s.Flush(); err != nil {
				t.Fatal(err)
			}
			put(t, s, "a", value+" in memory")
			synctest.Wait()
			if v, ok, err := s.GetDurable(nil, []byte("a")); err != nil || !ok || string(v) != value {
				t.Errorf("durable is %q, %t, %v; want %s", v, ok, err, value)
			}
			has(t, crashed(fs), "data", "a", value)
		}
	})
}

// A directory may have a log in one run and none in the next: what was durable stays, the logs of
// before do not come back over what is newer, and no log of many starts is left.
func TestNoLogByTurns(t *testing.T) {
	fs := vfs.NewCrashableMem()
	for run := range 12 {
		o := withoutLog(t, fs)
		o.NoLog = run%3 > 0
		s := open(t, "data", o)
		if run > 0 {
			if v, _, err := s.Get(nil, []byte("run")); err != nil || string(v) != fmt.Sprint(run-1) {
				t.Fatalf("run %d: the one before is %q, %v", run, v, err)
			}
			if _, ok, err := s.Get(nil, fmt.Append(nil, "gone ", run-1)); err != nil || ok {
				t.Errorf("run %d: what was deleted is there: %v", run, err)
			}
		}
		gone := fmt.Sprint("gone ", run)
		put(t, s, gone, "1")
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		b := new(mutation.Batch)
		b.Delete([]byte(gone))
		b.Set([]byte("run"), fmt.Append(nil, run))
		if err := s.Apply(store.Sync, b); err != nil {
			t.Fatal(err)
		}
		crash := crashed(fs)
		closed(t, s)
		if run%2 == 0 {
			fs = crash
		}
		if logs := named(t, fs, "data", ".log"); len(logs) > 3 {
			t.Fatalf("run %d leaves %v", run, logs)
		}
		if err := pebble.Verify(fs, "data"); err != nil {
			t.Fatal(err)
		}
	}
}

// A checkpoint has all that was applied, and opens with a log and without.
func TestCheckpointWithoutLog(t *testing.T) {
	fs := vfs.NewCrashableMem()
	s := open(t, "data", withoutLog(t, fs))
	defer closed(t, s)
	for i := range 3 {
		put(t, s, "a", fmt.Sprint(i))
		dir := fmt.Sprint("checkpoint ", i)
		if err := s.Checkpoint(dir); err != nil {
			t.Fatal(err)
		}
		put(t, s, "a", "later")
		if err := pebble.Verify(fs, dir); err != nil {
			t.Error(err)
		}
		has(t, crashed(fs), dir, "a", fmt.Sprint(i))
	}
}

// On a full disk nothing waits for a flush that should not: Close and Checkpoint give up, a Sync ends
// with the store, and writes go on while they fit in memory. Once there is space all is flushed.
func TestFlushOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSmallFS(64 << 20)
		var fulls atomic.Int32
		o := withoutLog(t, f)
		o.OnDiskFull = func() { fulls.Add(1) }
		s := open(t, "data", o)
		put(t, s, "a", "1")
		if err := s.Sync(); err != nil {
			t.Fatal(err)
		}
		f.others(f.total - buffer)
		put(t, s, "a", "2")
		if err := s.Checkpoint("checkpoint"); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Checkpoint: %v", err)
		}
		if err := s.Checkpoint("checkpoint"); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("another Checkpoint: %v", err)
		}
		if fulls.Load() == 0 {
			t.Error("OnDiskFull was not called")
		}
		if err := s.Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
		put(t, s, "a", "3")
		f.others(0)
		pass(time.Second)
		if v, _, err := s.GetDurable(nil, []byte("a")); err != nil || string(v) != "2" {
			t.Errorf("with space again %q is durable, %v", v, err)
		}
		if err := s.Checkpoint("checkpoint"); err != nil {
			t.Error(err)
		}
		has(t, f, "checkpoint", "a", "3")

		put(t, s, "a", "4")
		f.others(f.total - buffer*13/10)
		synced := make(chan error, 1)
		go func() { synced <- s.Sync() }()
		pass(time.Second)
		select {
		case err := <-synced:
			t.Errorf("Sync on a full disk: %v", err)
		default:
		}
		for i := range 900 { // a further flush would wait for the one that the disk refuses
			put(t, s, fmt.Sprint("filler ", i), strings.Repeat("x", 1024))
		}
		began := clock.System.Now()
		if err := s.Close(); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Close on a full disk: %v", err)
		}
		if d := clock.System.Now().Sub(began); d > time.Second {
			t.Errorf("Close took %s", d)
		}
		if err := <-synced; err != nil && !errors.Is(err, store.ErrClosed) {
			t.Errorf("Sync: %v", err)
		}
	})
}

// A flush that fails ends the process: who waits for it gets the failure.
func TestFailedFlushIsFatal(t *testing.T) {
	for name, write := range map[string]func(s *pebble.Store) error{
		"Sync":       (*pebble.Store).Sync,
		"Apply":      func(s *pebble.Store) error { return s.Apply(store.Sync, storetest.Sets("b", "1")) },
		"Checkpoint": func(s *pebble.Store) error { return s.Checkpoint("checkpoint") },
		"Close":      (*pebble.Store).Close,
		"Commit": func(s *pebble.Store) error {
			durable, err := s.Commit(storetest.Sets("b", "1"))
			if err != nil {
				return err
			}
			return durable()
		},
	} {
		t.Run(name, func(t *testing.T) {
			disk := new(faulty)
			mem := vfs.NewCrashableMem()
			o := withoutLog(t, errorfs.Wrap(mem, disk))
			var mu sync.Mutex
			var fatal []error
			o.Fatal = func(err error) {
				disk.set(nil) // Pebble tries again, and the test can end
				mu.Lock()
				defer mu.Unlock()
				fatal = append(fatal, err)
			}
			s := open(t, "data", o)
			put(t, s, "a", "1")
			disk.set(func(op errorfs.Op) error {
				if isTable(op) && (op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
					return syscall.EIO
				}
				return nil
			})
			if err := write(s); !errors.Is(err, syscall.EIO) {
				t.Errorf("with a broken disk: %v", err)
			}
			if err := s.Close(); name != "Close" && !errors.Is(err, syscall.EIO) {
				t.Errorf("Close: %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if len(fatal) != 1 || !errors.Is(fatal[0], syscall.EIO) {
				t.Errorf("Fatal got %v", fatal)
			}
		})
	}
}

// A disk that was full for something else than a flush is no reason not to flush: Pebble does not
// try anything again then.
func TestFlushOnceTheDiskWasFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := new(faulty)
		o := withoutLog(t, errorfs.Wrap(vfs.NewCrashableMem(), disk))
		var fulls atomic.Int32
		o.OnDiskFull = func() { fulls.Add(1); disk.set(nil) } // it makes space
		s := open(t, "data", o)
		defer closed(t, s)
		for _, value := range []string{"1", "2"} {
			put(t, s, "a", value)
			if err := s.Sync(); err != nil {
				t.Fatal(err)
			}
		}
		disk.set(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "MANIFEST") {
				return syscall.ENOSPC
			}
			return nil
		})
		if err := s.Compact([]byte("a"), []byte("b"), 0); err != nil {
			t.Fatal(err)
		}
		if n := fulls.Load(); n != 1 {
			t.Fatalf("the disk was full %d times", n)
		}
		put(t, s, "a", "3")
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if v, _, err := s.GetDurable(nil, []byte("a")); err != nil || string(v) != "3" {
			t.Errorf("durable is %q, %v", v, err)
		}
		put(t, s, "a", "4")
		if err := s.Checkpoint("checkpoint"); err != nil {
			t.Error(err)
		}
	})
}

// On a full disk Close does not wait for what would tidy up an idle store.
func TestCloseOfAnIdleStoreOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newSmallFS(64 << 20)
		s := open(t, "data", withoutLog(t, f))
		b := new(mutation.Batch)
		for i := range 300 {
			b.Delete(fmt.Append(nil, "gone ", i))
		}
		if err := s.Apply(store.Sync, b); err != nil {
			t.Fatal(err)
		}
		f.others(f.total - buffer)
		put(t, s, "a", "1")
		if err := s.Checkpoint("checkpoint"); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("Checkpoint: %v", err)
		}
		for i := range 900 { // a further flush would wait for the one that the disk refuses
			put(t, s, fmt.Sprint("filler ", i), strings.Repeat("x", 1024))
		}
		pass(15 * time.Second)
		f.others(f.total)
		end := make(chan error, 1)
		go func() { end <- s.Close() }()
		pass(time.Second)
		select {
		case err := <-end:
			if !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Close: %v", err)
			}
		default:
			t.Error("Close does not end")
			f.others(0)
			<-end
		}
	})
}

// A flush rests in between, but for one that follows soon upon another.
func TestThrottledFlushes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const work = time.Millisecond // of each long write of a table
		slow := errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == errorfs.OpFileWrite && isTable(op) {
				pass(work)
			}
			return nil
		})
		o := withoutLog(t, errorfs.Wrap(vfs.NewMem(), slow))
		o.MemTableBytes = 4 << 20
		s := open(t, "a", o)
		random := rand.New(rand.NewPCG(1, 2))
		var took [3]time.Duration
		for i, before := range []time.Duration{0, time.Second, 0} {
			pass(before)
			for n := range 4096 {
				put(t, s, fmt.Sprintf("%d-%d", i, n), fmt.Sprintf("%0256x", random.Uint64()))
			}
			began := clock.System.Now()
			if err := s.Sync(); err != nil {
				t.Fatal(err)
			}
			took[i] = clock.System.Now().Sub(began)
		}
		if took[1] < took[0]+work || took[2] >= took[1] {
			t.Errorf("flushes took %v", took)
		}
		closed(t, s)
	})
}
