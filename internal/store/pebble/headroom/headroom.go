// Package headroom reserves disk space for the write-ahead log: flushes and compactions must
// not use it. Where the store has no log, it is for that of a cluster, on the same disk.
package headroom

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/pebble/pace"
)

// The space that is kept free for the write-ahead log, in memtables. Pebble cannot survive a
// failed write of the log. While no memtable can be flushed, the log grows by one memtable
// before writes stall. Compactions, which can be postponed for longer, also leave space for
// flushes. Both thresholds are below the free space at which space.Guard gives up its reserve
// (a quarter of the floor, of two memtables): that must come before compactions stop.
const (
	logHeadroom   = 1.25
	flushHeadroom = 0.5

	// stretch is how many bytes a table may grow between two checks of the free space.
	stretch = 256 << 10
)

// The backoff after a table was refused. Pebble retries immediately, and would write and
// remove the same tables in a loop.
const (
	flushPause         = 100 * time.Millisecond // writes may wait for it
	compactionPause    = time.Second            // at first; doubles
	maxCompactionPause = 16 * time.Second
)

// FS is a file system that refuses tables the space that is reserved for the write-ahead log,
// with the error of a full disk: Pebble removes the table and retries.
type FS struct {
	vfs.FS        // for all files but tables; a full disk is reported to OnDiskFull
	plain  vfs.FS // for tables
	dir    string

	flushes, compactions kept

	closing atomic.Bool

	fatal func(error) // returns in tests only
	log   *slog.Logger
	full  pace.LogLimiter
}

// kept is the headroom that one kind of table leaves, and when the next table may
// be tried after a refusal.
type kept struct {
	headroom  int64       // bytes
	free      atomic.Bool // no headroom is kept while opening and closing
	cancels   bool        // Pebble treats a refusal as a cancellation
	onRefusal func()      // may be nil

	mu          sync.Mutex // guards what follows
	first, most time.Duration
	pause       time.Duration // the last one
	until       time.Time
	again       chan struct{} // closed to end the pause
}

// Options say for which store headroom is kept.
type Options struct {
	Dir           string // of the store
	MemTableBytes int64
	OnDiskFull    func() // called when the disk is full for a flush or for what is no table; may be nil
	OnFlushFull   func() // called when it is full for a flush
	Logger        *slog.Logger
	Fatal         func(error) // ends the process
}

// Keep wraps f for a store.
func Keep(f vfs.FS, o Options) *FS {
	r := &FS{FS: f, plain: f, dir: o.Dir, log: o.Logger, fatal: o.Fatal}
	if o.OnDiskFull != nil {
		r.FS = vfs.OnDiskFull(f, o.OnDiskFull)
	}
	size := float64(o.MemTableBytes)
	k := &r.flushes
	k.headroom, k.first, k.most, k.again = int64(size*logHeadroom), flushPause, flushPause, make(chan struct{})
	k.onRefusal = func() {
		o.OnFlushFull()
		if o.OnDiskFull != nil {
			o.OnDiskFull() // writes will soon wait for a flush that waits
		}
	}
	// Recovery flushes the logs that it reads, and then removes them; no log is written
	// meanwhile.
	k.free.Store(true)
	k = &r.compactions
	k.headroom, k.first, k.most, k.again = int64(size*(logHeadroom+flushHeadroom)), compactionPause, maxCompactionPause, make(chan struct{})
	k.cancels = true
	return r
}

// Retry ends the pause of compactions: more space can be reclaimed than when the last one was
// refused.
func (r *FS) Retry() { r.compactions.retry() }

// Unwrap implements vfs.FS.
func (r *FS) Unwrap() vfs.FS { return r.plain }

// Opened makes flushes keep headroom from now on.
func (r *FS) Opened() { r.flushes.free.Store(false) }

// Close ends all pauses, permanently.
func (r *FS) Close() {
	r.closing.Store(true)
	r.flushes.free.Store(true)
	r.flushes.end()
	r.compactions.end()
}

// Create implements vfs.FS.
func (r *FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	var k *kept
	switch category {
	case pace.WritesFlush:
		if r.flushes.free.Load() {
			return r.FS.Create(name, category)
		}
		k = &r.flushes
	case pace.WritesCompaction:
		k = &r.compactions
	default:
		return r.FS.Create(name, category)
	}
	k.wait()
	t := &table{fs: r, kept: k, name: name, values: strings.HasSuffix(name, valuesSuffix)}
	if err := t.grow(0); err != nil {
		return nil, err
	}
	f, err := r.plain.Create(name, category)
	if err != nil {
		return nil, t.refused(err)
	}
	t.File = f
	return t, nil
}

// table is a table, or a blob file, that is being written. It makes few long writes, since a
// file system spends three times as much on a byte in a block of 4 KiB.
type table struct {
	vfs.File
	fs      *FS
	kept    *kept
	name    string
	values  bool
	granted int64   // bytes that may be written without another check
	buf     *[]byte // not yet written; nil: nothing
	err     error   // of the first write that failed
}

const (
	valuesSuffix = ".blob" // of the names of blob files
	// writeSize is the length of the writes of a table.
	writeSize = 256 << 10
	// tail is how much Pebble buffers before it writes: a write up to this length may be the
	// end of the file.
	tail = 4 << 10
)

var writeBuffers = sync.Pool{New: func() any { b := make([]byte, 0, writeSize); return &b }}

func (t *table) Write(p []byte) (int, error) {
	// Pebble 2.1 panics when the end of a blob file cannot be written. The headroom has space
	// for it.
	if t.err == nil && (!t.values || len(p) > tail) {
		t.err = t.grow(int64(len(p)))
	}
	n := len(p)
	for len(p) > 0 && t.err == nil {
		if t.buf == nil {
			t.buf = writeBuffers.Get().(*[]byte)
		}
		fits := min(len(p), writeSize-len(*t.buf))
		*t.buf = append(*t.buf, p[:fits]...)
		p = p[fits:]
		if len(*t.buf) == writeSize {
			t.flush()
		}
	}
	return n - len(p), t.err
}

// flush writes the buffer.
func (t *table) flush() {
	if t.buf == nil {
		return
	}
	if t.err == nil {
		_, err := t.File.Write(*t.buf)
		t.err = t.refused(err)
	}
	t.release()
}

// flushLast is flush at the end of the file, where Pebble does not survive a failed write of
// values. On a full disk such writes wait, like those of the log.
func (t *table) flushLast() {
	for rest := t.pending(); len(rest) > 0 && t.err == nil; {
		n, err := t.File.Write(rest)
		rest = rest[n:]
		if err = t.refused(err); errors.Is(err, syscall.ENOSPC) && t.values && !t.fs.closing.Load() {
			t.kept.wait()
			continue
		}
		t.err = err
	}
	t.release()
}

func (t *table) pending() []byte {
	if t.buf == nil {
		return nil
	}
	return *t.buf
}

func (t *table) release() {
	if t.buf != nil {
		*t.buf = (*t.buf)[:0]
		writeBuffers.Put(t.buf)
		t.buf = nil
	}
}

// ended is the result of f, which makes a table durable.
func (t *table) ended(f func() error) error {
	if t.err != nil {
		return f() // a Write has reported it; and Pebble does not close a file that it cannot sync
	}
	if t.flushLast(); t.err == nil {
		t.err = t.refused(f())
	}
	if t.err != nil && t.values {
		t.fs.fatal(fmt.Errorf("values cannot be written: %w", t.err))
	}
	return t.err
}

func (t *table) Sync() error     { return t.ended(t.File.Sync) }
func (t *table) SyncData() error { return t.ended(t.File.SyncData) }

func (t *table) SyncTo(length int64) (full bool, err error) {
	if t.flush(); t.err == nil {
		full, err = t.File.SyncTo(length)
		t.err = t.refused(err)
	}
	return full, t.err
}

// Close closes the file. A file with unsynced writes belongs to an abandoned table. Pebble does
// not remove an abandoned blob file.
func (t *table) Close() error {
	given := t.err != nil || t.buf != nil
	t.release()
	err := t.File.Close()
	if given && t.values {
		_ = t.fs.plain.Remove(t.name) // a start removes it, too
	}
	if err == nil && !given {
		t.kept.succeeded()
	}
	return t.refused(err)
}

// grow requests disk space for n more bytes.
func (t *table) grow(n int64) error {
	if n < t.granted {
		t.granted -= n
		return nil
	}
	u, err := t.fs.plain.GetDiskUsage(t.fs.dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("free space of %s: %w", t.fs.dir, err)
	}
	free := int64(u.AvailBytes)
	if free >= t.kept.headroom+n+stretch || t.kept.free.Load() {
		t.granted = stretch
		return nil
	}
	return t.refused(&Error{free: free, kept: t.kept.headroom, cancels: t.kept.cancels})
}

// refused begins a pause if err says that the disk is full.
func (t *table) refused(err error) error {
	if err == nil || !errors.Is(err, syscall.ENOSPC) {
		return err
	}
	t.kept.refuse()
	none, ok := errors.AsType[*Error](err)
	if !ok {
		none = &Error{kept: t.kept.headroom, cancels: t.kept.cancels}
	}
	if t.kept.onRefusal != nil {
		t.kept.onRefusal()
	}
	if t.fs.full.Allow() {
		t.fs.log.Error("the disk is full: the store cannot tidy up", "dir", t.fs.dir, "freeBytes", none.free, "keptBytes", none.kept)
	}
	return none
}

// Error refuses a table.
type Error struct {
	free, kept int64 // bytes
	cancels    bool
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s: %d bytes are free and %d are kept for the log", syscall.ENOSPC, e.free, e.kept)
}

// Is makes a refusal a full disk, and that of a compaction also a cancelled compaction: after
// any other failure Pebble does not compact the range for 30 s, in which deletes would free no
// space.
func (e *Error) Is(target error) bool {
	return target == syscall.ENOSPC || e.cancels && target == pebble.ErrCancelledCompaction
}

// wait waits for the end of the pause after a refusal.
func (k *kept) wait() {
	k.mu.Lock()
	left, again := k.until.Sub(clock.System.Now()), k.again
	k.mu.Unlock()
	if left <= 0 {
		return
	}
	over, stop := clock.After(clock.System, left)
	defer stop()
	select {
	case <-over:
	case <-again:
	}
}

func (k *kept) refuse() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pause = min(max(k.first, 2*k.pause), k.most)
	k.until = clock.System.Now().Add(k.pause)
}

func (k *kept) succeeded() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pause = 0
}

// retry ends a pause: more space can be reclaimed than when the last table was refused.
func (k *kept) retry() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pause, k.until = 0, time.Time{}
	close(k.again)
	k.again = make(chan struct{})
}

// end is retry, and permanent.
func (k *kept) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.first, k.most, k.pause, k.until = 0, 0, 0, time.Time{}
	close(k.again)
	k.again = make(chan struct{})
}
