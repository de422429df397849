package audit

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// SyncWithin bounds the time from the write of a line to the start of its sync: what a loss
// of power may lose. Lines within it share a sync.
const SyncWithin = time.Second

// Bounds bound the size of a file, and the number of rotated files.
type Bounds struct {
	MaxBytes int64 // of a file; 0: no bound. A longer line has a file of its own
	Keep     int   // rotated files: path.1, the latest, to path.Keep; 0: none
}

// File is a sink that appends to a file, which only its owner may read. If the file is moved
// away, as by logrotate, a new one is created; if it is truncated, writes continue at its
// end. When Write returns, a line survives the end of the process; its sync begins within
// SyncWithin.
type File struct {
	path   string
	bounds Bounds
	clock  clock.Clock
	sync   func(*os.File) error
	write  func(*os.File, []byte) (int, error)

	mu      sync.Mutex
	file    *os.File // nil: closed
	pending bool     // a sync is due
	broken  bool     // the file ends within a line
	failed  error    // of the latest sync
	full    error    // of the latest rotation
}

// OpenFile opens a file, or creates it. machine is the machine's clock.
func OpenFile(path string, bounds Bounds, machine clock.Clock) (*File, error) {
	f := &File{path: path, bounds: bounds, clock: machine, sync: (*os.File).Sync, write: (*os.File).Write}
	return f, f.open()
}

func (f *File) open() (err error) {
	f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err == nil {
		f.broken = endsWithinLine(f.path)
	}
	return err
}

// endsWithinLine reports whether a file lacks its last line's end, as after a full disk. What
// cannot be read, such as a pipe, does not.
func endsWithinLine(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }() // it was only read
	var last [1]byte
	_, err = file.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] != '\n'
}

// Write appends a line.
func (f *File) Write(_ time.Time, line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return os.ErrClosed
	}
	moved, size := f.check()
	if most := f.bounds.MaxBytes; !moved && most > 0 && size > 0 && size+int64(len(line))+1 > most {
		// A file that cannot be rotated continues to grow, so that no line is lost.
		f.full = f.putAway()
		moved = f.full == nil
	}
	if moved {
		before := f.file
		if err := f.open(); err != nil {
			f.file = before
			return err
		}
		f.failed = f.sync(before)
		_ = before.Close()
	}
	if err := f.append(line); err != nil {
		return err
	}
	if !f.pending {
		f.pending = true
		f.clock.AfterFunc(SyncWithin, f.flush)
	}
	return nil
}

// append writes a line, whole or not at all; if that cannot be, the next begins on a new line.
func (f *File) append(line []byte) error {
	text := append(slices.Clip(line), '\n')
	if f.broken {
		text = append([]byte{'\n'}, text...)
	}
	n, err := f.write(f.file, text)
	switch {
	case err == nil:
		f.broken = false
	case n > 0 && f.takeBack(n) != nil:
		f.broken = true
	}
	return err
}

// takeBack removes the last n bytes, as of a line that was not written whole.
func (f *File) takeBack(n int) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	return f.file.Truncate(info.Size() - int64(n))
}

// flush syncs the written lines. Later lines do not wait for it, and have another sync.
func (f *File) flush() {
	f.mu.Lock()
	file := f.file
	f.pending = false
	f.mu.Unlock()
	if file == nil {
		return
	}
	err := f.sync(file)
	if errors.Is(err, os.ErrClosed) {
		return // Close has synced it
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = err
}

// Failing is why lines may not be on disk, or why the file exceeds its bound; nil: neither.
func (f *File) Failing() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return errors.Join(f.failed, f.full)
}

// check reports whether the file was moved away, and its size.
func (f *File) check() (moved bool, size int64) {
	open, err := f.file.Stat()
	if err != nil {
		return false, 0
	}
	there, err := os.Stat(f.path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(open, there), open.Size()
}

// putAway rotates the full file to path.1, moves the others on, and deletes those beyond
// Keep. An interrupted rotation leaves a gap.
func (f *File) putAway() error {
	place := func(n int) string { return f.path + "." + strconv.Itoa(n) }
	if f.bounds.Keep == 0 {
		return os.Remove(f.path)
	}
	for n := f.bounds.Keep - 1; n > 0; n-- {
		if err := os.Rename(place(n), place(n+1)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return os.Rename(f.path, place(1))
}

// Close syncs and closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return errors.Join(f.sync(file), file.Close())
}
