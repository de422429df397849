package pebble_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/storetest"
)

// disk is a file system of which a crash keeps what was synced, and a random
// part of the rest in blocks of 4 KiB, in any order.
type disk struct{ fs *vfs.MemFS }

func (d disk) Open(t testing.TB) store.Store { return open(t, "/var/lib/godwit", options(t, d.fs)) }

func (d disk) Crash(seed uint64, percent int) storetest.Disk {
	return disk{d.fs.CrashClone(vfs.CrashCloneCfg{
		UnsyncedDataPercent: percent, RNG: rand.New(rand.NewPCG(seed, 0)),
	})}
}

func TestCrash(t *testing.T) {
	storetest.Crash(t, func() storetest.Disk { return disk{vfs.NewCrashableMem()} })
}

// A crash before any operation of the first Open leaves a directory that can
// be opened. (Pebble relies on a file system that keeps the order of changes
// to one directory, as real ones do; a random part of them is no such order.)
func TestCrashWhileOpening(t *testing.T) {
	fs := vfs.NewCrashableMem()
	var crashes []storetest.Disk
	var mu sync.Mutex
	hook := errorfs.InjectorFunc(func(errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		for _, percent := range []int{0, 100} {
			crashes = append(crashes, disk{fs}.Crash(uint64(len(crashes)), percent))
		}
		return nil
	})
	closed(t, open(t, "/var/lib/godwit", options(t, errorfs.Wrap(fs, hook))))
	if len(crashes) < 50 {
		t.Errorf("only %d crashes: the hook does not work", len(crashes))
	}
	for _, crash := range crashes {
		closed(t, crash.Open(t))
	}
}
