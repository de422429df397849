package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/durable"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/hold"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/store/pebble"
)

// Origin is a backup outside of a directory.
type Origin interface {
	// Manifest is its manifest.
	Manifest() Manifest
	// Open reads a file of it. The caller verifies its hash.
	Open(ctx context.Context, f File) (io.ReadCloser, error)
}

// Restoring makes a data directory of a backup.
type Restoring struct {
	Dir  string // of the backup
	From Origin // used instead of Dir; nil: it is in Dir
	Data string // the new data directory: it does not exist, is empty, or has an interrupted restore
	// RootKey is the file of the root key: it is compared with the required one, and copied to
	// its place for development. Empty: it is not checked.
	RootKey string
	// Paused makes the server hold deliveries until an operator releases them.
	Paused   bool
	Stdout   io.Writer
	Progress func(done, all int64) // may be nil
	Logger   *slog.Logger
}

// Run verifies the backup, reports what else is required, and only then writes. No server
// starts from an unfinished restore. Errors: ErrNotEmpty, ErrBusy, Verify's, seal.ErrWrongRoot, and
// those of the file system.
func (r *Restoring) Run(ctx context.Context) (err error) {
	if err := r.prepare(); err != nil {
		return err
	}
	m, err := r.manifest(ctx)
	if err != nil {
		return err
	}
	if err := r.report(&m); err != nil {
		return err
	}
	incoming := recovery.Incoming(r.Data)
	if err := os.MkdirAll(incoming, 0o700); err != nil {
		return err
	}
	unlock, err := lock(incoming)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := r.prepare(); err != nil { // another restore has come to its end meanwhile
		return err
	}
	to := filepath.Join(incoming, recovery.StoreName)
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	if err := durable.SyncDir(r.Data); err != nil {
		return err
	}
	if err := m.fetch(ctx, to, r.open, r.Progress); err != nil {
		return err
	}
	if err := renew(to, r.Logger); err != nil {
		return fmt.Errorf("the restored store: %w", err)
	}
	if err := r.install(to, &m); err != nil {
		return err
	}
	_, err = fmt.Fprintf(r.Stdout, "%s is restored. Receipt handles of before are of no use there, and what was done since %s is not there.\n", r.Data, m.CreatedAt.UTC().Format(time.RFC3339))
	return err
}

// manifest is the manifest of the backup, which is verified if it is in a directory; else each
// file is verified as it is copied.
func (r *Restoring) manifest(ctx context.Context) (Manifest, error) {
	if r.From == nil {
		return Verify(ctx, r.Dir, nil)
	}
	return r.From.Manifest(), nil
}

// open reads a file of the backup.
func (r *Restoring) open(ctx context.Context, f File) (io.ReadCloser, error) {
	if r.From == nil {
		return open(filepath.Join(r.Dir, recovery.StoreName), f.Name)
	}
	return r.From.Open(ctx, f)
}

// prepare refuses a directory that has anything.
func (r *Restoring) prepare() error {
	if err := os.MkdirAll(r.Data, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(r.Data)
	if err != nil {
		return err
	}
	begun := recovery.CheckRestored(r.Data) != nil
	for _, e := range entries {
		if e.IsDir() && e.Name() == filepath.Base(recovery.Incoming(r.Data)) || begun && e.Name() != recovery.StoreName {
			continue
		}
		return fmt.Errorf("%w: %s has %s (--data)", ErrNotEmpty, r.Data, e.Name())
	}
	return nil
}

// report prints what is restored and which key that needs, and refuses another one.
func (r *Restoring) report(m *Manifest) error {
	fmt.Fprintf(r.Stdout, "Backup of %s by godwit %s: %d files, %d bytes%s.\n", m.CreatedAt.UTC().Format(time.RFC3339), m.Version, len(m.Files), m.Size(), map[bool]string{true: ", each as it was made"}[r.From == nil])
	if m.RootKey == "" {
		return nil
	}
	fmt.Fprintf(r.Stdout, "It is sealed with the root key %s, which is not in it, and no server starts from it without: "+
		"godwit serve takes it by --root-key, and godwit dev looks for it in %s.\n", m.RootKey, filepath.Join(r.Data, bootstrap.DevRootKey))
	if r.RootKey == "" {
		_, err := fmt.Fprintln(r.Stdout, "Whether you have it was not looked at (--root-key).")
		return err
	}
	root, err := bootstrap.ReadRootKey(r.RootKey)
	if err != nil {
		return fmt.Errorf("the root key cannot be read: %w", err)
	}
	if root.ID() != m.RootKey {
		if former := bootstrap.FormerRoot(r.RootKey, m.RootKey); former != "" {
			return fmt.Errorf("%w: the root key was rotated since the backup, whose key is in %s: restore it with --root-key %s; then "+bootstrap.FormerRootWay,
				seal.ErrWrongRoot, former, former, former)
		}
		return fmt.Errorf("%w: the backup's has the id %s, and the one in %s %s", seal.ErrWrongRoot, m.RootKey, r.RootKey, root.ID())
	}
	if _, err = fmt.Fprintf(r.Stdout, "That is the one in %s.\n", r.RootKey); err != nil || !strings.HasSuffix(r.RootKey, "."+m.RootKey) {
		return err
	}
	_, err = fmt.Fprintf(r.Stdout, "It was rotated since, and the root user's access key with it. Before the start, "+bootstrap.FormerRootWay+".\n", r.RootKey)
	return err
}

// fetch copies all files to a directory. progress may be nil.
func (m *Manifest) fetch(ctx context.Context, to string, open func(context.Context, File) (io.ReadCloser, error), progress func(done, all int64)) error {
	done, all := int64(0), m.Size()
	for _, f := range m.Files {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := f.fetch(ctx, to, open); err != nil {
			return err
		}
		if done += f.Size; progress != nil {
			progress(done, all)
		}
	}
	return nil
}

// fetch copies a file, and verifies its hash.
func (f *File) fetch(ctx context.Context, to string, open func(context.Context, File) (io.ReadCloser, error)) error {
	name := filepath.FromSlash(f.Name)
	if err := os.MkdirAll(filepath.Dir(filepath.Join(to, name)), 0o700); err != nil {
		return err
	}
	in, err := open(ctx, *f)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()                                                           // it was only read
	out, err := os.OpenFile(filepath.Join(to, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) //nolint:gosec // a local name
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, h), io.LimitReader(in, f.Size+1)) // a larger file has another hash
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != f.SHA256 {
		return fmt.Errorf("%w: %s has changed", ErrDamaged, f.Name)
	}
	return nil
}

// renew makes a store that of another server than the one backed up.
func renew(dir string, log *slog.Logger) error {
	st, err := pebble.Open(dir, pebble.Options{Logger: log, Describe: recovery.Describe, Fatal: func(error) {}}) // its calls return failures
	if err != nil {
		return err
	}
	return errors.Join(journal.Renew(st), st.Close())
}

// install moves the restored store and its other files into place.
func (r *Restoring) install(from string, m *Manifest) error {
	if r.Paused {
		if err := hold.Mark(r.Data); err != nil {
			return err
		}
	}
	if m.RootKey != "" {
		if err := bootstrap.NoteSealedWith(r.Data, m.RootKey); err != nil {
			return err
		}
	}
	if r.RootKey != "" && filepath.Base(r.RootKey) == bootstrap.DevRootKey {
		if err := bootstrap.CopyDevRootKey(r.RootKey, r.Data); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := syncBelow(from); err != nil {
		return err
	}
	if err := os.Rename(from, filepath.Join(r.Data, recovery.StoreName)); err != nil {
		return err
	}
	if err := durable.SyncDir(r.Data); err != nil {
		return err
	}
	if err := os.RemoveAll(recovery.Incoming(r.Data)); err != nil { // it has the lock's file
		return err
	}
	return durable.SyncDir(r.Data)
}
