// Package snapshot copies a replica's store to another node that cannot catch up from the log:
// it is new, the log was trimmed beyond what it has, or its own store is damaged.
//
// The source takes a checkpoint of its store and serves the files, in chunks with a checksum
// each. The other node downloads them into a directory beside its own store, file by file, and
// resumes after any interruption. Only a copy that is complete and verified replaces the store,
// in steps that the next start completes after a crash.
package snapshot

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"godwit.dev/godwit/internal/durable"
)

// Names in a node's data directory.
const (
	storeName    = "store"
	incomingName = "store.incoming" // a copy that is not complete
	progressName = "store.incoming.json"
	readyName    = "store.ready" // a complete copy that is to replace the store
	damagedName  = "store.damaged"
)

// ChunkSize is what is asked for at once, in bytes.
const ChunkSize = 4 << 20

// checksumHeader has the CRC-32C of a chunk, in hexadecimal digits.
const checksumHeader = "X-Godwit-Checksum"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Errors of a copy.
var (
	// ErrGone reports that a node does not offer a snapshot any more.
	ErrGone = errors.New("the snapshot is not offered any more")
	// ErrChecksum reports a chunk that was corrupted on the way.
	ErrChecksum = errors.New("a part of the snapshot did not come as it was sent")
	// ErrUnfit reports a complete copy that cannot be used.
	ErrUnfit = errors.New("the snapshot cannot be used")
)

// Manifest is what a snapshot consists of.
type Manifest struct {
	ID       string `json:"id"`
	Position uint64 `json:"position"` // of the log, up to which the store has everything, at least
	Files    []File `json:"files"`
	// Meta is what else its source says of it.
	Meta map[string]string `json:"meta,omitempty"`
}

// File is one of a snapshot's.
type File struct {
	Name string `json:"name"` // relative, with slashes
	Size int64  `json:"size"` // bytes
}

// Size is that of all files, in bytes.
func (m *Manifest) Size() (bytes int64) {
	for _, f := range m.Files {
		bytes += f.Size
	}
	return bytes
}

func checksum(p []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(p, castagnoli)) }

// MarkDamaged durably marks the store of a data directory as damaged: it has to be replaced, also
// after a restart. Errors: the file system's.
func MarkDamaged(data string, reason error) error {
	return durable.Replace(filepath.Join(data, damagedName), []byte(reason.Error()+"\n"))
}

// StoreSize is what the store of a data directory takes, in bytes.
func StoreSize(data string) (bytes int64, err error) {
	err = filepath.WalkDir(filepath.Join(data, storeName), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	return bytes, err
}

// Discard removes the store of a data directory that is marked as damaged, to free the disk
// space for a copy.
func Discard(data string) error {
	if Damaged(data) == "" {
		return errors.New("the store is not marked as damaged")
	}
	if err := os.RemoveAll(filepath.Join(data, storeName)); err != nil {
		return err
	}
	return durable.SyncDir(data)
}

// Damaged is why the store of a data directory is to be replaced; empty: it is not.
func Damaged(data string) string {
	text, err := os.ReadFile(filepath.Join(data, damagedName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ""
	case err != nil:
		return err.Error()
	}
	return string(text)
}

// Install replaces the store by a complete copy, if there is one, which installed says. It is to
// be called at each start, before the store is opened: it is idempotent, and completes what a
// crash has interrupted. Errors: the file system's.
func Install(data string) (installed bool, err error) {
	ready := filepath.Join(data, readyName)
	if _, err := os.Stat(ready); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return false, err
	}
	for _, name := range [...]string{damagedName, progressName, incomingName, storeName} {
		if err := os.RemoveAll(filepath.Join(data, name)); err != nil {
			return false, err
		}
	}
	if err := os.Rename(ready, filepath.Join(data, storeName)); err != nil {
		return false, err
	}
	return true, durable.SyncDir(data)
}
