// Package durable tracks how much of each log and manifest is synced, and records it in the
// mark.
package durable

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/pebble/files"
	"godwit.dev/godwit/internal/store/pebble/mark"
	"godwit.dev/godwit/internal/store/pebble/pace"
)

// markDelay bounds how long the mark may lag behind a sync.
const markDelay = 900 * time.Millisecond

// FS is a file system that tracks how much of each log and manifest is synced, and writes the
// mark in the background. It costs a commit two atomic additions.
type FS struct {
	vfs.FS
	dir    string
	log    *slog.Logger
	format uint32 // of the directory

	fresh    atomic.Bool   // see WithoutRecycling
	sequence atomic.Uint64 // of the latest write known to be durable
	changed  atomic.Bool   // since the timer was set

	mu        sync.Mutex // guards what follows
	logs      map[uint64]*extent
	manifests map[uint64]*extent

	soonest pace.Delayed
	marking sync.Mutex // held while a mark is written
	writer  *mark.Writer
	failing pace.LogLimiter
}

// extent is how many bytes of a file were written, and how many are durable.
type extent struct{ written, durable atomic.Int64 }

func (e *extent) synced(written int64) bool {
	for {
		d := e.durable.Load()
		if written <= d {
			return false
		}
		if e.durable.CompareAndSwap(d, written) {
			return true
		}
	}
}

// Watch begins to track a store in dir; the marks contain its format.
func Watch(f vfs.FS, dir string, format uint32, log *slog.Logger) *FS {
	return &FS{FS: f, dir: dir, log: log, format: format, logs: map[uint64]*extent{}, manifests: map[uint64]*extent{}}
}

// Unwrap implements vfs.FS.
func (d *FS) Unwrap() vfs.FS { return d.FS }

// Resume takes over the logs from first on in the last process's mark, and begins to write
// marks.
func (d *FS) Resume(m *mark.Mark, first uint64) error {
	w, err := mark.NewWriter(d.FS, d.dir)
	if err != nil {
		return err
	}
	d.marking.Lock()
	d.writer = w
	d.marking.Unlock()
	if m == nil {
		return nil
	}
	d.sequence.Store(m.Sequence)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range m.Logs {
		if f.Number >= first {
			d.logs[f.Number] = new(extent)
			d.logs[f.Number].durable.Store(f.Durable)
		}
	}
	for _, f := range m.Manifests {
		d.manifests[f.Number] = new(extent)
		d.manifests[f.Number].durable.Store(f.Durable)
	}
	return nil
}

// Create implements vfs.FS.
func (d *FS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	return d.track(name, f), err
}

// WithoutRecycling runs f while obsolete logs are removed, with their content, in place of being
// written again.
func (d *FS) WithoutRecycling(f func() error) error {
	d.fresh.Store(true)
	defer d.fresh.Store(false)
	return f()
}

// ReuseForWrite implements vfs.FS.
func (d *FS) ReuseForWrite(old, name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if d.fresh.Load() {
		if err := d.Remove(old); err != nil {
			return nil, err
		}
		return d.Create(name, category)
	}
	f, err := d.FS.ReuseForWrite(old, name, category)
	if err == nil {
		d.forget(old)
	}
	return d.track(name, f), err
}

// Remove implements vfs.FS.
func (d *FS) Remove(name string) error {
	err := d.FS.Remove(name)
	if err == nil {
		d.forget(name)
	}
	return err
}

// own is the name of a file in the store's directory; empty: it is in another one.
func (d *FS) own(name string) string {
	if d.PathDir(name) != d.dir {
		return ""
	}
	return d.PathBase(name)
}

func (d *FS) forget(name string) {
	name = d.own(name)
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := files.ParseLogName(name); ok {
		delete(d.logs, n)
	}
	if n, ok := files.ParseManifestName(name); ok {
		delete(d.manifests, n)
	}
}

func (d *FS) track(name string, f vfs.File) vfs.File {
	if f == nil {
		return nil
	}
	name = d.own(name)
	t := &tracked{File: f, fs: d}
	n, isLog := files.ParseLogName(name)
	if !isLog {
		if n, t.manifest = files.ParseManifestName(name); !t.manifest {
			return f
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if t.manifest {
		d.manifests[n] = &t.extent
	} else {
		d.logs[n] = &t.extent
	}
	return t
}

// tracked is a log or a manifest that is being written.
type tracked struct {
	vfs.File
	extent
	fs       *FS
	manifest bool
}

func (t *tracked) Write(p []byte) (int, error) {
	n, err := t.File.Write(p)
	t.written.Add(int64(n))
	return n, err
}

func (t *tracked) Sync() error     { return t.ended(t.File.Sync) }
func (t *tracked) SyncData() error { return t.ended(t.File.SyncData) }

func (t *tracked) SyncTo(length int64) (full bool, err error) {
	written := t.written.Load()
	if full, err = t.File.SyncTo(length); err == nil && full {
		t.synced(written)
		t.fs.soon()
	}
	return full, err
}

func (t *tracked) ended(sync func() error) error {
	written, begun := t.written.Load(), t.durable.Load() > 0
	if err := sync(); err != nil {
		return err
	}
	switch {
	case !t.synced(written):
	case t.manifest:
		// Files that the manifest makes obsolete are removed next. No commit waits.
		t.fs.Write(false)
	case begun:
		t.fs.soon()
	default:
		t.fs.now()
	}
	return nil
}

// soon schedules a mark within markDelay.
func (d *FS) soon() {
	if d.changed.Load() || !d.changed.CompareAndSwap(false, true) {
		return
	}
	d.soonest.After(markDelay, d.mark)
}

// now schedules a mark immediately, in another goroutine: there is a new log, and the one
// before is complete.
func (d *FS) now() {
	d.changed.Store(true)
	d.soonest.Now(d.mark)
}

func (d *FS) mark() { d.Write(false) }

// Write writes a mark of the current state.
func (d *FS) Write(clean bool) {
	d.marking.Lock()
	defer d.marking.Unlock()
	if d.writer == nil {
		return
	}
	d.changed.Store(false) // later syncs are for the next mark
	m := &mark.Mark{At: clock.System.Now(), Clean: clean, Format: d.format, Sequence: d.sequence.Load()}
	d.mu.Lock()
	m.Logs, m.Manifests = durable(d.logs), durable(d.manifests)
	d.mu.Unlock()
	if n := len(m.Manifests); n > 2 {
		m.Manifests = m.Manifests[n-2:]
	}
	if err := d.writer.Write(m); err != nil && d.failing.Allow() {
		d.log.Warn("what of the log is durable cannot be noted: damage to the log may pass unseen after a crash", "file", mark.Name, "error", err.Error())
	}
}

func durable(of map[uint64]*extent) []mark.File {
	list := make([]mark.File, 0, len(of))
	for n, e := range of {
		if bytes := e.durable.Load(); bytes > 0 {
			list = append(list, mark.File{Number: n, Durable: bytes})
		}
	}
	slices.SortFunc(list, func(a, b mark.File) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// Close writes the last mark, after the store was closed; ok says that everything is durable.
func (d *FS) Close(ok bool) error {
	d.soonest.End()
	if ok {
		d.Write(true)
	}
	d.marking.Lock()
	defer d.marking.Unlock()
	if d.writer == nil {
		return nil
	}
	w := d.writer
	d.writer = nil
	return w.Close()
}

// Renew restarts marks after Close.
func (d *FS) Renew() { d.soonest.Renew() }

// Reached notes that all writes up to a sequence are durable.
func (d *FS) Reached(sequence uint64) {
	for {
		s := d.sequence.Load()
		if sequence <= s || d.sequence.CompareAndSwap(s, sequence) {
			return
		}
	}
}
