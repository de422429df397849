package bootstrap

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/durable"
	"godwit.dev/godwit/internal/seal"
)

// nextRootKey is the suffix of the file of the next root key, during a rotation.
const nextRootKey = ".new"

// FormerRoot is the file that a rotation of the root key in path has kept of the key with an id;
// empty: there is none.
func FormerRoot(path, id string) string {
	kept := path + "." + id
	if root, err := ReadRootKey(kept); err != nil || root.ID() != id {
		return ""
	}
	return kept
}

// FormerRootWay is how data comes from a former root key to the present one.
const FormerRootWay = "godwit keys rotate-root --dir DIR --from %s has the data that " + SettingsFile + " in DIR names under the key of today"

// NextRoot reads the next root key of a rotation of the one in path. Errors: fs.ErrNotExist
// if there is none.
func NextRoot(path string) (*seal.Root, error) { return ReadRootKey(path + nextRootKey) }

// Interrupted explains data that is encrypted with the root key id and not with that in path:
// if id is the next key of an interrupted rotation, it is an error that says so, else nil.
func Interrupted(path, id string) error {
	next, err := NextRoot(path)
	if err != nil || next.ID() != id {
		return nil //nolint:nilerr // it is not that
	}
	return fmt.Errorf("%w: it is sealed with %s already; a rotation was interrupted, and goes on by godwit keys rotate-root --dir DIR",
		seal.ErrWrongRoot, path+nextRootKey)
}

// AdminAddress is the address where a server with a directory of Init serves operators
// without a signature; empty: there is none.
func AdminAddress(dir string) (string, error) {
	file, err := settings(dir)
	if err != nil {
		return "", err
	}
	return setting(file, "admin-listen", ""), nil
}

// settings reads the settings of a directory of Init.
func settings(dir string) (*config.File, error) {
	text, err := os.ReadFile(filepath.Join(dir, SettingsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: --dir wants the directory that godwit init has made", err)
	}
	if err != nil {
		return nil, err
	}
	return config.ParseFile(bytes.NewReader(text))
}

// setting is the value of a setting, or otherwise if the file does not have it.
func setting(file *config.File, name, otherwise string) string {
	if value, ok := file.Value(name); ok {
		return value
	}
	return otherwise
}

// RotateRootKey encrypts the keys of the data with another root key, for a directory of Init.
// With from, the file of the current root key, the new one is the directory's; else the
// directory's is replaced by a new one, and kept is the file of the old one. rewrap rewrites
// the data. An interrupted rotation continues when it is repeated: a new key is durable
// before the data depends on it, and replaces the old one afterwards.
func RotateRootKey(dir, from string, rewrap func(data string, from, to *seal.Root) error) (kept string, err error) {
	file, err := settings(dir)
	if err != nil {
		return "", err
	}
	path := setting(file, "root-key", filepath.Join(dir, RootKeyFile))
	accessPath := setting(file, "root-access-key", filepath.Join(dir, AccessKeyFile))
	if err := checkOwner(path); err != nil {
		return "", err
	}
	data, ok := file.Value("data")
	if !ok {
		return "", fmt.Errorf("%s names no data directory", SettingsFile)
	}
	if from != "" {
		root, err := ReadRootKey(path)
		if err != nil {
			return "", err
		}
		old, err := ReadRootKey(from)
		if err != nil {
			return "", err
		}
		return "", rewrap(data, old, root)
	}
	return Rotate(path, accessPath, func(old, fresh *seal.Root) error { return rewrap(data, old, fresh) })
}

// Rotate replaces the file of a root key by a new one. rewrap rewrites the data for it; the
// root user's access key is encrypted anew, too; accessPath is its file, empty for none. kept
// is the file of the old root key.
func Rotate(path, accessPath string, rewrap func(from, to *seal.Root) error) (kept string, err error) {
	if err := checkOwner(path); err != nil {
		return "", err
	}
	root, err := ReadRootKey(path)
	if err != nil {
		return "", err
	}
	next := path + nextRootKey
	fresh, err := NextRoot(path)
	if errors.Is(err, fs.ErrNotExist) {
		fresh = seal.NewRoot()
		err = WriteRootKey(next, fresh)
	}
	if err != nil {
		return "", err
	}
	if err := rewrap(root, fresh); err != nil {
		return "", err
	}
	if err := reseal(accessPath, root, fresh); err != nil {
		return "", err
	}
	kept = path + "." + root.ID()
	if err := os.Link(path, kept); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	if err := os.Rename(next, path); err != nil {
		return "", err
	}
	return kept, durable.SyncDir(filepath.Dir(path))
}

// reseal encrypts the root user's access key, if there is one, with another root key.
func reseal(path string, from, to *seal.Root) error {
	if path == "" {
		return nil
	}
	if _, err := ReadAccessKey(path, to); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	key, err := ReadAccessKey(path, from)
	if err != nil {
		return err
	}
	return replaceAccessKey(path, key, to)
}
