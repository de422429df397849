package pebble_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
)

// write stores records of 20 KiB at prefix and 0 to n-1.
func write(t *testing.T, s *pebble.Store, prefix byte, n int) {
	t.Helper()
	value := make([]byte, 20<<10)
	incompressible(value)
	for i := range n {
		b := new(mutation.Batch)
		b.Set(binary.BigEndian.AppendUint64([]byte{prefix}, uint64(i)), value)
		if err := s.Apply(store.NoSync, b); err != nil {
			t.Fatal(err)
		}
	}
}

func dropPrefix(t *testing.T, s *pebble.Store, prefix byte) {
	t.Helper()
	b := new(mutation.Batch)
	b.DeleteRange([]byte{prefix}, []byte{prefix + 1})
	if err := s.Apply(store.Sync, b); err != nil {
		t.Fatal(err)
	}
}

// A range that was deleted takes no space a minute later, wherever its records
// lay, and with no other write.
func TestDroppedRange(t *testing.T) {
	for name, records := range map[string]int{"in the youngest layers": 200, "deep": 2000} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs, s := openRoomy(t)
				defer closed(t, s)
				write(t, s, 'a', 50)
				write(t, s, 'b', records)
				write(t, s, 'c', 50)
				synctest.Wait()
				if size := tables(t, fs, "data"); size < int64(records)*19<<10 {
					t.Fatalf("tables take %d bytes with everything in them", size)
				}
				dropPrefix(t, s, 'b')
				pass(time.Minute)
				synctest.Wait()
				if size := tables(t, fs, "data"); size > 145*20<<10 { // up to wasteShare of it is waste
					t.Errorf("tables take %d bytes a minute after, with 100 records of 20 KiB in them", size)
				}
			})
		})
	}
}

// Close does not wait for a range to be due.
func TestCloseWithDroppedRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, "data", options(t, vfs.NewMem()))
		write(t, s, 'a', 100)
		dropPrefix(t, s, 'a')
		closed(t, s)
		pass(time.Minute)
	})
}

// What was overwritten, and is to be forgotten, is in no file any more: neither in tables nor
// in logs that are kept to be written over.
func TestForget(t *testing.T) {
	for _, noLog := range []bool{false, true} {
		t.Run(fmt.Sprint("NoLog=", noLog), func(t *testing.T) { testForget(t, noLog) })
	}
}

func testForget(t *testing.T, noLog bool) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		o := options(t, fs)
		o.NoLog = noLog
		s := open(t, "data", o)
		defer closed(t, s)
		secret := make([]byte, 64)
		incompressible(secret)
		put := func(key string, value []byte) {
			t.Helper()
			b := new(mutation.Batch)
			b.Set([]byte(key), value)
			if err := s.Apply(store.Sync, b); err != nil {
				t.Fatal(err)
			}
		}
		holding := func() (files []string) {
			t.Helper()
			names, err := fs.List("data")
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				if bytes.Contains(contents(t, fs, fs.PathJoin("data", name)), secret) {
					files = append(files, name)
				}
			}
			return files
		}
		put("key", secret)
		put("other", []byte("kept"))
		if len(holding()) == 0 {
			t.Fatal("no file has the secret: the test proves nothing")
		}
		put("key", []byte("the next"))
		if err := s.Forget([]byte("key"), []byte("kez")); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		synctest.Wait()
		if files := holding(); len(files) > 0 {
			t.Errorf("it is in %v still", files)
		}
		for key, want := range map[string]string{"key": "the next", "other": "kept"} {
			if value, ok, err := s.Get(nil, []byte(key)); err != nil || !ok || string(value) != want {
				t.Errorf("%s: %q, %t, %v", key, value, ok, err)
			}
		}
	})
}
