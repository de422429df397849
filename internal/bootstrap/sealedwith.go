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

// sealedWithFile is in the data directory, and names the root keys that the data may be
// sealed with: one, or two while it is put under another. It is there to refuse a wrong
// key before the store is opened, which changes files; the store has the last word.
const sealedWithFile = "root-key.id"

// SealedWith are the ids of the root keys that the data in a directory may be sealed with;
// none where it is not known.
func SealedWith(data string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(data, sealedWithFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return strings.Fields(string(text)), err
}

// NoteSealedWith keeps these ids, and is durable when it returns.
func NoteSealedWith(data string, ids ...string) error {
	before, err := SealedWith(data)
	if err != nil || slices.Equal(before, ids) {
		return err
	}
	return replace(filepath.Join(data, sealedWithFile), []byte(strings.Join(ids, "\n")+"\n"))
}

// sealingFile is a copy of the record of the store that nothing sealed can be read
// without: a damaged block of the store must not take all that with it.
const sealingFile = "sealing-keys"

// KeptSealing reads what KeepSealing has kept in a data directory; nil if there is nothing.
func KeptSealing(data string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(data, sealingFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// KeepSealing keeps the keys of a store, wrapped with its root key, beside it. It is
// durable when it returns.
func KeepSealing(data string, text []byte) error {
	if before, err := KeptSealing(data); err != nil || bytes.Equal(before, text) {
		return err
	}
	return replace(filepath.Join(data, sealingFile), text)
}

// ForgetSealing removes what KeepSealing has kept, which is wrapped with another root key
// now: the next start keeps it again.
func ForgetSealing(data string) error {
	if err := os.Remove(filepath.Join(data, sealingFile)); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return durable.SyncDir(data)
}

// ForgetRootKey removes what NoteSealedWith and KeepSealing have kept in a data directory: it
// is not of the store that is used from there any more.
func ForgetRootKey(data string) error {
	if err := os.Remove(filepath.Join(data, sealedWithFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return ForgetSealing(data)
}

// NoteRotation keeps that the data is about to be put under the root key to.
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
