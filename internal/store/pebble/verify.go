package pebble

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/pebble/files"
	"godwit.dev/godwit/internal/store/pebble/mark"
)

// Errors of Open that tell of damage.
var (
	// ErrDamaged: the files that say how the store is made up are damaged. What
	// can be read is to be copied into another directory.
	ErrDamaged = errors.New("damaged")
	// ErrLoss: the write-ahead log has lost writes that were durable. With
	// Options.AcceptLoss the store opens without them.
	ErrLoss = errors.New("durable writes are missing")
)

const (
	wayOut = "restore a backup, or copy what can be read into another directory with: godwit salvage (nothing was changed)"

	lossWayOut = "restore a backup, or copy what can be read into another directory with: godwit salvage, " +
		"or go on without what is missing with --accept-data-loss (nothing was changed)"

	// asideDir holds, in the store's directory, the logs that were cut.
	asideDir = "damaged-logs"
)

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s; %s", ErrDamaged, fmt.Sprintf(format, args...), wayOut)
}

// found is what a look at the directory says before the store is opened.
type found struct {
	fs      vfs.FS
	dir     string
	exists  bool
	mark    *mark.Mark // nil: there is none, or it is damaged
	noMark  error      // why
	version *files.Version
	logs    []logFile
	loss    *loss // nil: the log has all that was durable
}

type logFile struct {
	number uint64
	extent files.Extent
}

// loss is what the log lacks.
type loss struct {
	what    []string // sentences without their full stops
	cut     uint64   // the first log of which something is missing
	keep    int64    // bytes of it to be kept; 0: all of it goes, or it is not there
	reached uint64   // the latest sequence that can be read
	of      uint64   // the latest that was durable
	at      time.Time
}

func (l *loss) Error() string {
	missing := ""
	if l.of > l.reached && l.reached > 0 {
		missing = fmt.Sprintf(", with about %d of the writes that were durable at %s", l.of-l.reached, l.at.Format(time.RFC3339))
	}
	return fmt.Sprintf("%s: %s%s", ErrLoss, strings.Join(l.what, "; "), missing)
}

func (l *loss) Is(target error) bool { return target == ErrLoss }

// look reads what a directory says about itself. It fails with ErrDamaged.
func look(f vfs.FS, dir string) (*found, error) {
	s := &found{fs: f, dir: dir}
	var err error
	if s.mark, _, err = mark.Read(f, dir); err != nil {
		if !errors.Is(err, mark.ErrNone) && !errors.Is(err, mark.ErrDamaged) {
			return nil, err
		}
		s.noMark = err
	}
	list, err := files.List(f, dir)
	if err != nil {
		return nil, err
	}
	// The first start makes the MANIFEST, its marker, a log, the marker of the
	// format, and then these.
	data := len(list.Tables)+len(list.Values)+len(list.Options) > 0
	if list.ManifestMarker == "" {
		if data || len(list.Logs) > 0 || s.mark != nil && len(s.mark.Manifests) > 0 && len(list.Manifests) == 0 && list.FormatMarker {
			return nil, damaged("nothing says which MANIFEST is in use, as the file marker.manifest.* is missing")
		}
		return s, nil // nothing was stored yet
	}
	s.exists = true
	if !list.FormatMarker && data {
		return nil, damaged("the file marker.format-version.* is missing")
	}
	return s, s.lookAt(list)
}

func (s *found) lookAt(list *files.Listing) error {
	number, ok := files.ParseManifestName(list.ManifestMarker)
	if !ok {
		return damaged("the file marker.manifest.* names %q, which is no MANIFEST", list.ManifestMarker)
	}
	name := list.ManifestMarker
	version, extent, err := files.ReadManifest(s.fs, s.fs.PathJoin(s.dir, name), false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return damaged("%s is missing", name)
	case errors.Is(err, files.ErrManifest):
		return damaged("%s: %v", name, err)
	case err != nil:
		return err
	}
	if least := s.durable(number, func(m *mark.Mark) []mark.File { return m.Manifests }); extent.Valid < least {
		return damaged("%s can be read up to byte %d of %d", name, extent.Valid, max(least, extent.Size))
	}
	if _, all, err := files.ReadManifest(s.fs, s.fs.PathJoin(s.dir, name), true); err == nil && all.Records > extent.Records {
		return damaged("%s has an unreadable record at byte %d, before others", name, extent.Valid)
	}
	for _, n := range version.Values {
		if !slices.Contains(list.Values, n) {
			return damaged("%s is missing", files.ValuesName(n))
		}
	}
	for _, t := range version.Tables {
		if !slices.Contains(list.Tables, t.File) {
			return damaged("%s is missing", files.TableName(t.File))
		}
		if info, err := s.fs.Stat(s.fs.PathJoin(s.dir, files.TableName(t.File))); err != nil {
			return err
		} else if !t.Virtual && info.Size() != int64(t.Size) {
			return damaged("%s has %d bytes of %d", files.TableName(t.File), info.Size(), t.Size)
		}
	}
	// What else the engine refuses is said before it is started, since the end of a log
	// that a crash has torn would be blamed for it.
	if err := checkOptions(s.fs, s.dir); err != nil {
		return err
	}
	s.version = version
	return s.lookAtLogs(list)
}

func (s *found) durable(number uint64, of func(*mark.Mark) []mark.File) int64 {
	if s.mark == nil {
		return 0
	}
	for _, f := range of(s.mark) {
		if f.Number == number {
			return f.Durable
		}
	}
	return 0
}

// lookAtLogs compares the logs with the mark.
func (s *found) lookAtLogs(list *files.Listing) error {
	expected := map[uint64]int64{}
	if s.mark != nil {
		for _, f := range s.mark.Logs {
			if f.Number >= s.version.FirstLog {
				expected[f.Number] = f.Durable
			}
		}
	}
	var numbers []uint64
	for _, n := range list.Logs {
		if n >= s.version.FirstLog {
			numbers = append(numbers, n)
		}
	}
	for n := range expected {
		if !slices.Contains(numbers, n) {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	reached := uint64(0)
	for _, n := range numbers {
		e, err := files.ReadLog(s.fs, s.fs.PathJoin(s.dir, files.LogName(n)), n, false, nil)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("reading %s: %w", files.LogName(n), err)
		}
		missing := err != nil
		if !missing {
			s.logs = append(s.logs, logFile{n, e})
		}
		if s.loss == nil {
			reached = max(reached, e.LastSequence)
		}
		expected[n] = max(expected[n], e.Synced)
		switch {
		case missing:
			s.lost(n, 0, reached, "%s is missing, of which %d bytes were durable", files.LogName(n), expected[n])
		case e.Valid < expected[n] && e.Size < expected[n]:
			s.lost(n, e.Valid, reached, "%s is cut off: %d of its %d durable bytes can be read", files.LogName(n), e.Valid, expected[n])
		case e.Valid < expected[n]:
			s.lost(n, e.Valid, reached, "%s is damaged: %d of its %d durable bytes can be read", files.LogName(n), e.Valid, expected[n])
		}
	}
	return nil
}

func (s *found) lost(log uint64, keep int64, reached uint64, format string, args ...any) {
	if s.loss == nil {
		s.loss = &loss{cut: log, keep: keep, reached: reached}
		if s.mark != nil {
			s.loss.of, s.loss.at = s.mark.Sequence, s.mark.At
		}
	}
	s.loss.what = append(s.loss.what, fmt.Sprintf(format, args...))
}

// unclean says what is wrong with the log where the engine does not read it, and
// the mark says nothing.
func (s *found) unclean(cause error) *loss {
	for i, l := range s.logs {
		lastOne := i == len(s.logs)-1
		if l.extent.Clean() && (lastOne || l.extent.Closed || l.extent.Valid == l.extent.Size) {
			continue
		}
		s.lost(l.number, l.extent.Valid, l.extent.LastSequence, "%s is damaged at byte %d of %d (%v)",
			files.LogName(l.number), l.extent.Valid, l.extent.Size, cause)
		return s.loss
	}
	return nil
}

// cutLogs has the logs end where they can be read to without a gap. The logs as
// they were are kept beside.
func (s *found) cutLogs(l *loss) error {
	aside := s.fs.PathJoin(s.dir, asideDir+"-"+clock.System.Now().UTC().Format("20060102T150405.000"))
	if err := s.fs.MkdirAll(aside, 0o750); err != nil {
		return err
	}
	for _, log := range slices.Backward(s.logs) {
		if log.number < l.cut {
			break
		}
		name := files.LogName(log.number)
		from, to := s.fs.PathJoin(s.dir, name), s.fs.PathJoin(aside, name)
		if log.number > l.cut || l.keep == 0 {
			if err := s.fs.Rename(from, to); err != nil {
				return err
			}
			continue
		}
		if err := copyFile(s.fs, from, to, log.extent.Size); err != nil {
			return err
		}
		if err := copyFile(s.fs, from, from+".tmp", l.keep); err != nil {
			return err
		}
		if err := s.fs.Rename(from+".tmp", from); err != nil {
			return err
		}
	}
	if err := errors.Join(syncDir(s.fs, aside), syncDir(s.fs, s.dir)); err != nil {
		return err
	}
	// The mark goes last: what it says holds no longer.
	if err := s.fs.Remove(s.fs.PathJoin(s.dir, mark.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.mark, s.loss = nil, nil
	return syncDir(s.fs, s.dir)
}

// openVerified opens the engine on a directory that has all that was durable.
func (s *Store) openVerified(f vfs.FS, dir string, opts *pebble.Options, accept bool) error {
	seen, err := look(f, dir)
	if err != nil {
		return err
	}
	if seen.exists && seen.noMark != nil {
		s.log.Warn("whether the log is whole cannot be said this time", "dir", dir, "reason", seen.noMark.Error())
	}
	if seen.loss != nil {
		if err := s.accept(seen, seen.loss, accept); err != nil {
			return err
		}
	}
	for range maxCuts {
		first := uint64(0)
		if seen.version != nil {
			first = seen.version.FirstLog
		}
		if err := s.durable.Resume(seen.mark, first); err != nil {
			return err
		}
		s.db, err = openEngine(dir, opts)
		if err == nil {
			s.durable.Write(false)
			return nil
		}
		if errors.Is(err, pebble.ErrDBNotPristine) {
			return damaged("the file marker.format-version.* is missing")
		}
		if errno, ok := errors.AsType[syscall.Errno](err); ok && errno != syscall.ENOENT || !seen.exists {
			return err // of the disk, not of what is on it
		}
		l := seen.unclean(err)
		if l == nil {
			return damaged("%v", err)
		}
		if err := errors.Join(s.accept(seen, l, accept), s.durable.Close(false)); err != nil {
			return err
		}
		s.durable.Renew()
		if seen, err = look(f, dir); err != nil {
			return err
		}
	}
	return damaged("%v", err)
}

// maxCuts bounds how often the log is cut at one start.
const maxCuts = 3

// accept goes on without what a log lacks, if that is accepted.
func (s *Store) accept(seen *found, l *loss, accept bool) error {
	if !accept {
		return fmt.Errorf("%w; %s", l, lossWayOut)
	}
	s.log.Error("going on without durable writes, as --accept-data-loss says; what is left of the log is kept beside",
		"dir", seen.dir, "missing", l.Error())
	return seen.cutLogs(l)
}

// errPanicked reports that the engine does not take what it finds.
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

// writeMark gives a directory that is whole its mark.
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

func copyFile(f vfs.FS, from, to string, n int64) error {
	in, err := f.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := f.Create(to, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	buf := make([]byte, 1<<20)
	for at := int64(0); at < n && err == nil; {
		var m int
		if m, err = in.ReadAt(buf[:min(int64(len(buf)), n-at)], at); m > 0 {
			_, err = out.Write(buf[:m])
		}
		at += int64(m)
	}
	return errors.Join(err, out.Sync(), out.Close())
}

// Verify says why Open would refuse a directory, and changes nothing: ErrDamaged,
// ErrLoss, ErrFormat, ErrInUse.
func Verify(f vfs.FS, dir string) error {
	lock, err := pebble.LockDirectory(dir, f)
	if err != nil {
		return lockError(dir, err)
	}
	defer func() { _ = lock.Close() }()
	if _, err := f.Stat(f.PathJoin(dir, formatFile)); err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, damaged("the file %s is missing", formatFile))
	}
	if err := checkFormat(f, dir, false); err != nil {
		return err
	}
	seen, err := look(f, dir)
	if err != nil {
		return err
	}
	if seen.loss != nil {
		return fmt.Errorf("%w; %s", seen.loss, lossWayOut)
	}
	return nil
}

// checkOptions says why the engine would refuse the latest OPTIONS file.
func checkOptions(f vfs.FS, dir string) error {
	desc, err := pebble.Peek(dir, f)
	if err != nil || desc.OptionsFilename == "" {
		return err
	}
	in, err := f.Open(desc.OptionsFilename)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	o := &pebble.Options{FS: f}
	o.EnsureDefaults()
	if err := o.CheckCompatibility(dir, string(text)); err != nil {
		return damaged("%v", err)
	}
	return nil
}
