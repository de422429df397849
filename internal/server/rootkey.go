package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/journal"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/shard/keys"
)

// devRootName is the file of the root key that is made where none is configured. It
// stands beside the data, and so protects nothing.
const devRootName = "dev-root.key"

// openSealing opens the keys that the store is sealed with.
func openSealing(deps Deps, log *journal.Journal) (*seal.Keys, error) {
	return keys.OpenSealing(log, deps.Clock.Now(), func(needed string) (*seal.Root, error) {
		switch {
		case deps.Config.RootKey != "":
			return readRoot(deps.Config.RootKey, needed)
		case deps.World.Root != nil:
			return deps.World.Root, nil
		case deps.World.Store != nil || deps.Config.Store == config.MemoryStore:
			return seal.NewRoot(), nil // it ends with what it seals
		}
		path := filepath.Join(deps.Config.Data, devRootName)
		root, err := readRoot(path, needed)
		if errors.Is(err, fs.ErrNotExist) && needed == "" {
			root = seal.NewRoot()
			err = writeRoot(path, root)
		}
		return root, err
	})
}

// readRoot reads the file of a root key; needed is the id of the one that the data is
// sealed with, if it is.
func readRoot(path, needed string) (*seal.Root, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && needed != "" {
		return nil, fmt.Errorf("%w: it has the id %s, and was looked for in %s", keys.ErrNoRoot, needed, path)
	}
	if err != nil {
		return nil, fmt.Errorf("the root key cannot be read: %w", err)
	}
	root, err := seal.ParseRoot(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return root, nil
}

// writeRoot makes the file of a root key, which must not be there. It is durable before
// anything is sealed with it.
func writeRoot(path string, root *seal.Root) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("the root key cannot be kept: %w", err)
		}
	}()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(root.Encode())
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
