// Package bootstrap has the files that a server starts from besides its data: the root key,
// which encrypts the data's keys, and the access key of the root user. It creates and reads
// them, and reports what is unsafe about them.
package bootstrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/config"
	"godwit.dev/godwit/internal/durable"
	"godwit.dev/godwit/internal/seal"
)

// DevRootKey is the name of development's root key, in the data directory: it protects
// nothing, because it is next to the data.
const DevRootKey = "dev-root.key"

// onlyOwner is the mode of files with secrets.
const onlyOwner fs.FileMode = 0o600

// ReadRootKey reads the file of a root key. Errors name the file, but not its content.
func ReadRootKey(path string) (*seal.Root, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	root, err := seal.ParseRoot(text)
	if err == nil {
		return root, nil
	}
	if root := mended(text); root != nil {
		return root, nil
	}
	return nil, fmt.Errorf("%s: %w", path, err)
}

// mended is the root key of a text with a single flipped bit, which the key's id verifies;
// nil: it cannot be repaired. text is unchanged.
func mended(text []byte) *seal.Root {
	if len(text) > longestRootKey {
		return nil
	}
	text = bytes.Clone(text)
	for i := range text {
		for bit := range 8 {
			text[i] ^= 1 << bit
			if root, err := seal.ParseRoot(text); err == nil {
				return root
			}
			text[i] ^= 1 << bit
		}
	}
	return nil
}

// longestRootKey is the largest size of a file that is repaired, in bytes: a few times that
// of Godwit's files.
const longestRootKey = 1 << 10

// WriteRootKey creates the file of a root key, which must not exist.
func WriteRootKey(path string, root *seal.Root) error { return create(path, root.Encode()) }

// WriteDevRootKey creates the file of development's root key, which must not exist.
func WriteDevRootKey(path string, root *seal.Root) error {
	return create(path, append([]byte("# Made by godwit dev. It protects nothing, since who has the data has it too.\n"), root.Encode()...))
}

// CopyKeys copies development's root key and the file of KeepSealing into another data
// directory, which must have neither; unchanged, so that damage can be repaired there, too.
// Missing files are skipped.
func CopyKeys(data, to string) error {
	for _, name := range []string{DevRootKey, sealingFile} {
		text, err := os.ReadFile(filepath.Join(data, name))
		if err == nil {
			err = create(filepath.Join(to, name), text)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// CopyDevRootKey copies development's root key into another data directory, unchanged.
// Errors: fs.ErrExist if there is one.
func CopyDevRootKey(path, to string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return create(filepath.Join(to, DevRootKey), text)
}

// accessKey is the file of the root user's access key. The secret is encrypted with the root
// key, so that the file alone is useless.
type accessKey struct {
	Version     int    `json:"version"` // 1
	AccessKeyID string `json:"accessKeyId"`
	RootKey     string `json:"rootKey"` // the id of the root key
	Secret      []byte `json:"sealedSecretAccessKey"`
}

func (a *accessKey) context() []byte { return seal.Context("root access key", a.AccessKeyID) }

// ReadAccessKey reads the file of the root user's access key.
func ReadAccessKey(path string, root *seal.Root) (config.Root, error) {
	a, err := readAccessKey(path)
	if err != nil {
		return config.Root{}, err
	}
	if a.RootKey != root.ID() {
		return config.Root{}, fmt.Errorf("%s is sealed with the root key of the id %s, and the one at hand has the id %s", path, a.RootKey, root.ID())
	}
	secret, err := root.Sealer(accessKeyPurpose).Open(a.Secret, a.context())
	if err != nil {
		return config.Root{}, fmt.Errorf("%s is damaged", path)
	}
	return config.Root{AccessKeyID: a.AccessKeyID, Secret: string(secret)}, nil
}

func readAccessKey(path string) (a accessKey, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil || a.Version != 1 || a.AccessKeyID == "" {
		return a, fmt.Errorf("%s is no root access key", path)
	}
	return a, nil
}

const accessKeyPurpose = "root access key"

func encodeAccessKey(c config.Root, root *seal.Root) ([]byte, error) {
	a := accessKey{Version: 1, AccessKeyID: c.AccessKeyID, RootKey: root.ID()}
	var err error
	if a.Secret, err = root.Sealer(accessKeyPurpose).Seal([]byte(c.Secret), a.context()); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(a, "", "  ")
	return append(text, '\n'), err
}

// writeAccessKey creates the file of the root user's access key, which must not exist.
func writeAccessKey(path string, c config.Root, root *seal.Root) error {
	text, err := encodeAccessKey(c, root)
	if err != nil {
		return err
	}
	return create(path, text)
}

// replaceAccessKey is writeAccessKey, but replaces an existing file atomically.
func replaceAccessKey(path string, c config.Root, root *seal.Root) error {
	text, err := encodeAccessKey(c, root)
	if err != nil {
		return err
	}
	return replace(path, text)
}

// create creates a file, durably. It is complete or does not exist, also after a crash. It
// fails if the file exists.
func create(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // its mode is onlyOwner
	if err != nil {
		return err
	}
	if err = write(f, text); err == nil {
		err = os.Link(f.Name(), path)
	}
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrPermission) { // a file system without hard links
		err = createInPlace(path, text)
	}
	err = errors.Join(err, os.Remove(f.Name()))
	if err == nil {
		err = durable.SyncDir(filepath.Dir(path))
	}
	return err
}

func createInPlace(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, onlyOwner)
	if err != nil {
		return err
	}
	if err := write(f, text); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // its mode is onlyOwner
	if err != nil {
		return err
	}
	err = write(f, text)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return durable.SyncDir(filepath.Dir(path))
}

func write(f *os.File, text []byte) error {
	_, err := f.Write(text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
