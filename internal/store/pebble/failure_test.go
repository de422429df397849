package pebble_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/storetest"
)

// faulty is a file system in which some operations fail.
type faulty struct {
	mu  sync.Mutex
	err func(errorfs.Op) error
}

func (f *faulty) String() string { return "faulty" }

func (f *faulty) set(err func(errorfs.Op) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *faulty) MaybeError(op errorfs.Op) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		return nil
	}
	return f.err(op)
}

func isLog(op errorfs.Op) bool   { return strings.HasSuffix(op.Path, ".log") }
func isTable(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".sst") }

// isValues is of files with the values that are kept apart from tables.
func isValues(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".blob") }

func isEither(op errorfs.Op) bool { return isTable(op) || isValues(op) }

// After a failure of the write-ahead log the process must end: nothing is
// acknowledged, and nothing is served, that may not be on disk.
func TestLogFailureIsFatal(t *testing.T) {
	apply := func(s *pebble.Store, b *mutation.Batch) error { return s.Apply(store.Sync, b) }
	commit := func(s *pebble.Store, b *mutation.Batch) error {
		durable, err := s.Commit(b)
		if err != nil {
			return err
		}
		return durable()
	}
	for name, c := range map[string]struct {
		kind  errorfs.OpKind
		write func(s *pebble.Store, b *mutation.Batch) error
	}{
		"Sync": {errorfs.OpFileSyncData, apply}, "Write": {errorfs.OpFileWrite, apply},
		"Sync of Commit": {errorfs.OpFileSyncData, commit}, "Write of Commit": {errorfs.OpFileWrite, commit},
	} {
		t.Run(name, func(t *testing.T) {
			disk := new(faulty)
			mem := vfs.NewCrashableMem()
			o := options(t, errorfs.Wrap(mem, disk))
			var fatal []error
			var mu sync.Mutex
			o.Fatal = func(err error) {
				mu.Lock()
				defer mu.Unlock()
				fatal = append(fatal, err)
			}
			s := open(t, "data", o)
			if err := s.Apply(store.Sync, storetest.Sets("kept", "1")); err != nil {
				t.Fatal(err)
			}
			disk.set(func(op errorfs.Op) error {
				if isLog(op) && op.Kind == c.kind {
					return syscall.EIO
				}
				return nil
			})
			if err := c.write(s, storetest.Sets("lost", "1")); !errors.Is(err, syscall.EIO) {
				t.Errorf("Apply with a broken log: %v", err)
			}
			for call, err := range map[string]error{
				"Apply":         s.Apply(store.NoSync, storetest.Sets("later", "1")),
				"Sync":          s.Sync(),
				"Get":           second(s.Get(nil, []byte("kept"))),
				"Snapshot.Get":  second(s.Snapshot().Get(nil, []byte("kept"))),
				"Checkpoint":    s.Checkpoint("checkpoint"),
				"Iter":          func() error { _, err := s.Iter(nil, nil); return err }(),
				"Apply(sync)":   s.Apply(store.Sync, storetest.Sets("later", "1")),
				"Apply nothing": s.Apply(store.Sync),
				"Commit":        commit(s, storetest.Sets("later", "1")),
			} {
				if !errors.Is(err, syscall.EIO) {
					t.Errorf("%s after the failure: %v", call, err)
				}
			}
			mu.Lock()
			if len(fatal) != 1 || !errors.Is(fatal[0], syscall.EIO) {
				t.Errorf("Fatal got %v", fatal)
			}
			mu.Unlock()
			if err := s.Close(); !errors.Is(err, syscall.EIO) {
				t.Errorf("Close after the failure: %v", err)
			}

			// Recovery is a restart.
			again := open(t, "data", options(t, mem.CrashClone(vfs.CrashCloneCfg{})))
			defer closed(t, again)
			if _, ok, err := again.Get(nil, []byte("kept")); err != nil || !ok {
				t.Errorf("what was acknowledged: %v, %v", ok, err)
			}
			if _, ok, err := again.Get(nil, []byte("lost")); err != nil || ok {
				t.Errorf("what never reached the disk: %v, %v", ok, err)
			}
		})
	}
}

func second(_ []byte, _ bool, err error) error { return err }

// fill writes more than two write buffers.
func fill(t *testing.T, s *pebble.Store, prefix string) {
	t.Helper()
	for i := range 200 {
		b := new(mutation.Batch)
		b.Set(fmt.Appendf(nil, "%s %d", prefix, i), make([]byte, 1024))
		if err := s.Apply(store.NoSync, b); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBackgroundFailureIsFatal(t *testing.T) {
	disk := new(faulty)
	o := options(t, errorfs.Wrap(vfs.NewMem(), disk))
	failed := make(chan error, 1)
	o.Fatal = func(err error) {
		disk.set(nil) // Pebble tries again, and the test can end
		failed <- err
	}
	s := open(t, "data", o)
	disk.set(func(op errorfs.Op) error {
		if isTable(op) && op.Kind == errorfs.OpFileWrite {
			return syscall.EIO
		}
		return nil
	})
	for i := 0; s.Apply(store.NoSync, storetest.Sets(fmt.Sprint(i), strings.Repeat("x", 1024))) == nil; i++ {
		if i > 1000 {
			t.Fatal("a store whose tables cannot be written goes on")
		}
	}
	if err := <-failed; !errors.Is(err, syscall.EIO) {
		t.Errorf("Fatal got %v", err)
	}
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("Close: %v", err)
	}
}

// The process ends when values cannot be made durable: Pebble would not survive it.
func TestFailureOfValuesIsFatal(t *testing.T) {
	const child = "GODWIT_TEST_VALUES"
	if os.Getenv(child) == "" {
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.timeout=1m")
		c.Env = append(os.Environ(), child+"=1")
		out, err := c.CombinedOutput()
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != pebble.ExitCode {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	disk := new(faulty)
	o := options(t, errorfs.Wrap(vfs.NewMem(), disk))
	o.Fatal = nil
	s := open(t, "data", o)
	disk.set(func(op errorfs.Op) error {
		if isValues(op) && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			return syscall.EIO
		}
		return nil
	})
	for i := 0; s.Apply(store.NoSync, storetest.Sets(fmt.Sprint(i), strings.Repeat("x", 1024))) == nil; i++ {
	}
	select {} // a write may learn of it before the process ends
}

// A full disk stops flushes, not the store: they continue when there is room.
func TestFullDiskStopsFlushesOnly(t *testing.T) {
	for name, is := range map[string]func(errorfs.Op) bool{"tables": isTable, "values": isValues, "both": isEither} {
		t.Run(name, func(t *testing.T) { testFullDiskStopsFlushesOnly(t, is) })
	}
}

func testFullDiskStopsFlushesOnly(t *testing.T, is func(errorfs.Op) bool) {
	synctest.Test(t, func(t *testing.T) {
		disk := new(faulty)
		o := options(t, errorfs.Wrap(vfs.NewMem(), disk))
		var log bytes.Buffer // read when all is quiet
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError}))
		s := open(t, "data", o)
		defer closed(t, s)
		var refused atomic.Int32
		disk.set(func(op errorfs.Op) error {
			if is(op) && op.Kind == errorfs.OpFileWrite && refused.Add(1) < 50 {
				return syscall.ENOSPC
			}
			return nil
		})
		fill(t, s, "during")
		fill(t, s, "after")
		synctest.Wait()
		if n := refused.Load(); n < 50 {
			t.Fatalf("only %d writes met the full disk", n)
		}
		if n := strings.Count(log.String(), "disk is full"); n != 1 {
			t.Errorf("the full disk was logged %d times:\n%s", n, &log)
		}
		for _, prefix := range []string{"during", "after"} {
			for i := range 200 {
				if _, ok, err := s.Get(nil, fmt.Appendf(nil, "%s %d", prefix, i)); err != nil || !ok {
					t.Fatalf("%s %d: %v, %v", prefix, i, ok, err)
				}
			}
		}
	})
}

// A write that finds the disk full succeeds if room is made for it.
func TestOnDiskFullMakesRoom(t *testing.T) {
	disk := new(faulty)
	o := options(t, errorfs.Wrap(vfs.NewMem(), disk))
	var calls atomic.Int32
	o.OnDiskFull = func() {
		calls.Add(1)
		disk.set(nil)
	}
	s := open(t, "data", o)
	defer closed(t, s)
	disk.set(func(op errorfs.Op) error {
		if isLog(op) && op.Kind == errorfs.OpFileWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	if err := s.Apply(store.Sync, storetest.Sets("a", "1")); err != nil {
		t.Errorf("Apply: %v", err)
	}
	if calls.Load() != 1 {
		t.Errorf("OnDiskFull was called %d times", calls.Load())
	}
}

// With no room to be made, the log's failure is fatal, and what was
// acknowledged before is there after a restart.
func TestFullDiskInTheLogIsFatal(t *testing.T) {
	disk := new(faulty)
	mem := vfs.NewCrashableMem()
	o := options(t, errorfs.Wrap(mem, disk))
	o.OnDiskFull = func() {}
	var fatal atomic.Pointer[error]
	o.Fatal = func(err error) { fatal.Store(&err) }
	s := open(t, "data", o)
	if err := s.Apply(store.Sync, storetest.Sets("a", "1")); err != nil {
		t.Fatal(err)
	}
	disk.set(func(op errorfs.Op) error {
		if isLog(op) && op.Kind == errorfs.OpFileWrite {
			return syscall.ENOSPC
		}
		return nil
	})
	if err := s.Apply(store.Sync, storetest.Sets("b", "1")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Apply on a full disk: %v", err)
	}
	if err := fatal.Load(); err == nil || !errors.Is(*err, syscall.ENOSPC) {
		t.Error("Fatal was not told of the full disk")
	}
	s.Close()
	again := open(t, "data", options(t, mem.CrashClone(vfs.CrashCloneCfg{})))
	defer closed(t, again)
	if _, ok, err := again.Get(nil, []byte("a")); err != nil || !ok {
		t.Errorf("what was acknowledged: %v, %v", ok, err)
	}
}
