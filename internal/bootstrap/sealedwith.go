package bootstrap

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"godwit.dev/godwit/internal/durable"
)

// sealedWithFile is in the data directory, and names the root keys that may encrypt the data:
// one, or two during a rotation. It serves to refuse a wrong key before the store is opened,
// which changes files; the store's own check decides.
const sealedWithFile = "root-key.id"

// SealedWith are the ids of the root keys that may encrypt the data in a directory; none: not
// known.
func SealedWith(data string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(data, sealedWithFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(text)), err
}

// NoteSealedWith stores these ids; it is durable on return.
func NoteSealedWith(data string, ids ...string) error {
	before, err := SealedWith(data)
	if err != nil || slices.Equal(before, ids) {
		return err
	}
	return replace(filepath.Join(data, sealedWithFile), []byte(strings.Join(ids, "\n")+"\n"))
}

// sealingFile is a copy of the store's record of encryption keys: a damaged block of the
// store must not make all encrypted data unreadable.
const sealingFile = "sealing-keys"

// KeptSealing reads the copy of KeepSealing in a data directory; nil: there is none.
func KeptSealing(data string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(data, sealingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// KeepSealing stores a copy of a store's keys, encrypted with its root key, next to it. It is
// durable on return.
func KeepSealing(data string, text []byte) error {
	if before, err := KeptSealing(data); err != nil || bytes.Equal(before, text) {
		return err
	}
	return replace(filepath.Join(data, sealingFile), text)
}

// ForgetSealing deletes the copy of KeepSealing when it is encrypted with an old root key:
// the next start stores it again.
func ForgetSealing(data string) error {
	if err := os.Remove(filepath.Join(data, sealingFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return durable.SyncDir(data)
}

// ForgetRootKey deletes the files of NoteSealedWith and KeepSealing in a data directory,
// because they are not of its current store.
func ForgetRootKey(data string) error {
	if err := os.Remove(filepath.Join(data, sealedWithFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return ForgetSealing(data)
}

// NoteRotation records that the data is about to be encrypted with the root key to.
func NoteRotation(data, from, to string) error {
	ids, err := SealedWith(data)
	if err != nil {
		return err
	}
	for _, id := range []string{from, to} {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return NoteSealedWith(data, ids...)
}
