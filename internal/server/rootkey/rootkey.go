// Package rootkey finds the root key that a server's data is sealed with, refuses one that is
// another's, and rotates it.
package rootkey

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"

	"godwit.dev/godwit/internal/bootstrap"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
)

// Source is where the root key of a server is found.
type Source struct {
	// Config names the data directory, and the file of the root key, if it is outside of that.
	Config config.Config
	// OnDisk says that the state is in the data directory.
	OnDisk bool
	// Replicated says that the state is a cluster's, of which each node has a root key.
	Replicated bool
	// Root is the root key of state that is not on the disk; nil: a new one is generated.
	Root  *seal.Root
	Clock clock.Clock
	Log   *slog.Logger
}

// Open opens the keys that the store is sealed with, and generates what there is none of yet.
// Errors: keys.ErrNoRoot, if the data is sealed with a root key that is not there;
// seal.ErrWrongRoot, if it is sealed with another one; seal.ErrRootFile.
func (s Source) Open(log *journal.Journal) (*seal.Keys, error) {
	used, kept := "", []byte(nil)
	if s.OnDisk {
		var err error
		if kept, err = bootstrap.KeptSealing(s.Config.Data); err != nil {
			return nil, err
		}
	}
	opened, err := keys.OpenSealing(log, s.Clock.Now(), kept, func(needed string) (root *seal.Root, err error) {
		defer func() {
			if err == nil {
				used = root.ID()
			}
		}()
		switch {
		case s.Config.RootKey != "":
			root, err := readProductionRoot(s.Config, needed)
			if err == nil && root.ID() != needed {
				if next := s.next(needed); next != nil {
					return next, nil
				}
				err = bootstrap.Interrupted(s.Config.RootKey, needed) // else the following error names both
			}
			return root, err
		case s.Root != nil:
			return s.Root, nil
		case !s.OnDisk:
			return seal.NewRoot(), nil // it lives as long as the data it seals
		}
		path := filepath.Join(s.Config.Data, bootstrap.DevRootKey)
		root, err = readRoot(path, needed)
		if errors.Is(err, fs.ErrNotExist) && needed == "" {
			root = seal.NewRoot()
			if err = bootstrap.WriteDevRootKey(path, root); err != nil {
				err = fmt.Errorf("the root key cannot be kept: %w", err)
			}
		}
		return root, err
	})
	if err == nil && s.OnDisk {
		err = bootstrap.NoteSealedWith(s.Config.Data, used)
	}
	if err == nil && s.OnDisk {
		if kept, err = keys.Sealing(log); err == nil {
			err = bootstrap.KeepSealing(s.Config.Data, kept)
		}
	}
	return opened, err
}

// next is the next root key of a cluster's node, if its id is the given one: the rotation
// ran on another node, which replaced only its own file.
func (s Source) next(id string) *seal.Root {
	if !s.Replicated {
		return nil
	}
	next, err := bootstrap.NextRoot(s.Config.RootKey)
	if err != nil || next.ID() != id {
		return nil
	}
	s.Log.Warn("the root key was rotated by another node: copy its root key and root access key here", "rootKey", s.Config.RootKey, "id", id)
	return next
}

// Check refuses a root key that is missing or not the data's, before anything is
// written, as far as that can be known then.
func Check(c config.Config) error {
	if c.Store == config.MemoryStore {
		return nil
	}
	ids, err := bootstrap.SealedWith(c.Data)
	if err != nil || len(ids) == 0 {
		return err
	}
	path, read := c.RootKey, func(needed string) (*seal.Root, error) { return readProductionRoot(c, needed) }
	if path == "" {
		path = filepath.Join(c.Data, bootstrap.DevRootKey)
		read = func(needed string) (*seal.Root, error) { return readRoot(path, needed) }
	}
	last := ids[len(ids)-1]
	root, err := read(last)
	if err != nil || slices.Contains(ids, root.ID()) {
		return err
	}
	if err := bootstrap.Interrupted(path, last); err != nil {
		return err
	}
	if former := bootstrap.FormerRoot(path, last); former != "" { // a backup of before the rotation
		return fmt.Errorf("%w: the data in %s is of before a rotation, and is sealed with the key in %s; "+bootstrap.FormerRootWay,
			seal.ErrWrongRoot, c.Data, former, former)
	}
	return fmt.Errorf("%w: that has the id %q, and the one in %s %q (so says root-key.id in %s; if that file is damaged, remove it, and the store is asked)",
		seal.ErrWrongRoot, last, path, root.ID(), c.Data)
}

// readRoot reads the file of a root key; needed is the id of the key that the data is sealed
// with, if it is.
func readRoot(path, needed string) (*seal.Root, error) {
	root, err := bootstrap.ReadRootKey(path)
	if errors.Is(err, fs.ErrNotExist) && needed != "" {
		return nil, fmt.Errorf("%w: it has the id %s, and was looked for in %s", keys.ErrNoRoot, needed, path)
	}
	if err != nil {
		return nil, fmt.Errorf("the root key cannot be read: %w", err)
	}
	return root, nil
}

// readProductionRoot is readRoot of a key outside of the data. If the data is sealed with a key
// inside it, the error says what to do.
func readProductionRoot(c config.Config, needed string) (*seal.Root, error) {
	root, err := readRoot(c.RootKey, needed)
	if err != nil || needed == "" || root.ID() == needed {
		return root, err
	}
	path := filepath.Join(c.Data, bootstrap.DevRootKey)
	if dev, err := bootstrap.ReadRootKey(path); err == nil && dev.ID() == needed {
		return nil, fmt.Errorf("%w: the data in %s is sealed with development's key %s, which protects nothing; "+
			"godwit keys rotate-root --dir DIR --from %s has it under %s", seal.ErrWrongRoot, c.Data, path, path, c.RootKey)
	}
	return root, nil // the following error names both
}

// RotateIn rotates the root key of a directory made by bootstrap.Init, as described at
// bootstrap.RotateRootKey, while no server has the data open.
func RotateIn(dir, from string, log *slog.Logger) (kept string, err error) {
	return bootstrap.RotateRootKey(dir, from, func(data string, from, to *seal.Root) error { return rotate(data, from, to, log) })
}

// forgetWraps notes that only one root key opens the data, and removes the wraps of the
// previous one: it must not open the data if somebody has it and gets the data later.
func forgetWraps(data string, st store.Store, to *seal.Root) error {
	err := bootstrap.ForgetSealing(data)
	if files, ok := st.(interface {
		Forget(lower, upper []byte) error
	}); ok && err == nil {
		span := keys.SealingSpan()
		err = files.Forget(span.Lower, span.Upper)
	}
	if err != nil {
		return err
	}
	return bootstrap.NoteSealedWith(data, to.ID())
}

// Rotation rotates the root key of a running server, whose keys rewrap seals with another one;
// nil if that would protect nothing.
func (s Source) Rotation(st store.Store, rewrap func(to *seal.Root) error) func() (kept string, err error) {
	c := s.Config
	switch {
	case c.RootKey == "":
		return nil
	case s.Replicated:
		return func() (string, error) {
			if _, err := bootstrap.NextRoot(c.RootKey); err != nil { // the other nodes could not continue
				return "", fmt.Errorf("the next root key has to be on every node of a cluster before: %w", err)
			}
			return bootstrap.Rotate(c.RootKey, c.RootAccessKey, func(_, to *seal.Root) error { return rewrap(to) })
		}
	}
	return func() (string, error) {
		return bootstrap.Rotate(c.RootKey, c.RootAccessKey, func(from, to *seal.Root) error {
			if err := bootstrap.NoteRotation(c.Data, from.ID(), to.ID()); err != nil {
				return err
			}
			if err := rewrap(to); err != nil {
				return err
			}
			return forgetWraps(c.Data, st, to)
		})
	}
}

// rotate seals a data directory with another root key, while no server has it open. It is
// durable on return, and may be repeated. Errors: seal.ErrWrongRoot, if the data is sealed with
// neither.
func rotate(data string, from, to *seal.Root, log *slog.Logger) error {
	path := filepath.Join(data, recovery.StoreName)
	if _, err := os.Stat(path); err != nil { // Open would make it
		return fmt.Errorf("there is no data in %s: %w", data, err)
	}
	st, err := pebble.Open(path, pebble.Options{Logger: log, Describe: recovery.Describe})
	if err != nil {
		return err
	}
	if err := recovery.RefuseMember(st); err != nil {
		err = fmt.Errorf("the root key is not rotated: %w: docs/cluster.md says how that is done while the cluster runs", err)
		return errors.Join(err, st.Close())
	}
	// After a crash between the two notes, either key may be the data's.
	err = bootstrap.NoteRotation(data, from.ID(), to.ID())
	if err == nil {
		j := journal.Open(journal.Options{Store: st, Logger: log})
		err = keys.RewrapSealing(j, clock.System.Now(), from, to)
		j.Close()
	}
	if err == nil {
		err = forgetWraps(data, st, to)
	}
	return errors.Join(err, st.Close())
}

// IsOpen reports whether err says that a server has the data open.
func IsOpen(err error) bool { return errors.Is(err, pebble.ErrInUse) }
