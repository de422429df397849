package sim

import (
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// disk is a file system in memory that is slow, fills up, and of which a crash leaves
// what was synced, and all, some or none of what was written since.
type disk struct {
	mem   *vfs.MemFS
	draws *rand.Rand

	mu      sync.Mutex    // guards what follows
	slow    time.Duration // the longest that a sync takes; 0: it takes no time
	quick   bool          // the machine ends: several may sync at once, under a lock
	full    bool          // the next write of the log finds no room
	low     bool          // there is little room
	freed   int           // writes that found no room and were told to try again
	applies int           // batches and syncs to come before the crash; 0: none comes
	syncs   int
	opened  bool // the store is open
	syncing bool // somebody waits for one
	writing bool // a batch is being written
	fails   failing
	hurt    bool // by a sync that has failed
	lost    lostPages
	lately  string // what was lost last
	failed  bool   // the store has given up
	broken  func(*death)
	told    func(fileKind) // of a sync that fails
}

func newDisk(mem *vfs.MemFS, lost lostPages, draws *rand.Rand) *disk {
	return &disk{mem: mem, lost: lost, draws: draws}
}

// String is what errorfs calls it.
func (d *disk) String() string { return "the simulated disk" }

func isLog(path string) bool { return strings.HasSuffix(path, ".log") }

// MaybeError is what happens before an operation of the file system.
func (d *disk) MaybeError(op errorfs.Op) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch op.Kind {
	case errorfs.OpFileWrite:
		if isLog(op.Path) && d.full {
			return syscall.ENOSPC
		}
	case errorfs.OpFileSync, errorfs.OpFileSyncData:
		return d.sync(op.Path)
	case errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpRemove, errorfs.OpRename:
		delete(d.lost, op.Path)
	default:
	}
	return nil
}

// wait is how long a sync takes. Whatever else continues comes first. It is waited for
// above the engine, which may hold locks that others need.
func (d *disk) wait() {
	d.mu.Lock()
	if d.quick {
		d.mu.Unlock()
		return
	}
	wait := time.Nanosecond
	if d.slow > 0 {
		wait += time.Duration(d.draws.Int64N(int64(d.slow)))
	}
	d.mu.Unlock()
	time.Sleep(wait)
}

// sync is where the machine may die: what was written is on its way, and not durable. d.mu
// is held.
func (d *disk) sync(path string) error {
	if err := d.failSync(path); err != nil {
		return err
	}
	if isLog(path) && d.syncing && d.syncs > 0 {
		if d.syncs--; d.syncs == 0 {
			d.crash(d.draws.IntN(leavesPages))
		}
	}
	return nil
}

// makeRoom is what the server does when its disk is full: it gives up its reserve.
func (d *disk) makeRoom() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.full, d.low = false, true
	d.freed++
}

func (d *disk) isLow() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.low
}

// set changes how the disk behaves.
func (d *disk) set(f func(d *disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

// What a crash leaves of what was not synced.
const (
	leavesNothing = iota
	leavesAll
	leavesSome
	leavesPages // all, in memory: only the process has ended
)

// crash tells the machine what is left; d.mu is held.
func (d *disk) crash(leaves int) {
	d.applies, d.syncs, d.fails = 0, 0, failing{}
	tell := d.broken
	d.broken = nil
	if tell == nil {
		return
	}
	synced := d.mem.CrashClone(vfs.CrashCloneCfg{})
	if leaves == leavesNothing {
		tell(&death{left: d.lost.drop(synced)})
		return
	}
	all := d.mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: rand.New(rand.NewPCG(0, 0))})
	switch leaves {
	case leavesSome:
		if err := tear(synced, all, d.draws); err != nil {
			panic(err)
		}
	case leavesPages:
		tell(&death{left: all, lost: d.lost})
		return
	}
	tell(&death{left: d.lost.drop(all)})
}

// tear cuts the latest log somewhere behind what was synced of it.
func tear(synced, all *vfs.MemFS, draws *rand.Rand) error {
	names, err := all.List(storeDir)
	if err != nil {
		return err
	}
	latest := ""
	for _, name := range names {
		if isLog(name) && name > latest {
			latest = name
		}
	}
	path := all.PathJoin(storeDir, latest)
	long, err := content(all, path)
	if err != nil {
		return err
	}
	short, err := content(synced, path)
	if err != nil && !errors.Is(err, syscall.ENOENT) && !isNotExist(err) {
		return err
	}
	if len(long) <= len(short) {
		return nil
	}
	long = long[:len(short)+draws.IntN(len(long)-len(short)+1)]
	f, err := all.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(long)
	return errors.Join(err, f.Sync(), f.Close())
}

func content(fs vfs.FS, path string) ([]byte, error) {
	f, err := fs.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}
