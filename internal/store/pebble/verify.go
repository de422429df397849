package pebble

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/pebble/files"
	"godwit.dev/godwit/internal/store/pebble/mark"
	"godwit.dev/godwit/internal/store/pebble/verify"
)

// Errors of Open that report damage; see verify.
var (
	ErrDamaged = verify.ErrDamaged
	ErrLoss    = verify.ErrLoss
)

// openVerified opens the engine once the directory is known to have all durable writes.
func (s *Store) openVerified(f vfs.FS, dir string, opts *pebble.Options, accept bool) error {
	seen, err := verify.Inspect(f, dir)
	if err != nil {
		return err
	}
	if seen.Exists && seen.NoMark != nil {
		s.log.Warn("whether the log is whole cannot be said this time", "dir", dir, "reason", seen.NoMark.Error())
	}
	if seen.Loss != nil {
		if err := s.accept(seen, seen.Loss, accept); err != nil {
			return err
		}
	}
	for range maxCuts {
		first := uint64(0)
		if seen.Version != nil {
			first = seen.Version.FirstLog
		}
		if err := s.durable.Resume(seen.Mark, first); err != nil {
			return err
		}
		s.db, err = openEngine(dir, opts)
		if err == nil {
			s.durable.Write(false)
			return nil
		}
		if errors.Is(err, pebble.ErrDBNotPristine) {
			return verify.Damaged("the file marker.format-version.* is missing")
		}
		if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != syscall.ENOENT || !seen.Exists {
			return err // an error of the disk, not of its content
		}
		l := seen.Unclean(err)
		if l == nil {
			return verify.Damaged("%v", err)
		}
		if err := errors.Join(s.accept(seen, l, accept), s.durable.Close(false)); err != nil {
			return err
		}
		s.durable.Renew()
		if seen, err = verify.Inspect(f, dir); err != nil {
			return err
		}
	}
	return verify.Damaged("%v", err)
}

// maxCuts bounds how often the log is cut at one start.
const maxCuts = 3

// accept cuts the log where it is damaged, if Options.AcceptLoss allows that.
func (s *Store) accept(seen *verify.Found, l *verify.Loss, accept bool) error {
	if !accept {
		return fmt.Errorf("%w; %s", l, verify.LossWayOut)
	}
	s.log.Error("going on without durable writes, as --accept-data-loss says; what is left of the log is kept beside",
		"dir", s.dir, "missing", l.Error())
	return seen.Cut(l)
}

// errPanicked reports that the engine panicked when it was opened.
var errPanicked = errors.New("the engine cannot be opened")

// openEngine is pebble.Open, which panics on some damage.
func openEngine(dir string, opts *pebble.Options) (db *pebble.DB, err error) {
	defer func() {
		if p := recover(); p != nil {
			db, err = nil, fmt.Errorf("%w: %v", errPanicked, p)
		}
	}()
	return pebble.Open(dir, opts)
}

// Verify reports why Open would refuse a directory, and changes nothing: ErrDamaged, ErrLoss,
// ErrFormat, ErrInUse.
func Verify(f vfs.FS, dir string) error {
	switch lock, err := pebble.LockDirectory(dir, f); {
	case errors.Is(err, syscall.EROFS): // nobody has it open for writing here
	case err != nil:
		return lockError(dir, err)
	default:
		defer func() { _ = lock.Close() }()
	}
	return VerifyCopy(f, dir)
}

// Lock locks a directory as an open store locks its own, until unlock. Errors: ErrInUse, and those of
// the file system.
func Lock(f vfs.FS, dir string) (unlock func() error, err error) {
	lock, err := pebble.LockDirectory(dir, f)
	if err != nil {
		return nil, lockError(dir, err)
	}
	return lock.Close, nil
}

// LockSource keeps stores from opening a directory while it is copied, and changes nothing in it. A
// directory without the file of the lock, or where that cannot be written, is copied without:
// nobody writes there. Errors: ErrInUse.
func LockSource(f vfs.FS, dir string) (unlock func(), err error) {
	unlock = func() {}
	if _, err := f.Stat(f.PathJoin(dir, lockFile)); err != nil {
		return unlock, nil //nolint:nilerr // nobody has opened it
	}
	lock, err := pebble.LockDirectory(dir, f)
	if err == nil {
		return func() { _ = lock.Close() }, nil
	}
	if err = lockError(dir, err); errors.Is(err, ErrInUse) {
		return unlock, err
	}
	return unlock, nil
}

// lockFile is the name of the file by which the engine locks its directory.
const lockFile = "LOCK"

// VerifyCopy is Verify of a directory that no server has open, such as a backup: it makes no file
// for a lock in it.
func VerifyCopy(f vfs.FS, dir string) error {
	if _, err := f.Stat(f.PathJoin(dir, formatFile)); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, verify.Damaged("the file %s is missing", formatFile))
	}
	if err := checkFormat(f, dir, false); err != nil {
		return err
	}
	seen, err := verify.Inspect(f, dir)
	if err != nil {
		return err
	}
	if seen.Loss != nil {
		return fmt.Errorf("%w; %s", seen.Loss, verify.LossWayOut)
	}
	return nil
}

// FormatFile is the name of the file with a store's format.
const FormatFile = formatFile

// CheckFormat reports damage of the file with a store's format.
func CheckFormat(f vfs.FS, dir string) error {
	says, err := read(f, f.PathJoin(dir, formatFile))
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("it is missing")
	}
	if err != nil {
		return err
	}
	if v, err := strconv.ParseUint(strings.TrimSpace(says), 10, 32); err != nil || v == 0 {
		return fmt.Errorf("it says %.40q, which is no version", says)
	}
	return nil
}

// writeMark writes the mark of a complete directory.
func writeMark(f vfs.FS, dir string) error {
	list, err := files.List(f, dir)
	if err != nil {
		return err
	}
	m := &mark.Mark{At: clock.System.Now(), Clean: true, Format: format}
	for _, n := range list.Logs {
		e, err := files.ReadLog(f, f.PathJoin(dir, files.LogName(n)), n, false, nil)
		if err != nil {
			return err
		}
		m.Logs = append(m.Logs, mark.File{Number: n, Durable: e.Valid})
		m.Sequence = max(m.Sequence, e.LastSequence)
	}
	for _, n := range list.Manifests {
		info, err := f.Stat(f.PathJoin(dir, files.ManifestName(n)))
		if err != nil {
			return err
		}
		m.Manifests = append(m.Manifests, mark.File{Number: n, Durable: info.Size()})
	}
	w, err := mark.NewWriter(f, dir)
	if err != nil {
		return err
	}
	return errors.Join(w.Write(m), w.Close())
}
