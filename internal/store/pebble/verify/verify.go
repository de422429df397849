// Package verify compares the content of a store's directory with the durable data, before the
// engine opens it.
package verify

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/store/pebble/files"
	"godwit.dev/godwit/internal/store/pebble/mark"
)

// Errors of Open that report damage.
var (
	// ErrDamaged: the files that describe the store are damaged. The readable records are to be
	// copied into another directory.
	ErrDamaged = errors.New("damaged")
	// ErrLoss: the write-ahead log has lost writes that were durable. With
	// Options.AcceptLoss the store opens without them.
	ErrLoss = errors.New("durable writes are missing")
)

const (
	wayOut = "restore a backup, or copy what can be read into another directory with: godwit salvage (nothing was changed)"

	// LossWayOut is the advice for ErrLoss.
	LossWayOut = "restore a backup, or copy what can be read into another directory with: godwit salvage, " +
		"or go on without what is missing with --accept-data-loss (nothing was changed)"

	// asideDir holds, in the store's directory, the logs that were cut.
	asideDir = "damaged-logs"
)

// Damaged makes an ErrDamaged with advice.
func Damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s; %s", ErrDamaged, fmt.Sprintf(format, args...), wayOut)
}

// Found is the state of the directory before the store is opened.
type Found struct {
	Exists  bool
	Mark    *mark.Mark // nil: there is none, or it is damaged
	NoMark  error      // why there is none
	Version *files.Version
	Loss    *Loss // nil: the log has all durable writes

	fs   vfs.FS
	dir  string
	logs []logFile
}

type logFile struct {
	number uint64
	extent files.Extent
}

// Loss describes the missing part of the log.
type Loss struct {
	what    []string // sentences without their full stops
	cut     uint64   // the first incomplete log
	keep    int64    // bytes of it to be kept; 0: none, or it does not exist
	reached uint64   // the latest readable sequence
	of      uint64   // the latest durable sequence
	at      time.Time
}

func (l *Loss) Error() string {
	missing := ""
	if l.of > l.reached && l.reached > 0 {
		missing = fmt.Sprintf(", with about %d of the writes that were durable at %s", l.of-l.reached, l.at.Format(time.RFC3339))
	}
	return fmt.Sprintf("%s: %s%s", ErrLoss, strings.Join(l.what, "; "), missing)
}

// Is implements errors.Is: it is an ErrLoss.
func (l *Loss) Is(target error) bool { return target == ErrLoss }

// Inspect reads the metadata of a directory. It fails with ErrDamaged.
func Inspect(f vfs.FS, dir string) (*Found, error) {
	s := &Found{fs: f, dir: dir}
	var err error
	if s.Mark, _, err = mark.Read(f, dir); err != nil {
		if !errors.Is(err, mark.ErrNone) && !errors.Is(err, mark.ErrDamaged) {
			return nil, err
		}
		s.NoMark = err
	}
	list, err := files.List(f, dir)
	if err != nil {
		return nil, err
	}
	// The first start makes the MANIFEST, its marker, a log, the marker of the format, and then
	// these.
	data := len(list.Tables)+len(list.Values)+len(list.Options) > 0
	if list.ManifestMarker == "" {
		if data || len(list.Logs) > 0 || s.Mark != nil && len(s.Mark.Manifests) > 0 && len(list.Manifests) == 0 && list.FormatMarker {
			return nil, Damaged("nothing says which MANIFEST is in use, as the file marker.manifest.* is missing")
		}
		return s, nil // nothing was stored yet
	}
	s.Exists = true
	if !list.FormatMarker && data {
		return nil, Damaged("the file marker.format-version.* is missing")
	}
	return s, s.inspect(list)
}

func (s *Found) inspect(list *files.Listing) error {
	number, ok := files.ParseManifestName(list.ManifestMarker)
	if !ok {
		return Damaged("the file marker.manifest.* names %q, which is no MANIFEST", list.ManifestMarker)
	}
	name := list.ManifestMarker
	version, extent, err := files.ReadManifest(s.fs, s.fs.PathJoin(s.dir, name), false)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Damaged("%s is missing", name)
	case errors.Is(err, files.ErrManifest):
		return Damaged("%s: %v", name, err)
	case err != nil:
		return err
	}
	if extent.Size == 0 {
		return Damaged("%s is empty", name)
	}
	if least := s.durable(number, func(m *mark.Mark) []mark.File { return m.Manifests }); extent.Valid < least {
		return Damaged("%s can be read up to byte %d of %d", name, extent.Valid, max(least, extent.Size))
	}
	if _, all, err := files.ReadManifest(s.fs, s.fs.PathJoin(s.dir, name), true); err == nil && all.Records > extent.Records {
		return Damaged("%s has an unreadable record at byte %d, before others", name, extent.Valid)
	}
	for _, n := range version.Values {
		if !slices.Contains(list.Values, n) {
			return Damaged("%s is missing", files.ValuesName(n))
		}
	}
	for _, t := range version.Tables {
		if !slices.Contains(list.Tables, t.File) {
			return Damaged("%s is missing", files.TableName(t.File))
		}
		if info, err := s.fs.Stat(s.fs.PathJoin(s.dir, files.TableName(t.File))); err != nil {
			return err
		} else if !t.Virtual && info.Size() != int64(t.Size) {
			return Damaged("%s has %d bytes of %d", files.TableName(t.File), info.Size(), t.Size)
		}
	}
	// Other reasons for which the engine refuses the store are reported before it opens, since
	// otherwise the torn end of a log would be blamed.
	if err := checkOptions(s.fs, s.dir); err != nil {
		return err
	}
	s.Version = version
	return s.inspectLogs(list)
}

func (s *Found) durable(number uint64, of func(*mark.Mark) []mark.File) int64 {
	if s.Mark == nil {
		return 0
	}
	for _, f := range of(s.Mark) {
		if f.Number == number {
			return f.Durable
		}
	}
	return 0
}

// inspectLogs compares the logs with the mark.
func (s *Found) inspectLogs(list *files.Listing) error {
	expected := map[uint64]int64{}
	if s.Mark != nil {
		for _, f := range s.Mark.Logs {
			if f.Number >= s.Version.FirstLog {
				expected[f.Number] = f.Durable
			}
		}
	}
	var numbers []uint64
	for _, n := range list.Logs {
		if n >= s.Version.FirstLog {
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
		if s.Loss == nil {
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

func (s *Found) lost(log uint64, keep int64, reached uint64, format string, args ...any) {
	if s.Loss == nil {
		s.Loss = &Loss{cut: log, keep: keep, reached: reached}
		if s.Mark != nil {
			s.Loss.of, s.Loss.at = s.Mark.Sequence, s.Mark.At
		}
	}
	s.Loss.what = append(s.Loss.what, fmt.Sprintf(format, args...))
}

// Unclean reports the damage of a log that the engine cannot read, if the mark shows none.
func (s *Found) Unclean(cause error) *Loss {
	for i, l := range s.logs {
		lastOne := i == len(s.logs)-1
		if l.extent.Clean() && (lastOne || l.extent.Closed || l.extent.Valid == l.extent.Size) {
			continue
		}
		s.lost(l.number, l.extent.Valid, l.extent.LastSequence, "%s is damaged at byte %d of %d (%v)",
			files.LogName(l.number), l.extent.Valid, l.extent.Size, cause)
		return s.Loss
	}
	return nil
}

// Cut truncates the logs to the part that can be read without a gap. The original logs are kept
// in a separate directory.
func (s *Found) Cut(l *Loss) error {
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
	if err := errors.Join(files.SyncDir(s.fs, aside), files.SyncDir(s.fs, s.dir)); err != nil {
		return err
	}
	// The mark is removed last: it is not valid any more.
	if err := s.fs.Remove(s.fs.PathJoin(s.dir, mark.Name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.Mark, s.Loss = nil, nil
	return files.SyncDir(s.fs, s.dir)
}

// checkOptions reports why the engine would refuse the latest OPTIONS file.
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
		return Damaged("%v", err)
	}
	return nil
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
