package sim

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// failing is a sync that is to fail: one of a kind of files, after some that do not.
type failing struct {
	kind  fileKind
	after int
}

// fileKind is what of the store a file is.
type fileKind string

const (
	logFile       fileKind = "log"
	tableFile     fileKind = "table"
	valuesFile    fileKind = "file of values"
	manifestFile  fileKind = "manifest"
	directoryFile fileKind = "directory"
	otherFile     fileKind = "file beside" // what of the log is durable, options
)

// failingKinds are of which a sync fails, as often as they are here.
var failingKinds = []fileKind{logFile, logFile, logFile, logFile, tableFile, valuesFile, manifestFile, directoryFile, otherFile}

func kindOf(path string) fileKind {
	name := path[strings.LastIndexByte(path, '/')+1:]
	switch {
	case path == storeDir || path == ".":
		return directoryFile
	case isLog(name):
		return logFile
	case strings.HasSuffix(name, ".sst"):
		return tableFile
	case strings.HasSuffix(name, ".blob"):
		return valuesFile
	case strings.HasPrefix(name, "MANIFEST-"):
		return manifestFile
	default:
		return otherFile
	}
}

// failSync has a sync fail whose turn it is. What it was to make durable is lost then: the
// kernel takes those pages for written, and a sync that follows says so. d.mu is held.
func (d *disk) failSync(path string) error {
	kind := kindOf(path)
	if kind != d.fails.kind {
		return nil
	}
	if d.fails.after > 0 {
		d.fails.after--
		return nil
	}
	d.fails = failing{}
	d.hurt = d.hurt || kind != otherFile // without which the store goes on
	d.lose(path)
	d.told(kind)
	// Pebble panics where a log that is replaced cannot be synced, or the directory of the
	// new one or of a marker, and nothing can recover from that; a large batch replaces its
	// log. For values it would panic, too, if the store did not end the process before. So
	// it ends here. So does a start, as Pebble does not wait for its goroutines if it fails.
	if !d.opened || kind == valuesFile || kind == logFile && d.writing || panics() {
		d.die()
		return nil
	}
	return syscall.EIO
}

// panics reports that Pebble is, on this goroutine, where it panics if a sync fails.
func panics() bool {
	pcs := make([]uintptr, 50)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for {
		f, more := frames.Next()
		if strings.HasSuffix(f.Function, ".rotateWAL") || strings.HasSuffix(f.Function, ".(*Marker).Move") {
			return true
		}
		if !more {
			return false
		}
	}
}

// storeFailed is what the store does when it gives up: the process ends.
func (d *disk) storeFailed(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.hurt {
		panic(fmt.Sprint("the store failed: ", err))
	}
	d.failed = true
	d.die()
}

// die ends the process over a sync that has failed; d.mu is held.
func (d *disk) die() {
	leaves := d.draws.IntN(leavesPages + 1)
	if leaves == leavesAll || leaves == leavesSome {
		delete(d.lost, d.lately) // the kernel may have written it all the same
	}
	d.crash(leaves)
}

func (d *disk) hasFailed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// calm ends all that is wrong with the disk, but for what is lost. d.mu is held.
func (d *disk) calm() {
	d.slow, d.full, d.low, d.applies, d.syncs, d.fails = 0, false, false, 0, 0, failing{}
}

// lostPages are what of files a sync that failed was to make durable, by their paths. They
// can be read until the machine restarts.
type lostPages map[string]page

// page is where the content of a file differs from what is durable of it.
type page struct {
	from, to int
	old      []byte // what is durable from there on; zeros follow
}

// lose notes what a sync that failed has lost; d.mu is held.
func (d *disk) lose(path string) {
	if kindOf(path) == directoryFile {
		return // what a crash leaves lacks the names that are not synced
	}
	now, err := content(d.mem, path)
	if err != nil {
		panic(err)
	}
	synced, err := content(d.mem.CrashClone(vfs.CrashCloneCfg{}), path)
	if err != nil && !isNotExist(err) {
		panic(err)
	}
	from := 0
	for from < min(len(now), len(synced)) && now[from] == synced[from] {
		from++
	}
	if from == len(now) {
		return
	}
	if d.lost == nil {
		d.lost = lostPages{}
	}
	d.lost[path], d.lately = page{from, len(now), synced[from:]}, path
}

// drop takes what is lost out of what a crash leaves.
func (l lostPages) drop(from *vfs.MemFS) *vfs.MemFS {
	for path, p := range l {
		if err := p.drop(from, path); err != nil && !isNotExist(err) {
			panic(err)
		}
	}
	return from
}

func (p *page) drop(from *vfs.MemFS, path string) error {
	left, err := content(from, path)
	if err != nil || len(left) <= p.from {
		return err
	}
	old := make([]byte, min(p.to, len(left))-p.from)
	copy(old, p.old)
	f, err := from.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteAt(old, int64(p.from)); err != nil {
		return err
	}
	return f.Sync()
}

// armFailure has one of the next syncs fail.
func (w *world) armFailure() {
	f := failing{kind: pick(w, failingKinds), after: w.rand.IntN(3)}
	w.disk.set(func(d *disk) { d.fails = f })
	w.log("%s the sync of a %s will fail after %d", stamp(w.now()), f.kind, f.after)
}

// syncFailed hears that a sync fails.
func (w *world) syncFailed(of fileKind) {
	w.log("  the sync of a %s fails", of)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count["failed sync of a "+string(of)]++
}
