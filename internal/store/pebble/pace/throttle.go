package pace

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
)

// Pebble's names of its categories of writes, which it does not export.
const (
	WritesFlush      = "pebble-memtable-flush"
	WritesCompaction = "pebble-compaction"
)

const (
	// stretch is how long a flush or a compaction works until it rests, and how long it rests. A flush works for tens of milliseconds, as long as requests wait where all processors
	// are busy: the scheduler of the system is in no hurry to take one away.
	stretch = time.Millisecond

	// calmFrom is the time between the beginnings of two flushes from which on they are throttled.
	// Where write buffers are filled faster than that, a flush that takes twice as long could
	// have writes wait for it.
	calmFrom = 250 * time.Millisecond
)

// Throttle is a file system on which flushes and compactions leave half of a processor to
// others, unless there is too much to flush.
type Throttle struct {
	vfs.FS

	latest atomic.Int64 // Unix nanoseconds at which the latest flush began; 0: there was none
	calm   atomic.Bool
	closed atomic.Bool
}

// NewThrottle wraps f. Nothing is throttled before the second flush.
func NewThrottle(f vfs.FS) *Throttle { return &Throttle{FS: f} }

// FlushBegan notes that a flush begins.
func (t *Throttle) FlushBegan() {
	now := clock.System.Now().UnixNano()
	before := t.latest.Swap(now)
	t.calm.Store(before != 0 && now-before >= int64(calmFrom))
}

// Close ends the throttling, permanently.
func (t *Throttle) Close() { t.closed.Store(true) }

// Unwrap implements vfs.FS.
func (t *Throttle) Unwrap() vfs.FS { return t.FS }

// Create implements vfs.FS.
func (t *Throttle) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := t.FS.Create(name, category)
	if err != nil || category != WritesFlush && category != WritesCompaction {
		return f, err
	}
	return &throttled{f, t, clock.System.Now()}, nil
}

// throttled is a file that a flush or a compaction writes.
type throttled struct {
	vfs.File
	by    *Throttle
	since time.Time // of the latest rest
}

// Write implements vfs.File. It may rest first.
func (f *throttled) Write(p []byte) (int, error) {
	if clock.System.Now().Sub(f.since) >= stretch {
		if f.by.calm.Load() && !f.by.closed.Load() {
			over, stop := clock.After(clock.System, stretch)
			<-over
			stop()
		}
		f.since = clock.System.Now()
	}
	return f.File.Write(p)
}
