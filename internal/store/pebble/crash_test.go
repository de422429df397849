package pebble_test

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/storetest"
)

// disk is a file system of which a crash keeps what was synced, and a random
// part of the rest in blocks of 4 KiB, in any order.
type disk struct {
	fs    *vfs.MemFS
	noLog func() bool // whether the next Open has no log; nil: it has one
}

func (d disk) Open(t testing.TB) store.Store {
	o := options(t, d.fs)
	o.NoLog = d.noLog != nil && d.noLog()
	return open(t, "/var/lib/godwit", o)
}

func (d disk) Crash(seed uint64, percent int) storetest.Disk {
	d.fs = d.fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 0))})
	return d
}

func TestCrash(t *testing.T) {
	for name, noLog := range map[string]func() bool{
		"Log":   nil,
		"NoLog": func() bool { return true },
		"Turns": turns(),
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Crash(t, func() storetest.Disk { return disk{vfs.NewCrashableMem(), noLog} })
		})
	}
}

// turns is true every other time.
func turns() func() bool {
	var n atomic.Int64
	return func() bool { return n.Add(1)%2 == 0 }
}

// A crash before any operation of the first Open leaves a directory that can
// be opened. (Pebble relies on a file system that keeps the order of changes
// to one directory, as real ones do; a random part of them is no such order.)
func TestCrashWhileOpening(t *testing.T) {
	for _, noLog := range []bool{false, true} {
		crashWhileOpening(t, func() bool { return noLog })
	}
}

func crashWhileOpening(t *testing.T, noLog func() bool) {
	fs := vfs.NewCrashableMem()
	var crashes []storetest.Disk
	var mu sync.Mutex
	hook := errorfs.InjectorFunc(func(errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		for _, percent := range []int{0, 100} {
			crashes = append(crashes, disk{fs, noLog}.Crash(uint64(len(crashes)), percent))
		}
		return nil
	})
	o := options(t, errorfs.Wrap(fs, hook))
	o.NoLog = noLog()
	closed(t, open(t, "/var/lib/godwit", o))
	if len(crashes) < 50 {
		t.Errorf("only %d crashes: the hook does not work", len(crashes))
	}
	for _, crash := range crashes {
		closed(t, crash.Open(t))
	}
}
