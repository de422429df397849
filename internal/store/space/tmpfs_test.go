//go:build linux

package space_test

import (
	"context"
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
	"godwit.dev/godwit/internal/store/space"
)

// tmpfs mounts a file system of the given size, or skips the test.
func tmpfs(t *testing.T, size string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting a small file system needs root")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func TestReserveTakesRoom(t *testing.T) {
	dir := tmpfs(t, "64m")
	free := func() int64 {
		var s syscall.Statfs_t
		if err := syscall.Statfs(dir, &s); err != nil {
			t.Fatal(err)
		}
		return int64(s.Bavail) * s.Bsize
	}
	before := free()
	g, err := space.Open(dir, space.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	if taken := before - free(); taken != 8*mib {
		t.Errorf("the reserve takes %d bytes on a file system of 64 MiB, want 8 MiB", taken)
	}
	g.Release()
	if free() != before {
		t.Errorf("after the release %d bytes are free, want %d", free(), before)
	}
}

// A store on a small disk is filled until the guard is low; everything can
// then be deleted, and that makes room again, without a restart and with no
// write but the deletes.
func TestDeletesMakeRoomOnAFullDisk(t *testing.T) {
	for _, c := range []struct {
		name     string
		value    int
		slow     int  // records between two checks of the free space
		reopened bool // the store is closed and opened between
		atOnce   bool // the deletes are one commit
	}{
		{name: "large records", value: 200 << 10, slow: 10},
		{name: "small records", value: 4000, slow: 400},
		{name: "checks come late", value: 64 << 10, slow: 1 << 20},
		{name: "reopened", value: 20 << 10, slow: 50, reopened: true},
		{name: "reopened, at once", value: 20 << 10, slow: 50, reopened: true, atOnce: true},
		{name: "at once", value: 200 << 10, slow: 10, atOnce: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := filepath.Join(tmpfs(t, "64m"), "data")
			logger := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
			paced := clock.NewVirtual(time.Unix(0, 0))
			g, err := space.Open(dir, space.Options{Clock: paced, Logger: logger})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			open := func() *pebble.Store {
				s, err := pebble.Open(dir, pebble.Options{
					Logger: logger, OnDiskFull: g.Release,
					Fatal: func(err error) { t.Errorf("fatal: %v", err) },
				})
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			s := open()
			defer func() { s.Close() }()
			g.WhileLow(func() {
				if err := s.Reclaim(); err != nil {
					t.Errorf("Reclaim: %v", err)
				}
			})
			check := func() {
				if _, err := paced.Advance(t.Context(), time.Second); err != nil {
					t.Fatal(err)
				}
			}
			key := func(n int) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }
			value := make([]byte, c.value)
			for i := range value {
				value[i] = byte(i * i >> 3)
			}
			b := new(mutation.Batch)
			apply := func() {
				if err := s.Apply(store.Sync, b); err != nil {
					t.Fatal(err)
				}
				b.Reset()
			}
			n := 0
			for ; !g.Low(); n++ {
				if n*c.value > 200*mib {
					t.Fatal("the disk took more than it has")
				}
				binary.BigEndian.PutUint64(value, uint64(n)*0x9e3779b97f4a7c15)
				b.Set(key(n), value)
				apply()
				if n%c.slow == 0 {
					check()
				}
			}
			t.Logf("took %d records, %d MiB", n, n*c.value/mib)
			if n*c.value < 16*mib {
				t.Errorf("the disk of 64 MiB took %d MiB only", n*c.value/mib)
			}
			if c.reopened {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = open()
			}
			for i := range n {
				b.SingleDelete(key(i))
				if !c.atOnce || i == n-1 {
					apply()
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			for g.Low() && ctx.Err() == nil {
				check()
			}
			if ok, message := g.Health(); !ok {
				t.Errorf("everything is deleted, but %s", message)
			}
			it, err := s.Iter(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer it.Close()
			if it.Next() {
				t.Errorf("%q was deleted", it.Key())
			}
		})
	}
}
