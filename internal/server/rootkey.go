package server

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
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/server/recovery"
	"godwit.dev/godwit/internal/shard/keys"
	"godwit.dev/godwit/internal/store"
	"godwit.dev/godwit/internal/store/pebble"
)

// openSealing opens the keys that the store is sealed with.
func openSealing(deps Deps, log *journal.Journal) (*seal.Keys, error) {
	used, kept := "", []byte(nil)
	if onDisk(deps) {
		var err error
		if kept, err = bootstrap.KeptSealing(deps.Config.Data); err != nil {
			return nil, err
		}
	}
	opened, err := keys.OpenSealing(log, deps.Clock.Now(), kept, func(needed string) (root *seal.Root, err error) {
		defer func() {
			if err == nil {
				used = root.ID()
			}
		}()
		switch {
		case deps.Config.RootKey != "":
			root, err := readProductionRoot(deps.Config, needed)
			if err == nil && root.ID() != needed {
				if next := nextRoot(deps, needed); next != nil {
					return next, nil
				}
				err = bootstrap.Interrupted(deps.Config.RootKey, needed) // else the following error names both
			}
			return root, err
		case deps.World.Root != nil:
			return deps.World.Root, nil
		case deps.World.Store != nil || deps.Config.Store == config.MemoryStore:
			return seal.NewRoot(), nil // it lives as long as the data it seals
		}
		path := filepath.Join(deps.Config.Data, bootstrap.DevRootKey)
		root, err = readRoot(path, needed)
		if errors.Is(err, fs.ErrNotExist) && needed == "" {
			root = seal.NewRoot()
			if err = bootstrap.WriteDevRootKey(path, root); err != nil {
				err = fmt.Errorf("the root key cannot be kept: %w", err)
			}
		}
		return root, err
	})
	if err == nil && onDisk(deps) {
		err = bootstrap.NoteSealedWith(deps.Config.Data, used)
	}
	if err == nil && onDisk(deps) {
		if kept, err = keys.Sealing(log); err == nil {
			err = bootstrap.KeepSealing(deps.Config.Data, kept)
		}
	}
	return opened, err
}

// nextRoot is the next root key of a cluster's node, if its id is the given one: the rotation
// ran on another node, which replaced only its own file.
func nextRoot(deps Deps, id string) *seal.Root {
	if !deps.World.Replicated {
		return nil
	}
	next, err := bootstrap.NextRoot(deps.Config.RootKey)
	if err != nil || next.ID() != id {
		return nil
	}
	deps.Log.Warn("the root key was rotated by another node: copy its root key and root access key here", "rootKey", deps.Config.RootKey, "id", id)
	return next
}

// onDisk reports that the state is in Config.Data.
func onDisk(deps Deps) bool {
	return deps.World.Store == nil && deps.Config.Store != config.MemoryStore
}

// checkRootKey refuses a root key that is missing or not the data's, before anything is
// written, as far as that can be known then.
func checkRootKey(c config.Config) error {
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

// RotateRootOf rotates the root key of a directory made by bootstrap.Init, as described at
// bootstrap.RotateRootKey.
func RotateRootOf(dir, from string, log *slog.Logger) (kept string, err error) {
	return bootstrap.RotateRootKey(dir, from, func(data string, from, to *seal.Root) error { return rotateRoot(data, from, to, log) })
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

// rotation rotates the root key of a running server; nil if that would protect nothing.
func rotation(deps Deps, st store.Store, rewrap func(to *seal.Root) error) func() (kept string, err error) {
	c := deps.Config
	switch {
	case c.RootKey == "":
		return nil
	case deps.World.Replicated:
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

// IsOpen reports whether err says that a server has the data open.
func IsOpen(err error) bool { return errors.Is(err, pebble.ErrInUse) }

// rotateRoot seals a data directory with another root key, while no server has it open. It is
// durable on return, and may be repeated. Errors: seal.ErrWrongRoot, if the data is sealed with
// neither.
func rotateRoot(data string, from, to *seal.Root, log *slog.Logger) error {
	path := filepath.Join(data, recovery.StoreName)
	if _, err := os.Stat(path); err != nil { // Open would make it
		return fmt.Errorf("there is no data in %s: %w", data, err)
	}
	st, err := pebble.Open(path, pebble.Options{Logger: log, Describe: recovery.Describe})
	if err != nil {
		return err
	}
	if err := refuseMember(st); err != nil {
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

// errMember refuses to change the store of a cluster's node outside of the cluster's log.
var errMember = errors.New("the data is a node's of a cluster")

// refuseMember refuses a store that is a replica of a cluster's log, with errMember: a separate
// change would be lost, or make it diverge from the other nodes.
func refuseMember(st store.Store) error {
	member := false
	err := store.Each(st, keyspace.Prefix([]byte{keyspace.ClusterSpace, keyspace.ClusterFences}), func(_, _ []byte) bool {
		member = true
		return false
	})
	if member {
		return errMember
	}
	return err
}
