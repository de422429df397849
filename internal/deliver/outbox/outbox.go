// Package outbox stores what development does not send: in a directory, one file each, or in
// memory. Files are not synced.
package outbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// The bounds of a box: items, and bytes in memory. The oldest are deleted first.
const (
	most      = 10_000
	mostBytes = 128 << 20
)

// Box is an outbox. It may be used concurrently.
type Box struct {
	dir       string // empty: in memory
	extension string
	clock     clock.Clock

	mu     sync.Mutex
	names  []string // oldest first
	memory map[string][]byte
	bytes  int // in memory
	count  uint64
}

// Open opens a box in a directory, which it creates; empty: in memory. Files have an
// extension, such as ".eml".
func Open(dir, extension string, c clock.Clock) (*Box, error) {
	b := &Box{dir: dir, extension: extension, clock: c, memory: map[string][]byte{}}
	if dir == "" {
		return b, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir) // ordered by name
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), extension); ok && isName.MatchString(name) {
			b.names = append(b.names, name)
		}
	}
	return b, nil
}

const moment = "20060102T150405.000000000"

// isName matches an item's name: its time, and its number in this process.
var isName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}\.[0-9]{9}-[0-9]{8}$`)

// Keep adds an item, and deletes the oldest if there are too many.
func (b *Box) Keep(item []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var name string
	var at int                                                                 // not always the end, as a clock may have been set back
	for taken := true; taken; at, taken = slices.BinarySearch(b.names, name) { // taken: before a restart, with a clock that does not advance
		b.count++
		name = fmt.Sprintf("%s-%08d", b.clock.Now().UTC().Format(moment), b.count%100_000_000)
	}
	if err := b.write(name, item); err != nil {
		return err
	}
	b.names = slices.Insert(b.names, at, name)
	for len(b.names) > most || b.bytes > mostBytes {
		b.remove(b.names[0])
		b.names = b.names[1:]
	}
	return nil
}

func (b *Box) path(name string) string { return filepath.Join(b.dir, name+b.extension) }

func (b *Box) write(name string, item []byte) error {
	if b.dir == "" {
		b.memory[name] = item
		b.bytes += len(item)
		return nil
	}
	// The rename makes a file visible only when it is complete.
	part := b.path(name) + ".part"
	err := os.WriteFile(part, item, 0o600)
	if err == nil {
		err = os.Rename(part, b.path(name))
	}
	if err != nil {
		return errors.Join(err, os.Remove(part))
	}
	return nil
}

func (b *Box) remove(name string) {
	b.bytes -= len(b.memory[name])
	delete(b.memory, name)
	if b.dir != "" {
		_ = os.Remove(b.path(name)) // another process may have deleted it
	}
}

// Each calls f with items, newest first, until it returns false. Items deleted in the
// meantime are skipped. The error is one of reading.
func (b *Box) Each(f func(name string, at time.Time, item []byte) bool) error {
	b.mu.Lock()
	names := slices.Clone(b.names)
	b.mu.Unlock()
	slices.Reverse(names)
	for _, name := range names {
		item, err := b.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		at, err := time.Parse(moment, name[:strings.IndexByte(name, '-')])
		if err == nil && !f(name, at, item) {
			return nil
		}
	}
	return nil
}

// Read returns an item by name. Errors: fs.ErrNotExist.
func (b *Box) Read(name string) ([]byte, error) {
	if !isName.MatchString(name) {
		return nil, fs.ErrNotExist
	}
	if b.dir != "" {
		return os.ReadFile(b.path(name))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	item, ok := b.memory[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return item, nil
}
