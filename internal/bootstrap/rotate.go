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

// nextRootKey ends the name of the file of a root key that is about to replace another.
const nextRootKey = ".new"

// NextRoot reads the root key that is about to replace the one in path. Errors:
// fs.ErrNotExist if there is none.
func NextRoot(path string) (*seal.Root, error) { return ReadRootKey(path + nextRootKey) }

// Interrupted says, of something that is sealed with the root key of an id and not with that
// in path, that a rotation has put it under the next one; nil if that is not why.
func Interrupted(path, id string) error {
	next, err := NextRoot(path)
	if err != nil || next.ID() != id {
		return nil //nolint:nilerr // it is not that
	}
	return fmt.Errorf("%w: it is sealed with %s already; a rotation was interrupted, and goes on by godwit keys rotate-root --dir DIR",
		seal.ErrWrongRoot, path+nextRootKey)
}

// AdminAddress is where a server that was started from a directory that Init has made
// answers operators without a signature; empty: nowhere.
func AdminAddress(dir string) (string, error) {
	file, err := settings(dir)
	if err != nil {
		return "", err
	}
	return setting(file, "admin-listen", ""), nil
}

// settings reads the settings of a directory that Init has made.
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

// setting is a setting, as a path in dir if it is none of its own; or else by its name.
func setting(file *config.File, name, otherwise string) string {
	if value, ok := file.Value(name); ok {
		return value
	}
	return otherwise
}

// RotateRootKey puts the data of a directory that Init has made under another root key.
// With from, the file of the key that it is under now, that is the directory's; else the
// directory's is replaced by a new one, and kept is where the old one stays. rewrap does
// it to the data. The steps are such that what was interrupted continues when it is done
// again: a new key is durable before the data is under it, and in its place after.
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

// Rotate replaces the file of a root key by a new one, under which rewrap puts the data,
// and has the access key of the root user under it, too; accessPath is its file, empty for
// none. kept is where the old root key stays.
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

// reseal has the root user's access key under another root key; there may be none.
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
	return ReplaceAccessKey(path, key, to)
}
