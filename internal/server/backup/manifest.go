// Package backup makes backups of a running server, verifies them by their hashes, and makes
// data directories of them.
//
// A backup is a directory: store has the files of a snapshot of the store, backup.json names
// them with their hashes, and backup.sha256, which is written last, has the hash of
// backup.json. So an incomplete backup has none, and a changed byte in any file is found.
package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/durable"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/store/pebble"
)

// Names in the directory of a backup.
const (
	manifestName = "backup.json"
	sumName      = "backup.sha256"
	noteName     = "incomplete.json" // progress of an unfinished backup
	lockName     = "LOCK"            // while it is made
)

// Format is the version of a backup's format; newer ones are refused.
const Format = 1

// maxManifest bounds backup.json, in bytes.
const maxManifest = 128 << 20

// maxSum bounds backup.sha256, in bytes.
const maxSum = 4096

// Errors of backups.
var (
	// ErrDamaged reports a backup that has changed.
	ErrDamaged = errors.New("the backup is damaged")
	// ErrIncomplete reports an unfinished backup.
	ErrIncomplete = errors.New("the backup is not whole: it was not made to its end")
	// ErrNone reports that there is no backup, and none that was begun.
	ErrNone = errors.New("there is no backup")
	// ErrBusy refuses a directory that another backup or restore is being made in.
	ErrBusy = errors.New("another godwit is making a backup or a restore there: wait for its end, or give another directory")
	// ErrNotEmpty refuses a directory that has other files.
	ErrNotEmpty = errors.New("the directory is not empty")
)

// Manifest is the list of a backup's files.
type Manifest struct {
	Format    int       `json:"format"`
	CreatedAt time.Time `json:"createdAt"` // the time of the snapshot
	Version   string    `json:"version"`   // of the server
	RootKey   string    `json:"rootKey"`   // the id of the key that it is sealed with; empty: it is not sealed
	Files     []File    `json:"files"`     // below store
}

// File is a file of a backup.
type File struct {
	Name   string `json:"name"` // relative, with slashes
	Size   int64  `json:"size"` // bytes
	SHA256 string `json:"sha256"`
}

// Size is the size of all files, in bytes.
func (m *Manifest) Size() (bytes int64) {
	for _, f := range m.Files {
		bytes += f.Size
	}
	return bytes
}

// lock has a directory for this backup or restore alone, until unlock: two would remove each other's
// files. On a file system without locks it does nothing. Errors: ErrBusy.
func lock(dir string) (unlock func() error, err error) {
	unlock, err = pebble.Lock(vfs.Default, dir)
	switch {
	case errors.Is(err, pebble.ErrInUse):
		return nil, fmt.Errorf("%s: %w", dir, ErrBusy)
	case err != nil:
		return func() error { return nil }, nil //nolint:nilerr // as it says
	}
	return unlock, nil
}

func sumLine(manifest []byte) []byte {
	sum := sha256.Sum256(manifest)
	return []byte(hex.EncodeToString(sum[:]) + "  " + manifestName + "\n") // in the format of sha256sum
}

// write completes a backup of the files in dir.
func (m *Manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if err := durable.Replace(filepath.Join(dir, manifestName), text); err != nil {
		return err
	}
	return durable.Replace(filepath.Join(dir, sumName), sumLine(text))
}

// Is reports whether a directory has a backup, complete or not.
func Is(dir string) bool {
	for _, name := range [...]string{sumName, manifestName, noteName} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// Read reads the manifest of a backup. Errors: ErrNone, ErrIncomplete, ErrDamaged, and those of the file
// system.
func Read(dir string) (m Manifest, err error) {
	text, err := read(dir, manifestName, maxManifest)
	sum, missing := read(dir, sumName, maxSum)
	switch {
	case errors.Is(missing, fs.ErrNotExist) && !Is(dir):
		return m, fmt.Errorf("%w in %s: it has no %s", ErrNone, dir, manifestName)
	case errors.Is(missing, fs.ErrNotExist):
		return m, fmt.Errorf("%s: %w", dir, ErrIncomplete)
	case err != nil:
		return m, fmt.Errorf("%w: %s: %w", ErrDamaged, manifestName, err)
	case missing != nil:
		return m, missing
	case !bytes.Equal(sum, sumLine(text)):
		return m, fmt.Errorf("%w: %s and %s do not belong together", ErrDamaged, manifestName, sumName)
	case json.Unmarshal(text, &m) != nil:
		return m, fmt.Errorf("%w: %s cannot be read", ErrDamaged, manifestName)
	}
	return m, m.Check(dir)
}

// Check refuses a manifest of a newer format, and one that names files elsewhere. where is the
// place of the backup.
func (m *Manifest) Check(where string) error {
	if m.Format > Format {
		return fmt.Errorf("%s is a backup of form %d, and this godwit knows forms up to %d: use the godwit that made it, or a newer one", where, m.Format, Format)
	}
	for _, f := range m.Files {
		if !filepath.IsLocal(filepath.FromSlash(f.Name)) || f.Size < 0 {
			return fmt.Errorf("%w: it has a file %q", ErrDamaged, f.Name)
		}
	}
	return nil
}

// Verify reads a whole backup, and verifies the hash of each file. progress may be nil. Errors
// are Read's; of files, all that are wrong.
func Verify(ctx context.Context, dir string, progress func(done, all int64)) (Manifest, error) {
	m, err := Read(dir)
	if err != nil {
		return m, err
	}
	done, all, known := int64(0), m.Size(), map[string]bool{"LOCK": true} // left behind by a check
	var wrong []error
	for _, f := range m.Files {
		if ctx.Err() != nil {
			return m, ctx.Err()
		}
		known[f.Name] = true
		sum, size, err := hash(filepath.Join(dir, recovery.StoreName), f.Name)
		switch {
		case err != nil:
			wrong = append(wrong, fmt.Errorf("%s: %w", f.Name, err))
		case size != f.Size:
			wrong = append(wrong, fmt.Errorf("%s has %d bytes, and had %d", f.Name, size, f.Size))
		case sum != f.SHA256:
			wrong = append(wrong, fmt.Errorf("%s has changed", f.Name))
		}
		if done += f.Size; progress != nil {
			progress(done, all)
		}
	}
	there, err := list(filepath.Join(dir, recovery.StoreName))
	if err != nil {
		return m, err
	}
	for _, name := range there {
		if !known[name] {
			wrong = append(wrong, fmt.Errorf("%s is none of its files", name))
		}
	}
	if len(wrong) > 0 {
		return m, fmt.Errorf("%w: %w", ErrDamaged, errors.Join(wrong...))
	}
	return m, nil
}

// list names the files below a directory.
func list(dir string) (names []string, err error) {
	return names, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
}

// open opens a file below a directory, by its name with slashes. Other kinds than files are
// refused, and links that lead elsewhere: the maker of a backup need not be trusted.
func open(dir, name string) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // open files stay open
	name = filepath.FromSlash(name)
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is no file", ErrDamaged, name)
	}
	return root.Open(name)
}

// read reads a file up to a maximum size.
func read(dir, name string, limit int64) ([]byte, error) {
	f, err := open(dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%w: %s has more than %d bytes", ErrDamaged, name, limit)
	}
	return text, err
}

// hash is the SHA-256 of a file, and its size.
func hash(dir, name string) (sum string, size int64, err error) {
	f, err := open(dir, name)
	if err != nil {
		return "", 0, err
	}
	defer func() { _ = f.Close() }() // it was only read
	h := sha256.New()
	size, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), size, err
}

// intact reports that a backup is unchanged.
const intact = "backup of %s: %d files, %d bytes, each as it was made\n"

// Check verifies a backup and reads each record in it, and prints the problems. ok says that
// there are none.
func Check(ctx context.Context, dir string, stdout io.Writer) (ok bool, err error) {
	m, err := Verify(ctx, dir, nil)
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrIncomplete) {
		_, err = fmt.Fprintln(stdout, err)
		return false, err
	}
	if err != nil {
		return false, err
	}
	if _, err := fmt.Fprintf(stdout, intact, m.CreatedAt.UTC().Format(time.RFC3339), len(m.Files), m.Size()); err != nil {
		return false, err
	}
	return recovery.CheckCopy(dir, stdout)
}

// CheckOrigin verifies a backup outside of a directory and reads each record in it, and prints
// the problems. It temporarily copies the backup to dir, an existing directory. progress may be
// nil.
func CheckOrigin(ctx context.Context, from Origin, dir string, stdout io.Writer, progress func(done, all int64)) (ok bool, err error) {
	to, err := os.MkdirTemp(dir, "godwit-check-")
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(to)) }()
	m := from.Manifest()
	if err := m.fetch(ctx, filepath.Join(to, recovery.StoreName), from.Open, progress); err != nil {
		if errors.Is(err, ErrDamaged) {
			_, err = fmt.Fprintln(stdout, err)
		}
		return false, err
	}
	if _, err := fmt.Fprintf(stdout, intact, m.CreatedAt.UTC().Format(time.RFC3339), len(m.Files), m.Size()); err != nil {
		return false, err
	}
	return recovery.CheckCopy(to, stdout)
}
