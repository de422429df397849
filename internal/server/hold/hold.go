// Package hold keeps a server that was restored from a backup from delivering until an
// operator has looked at it: what it would deliver may have been delivered since the backup.
package hold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"godwit.dev/godwit/internal/durable"
)

// file is in the data directory of a server that is held.
const file = "deliveries-held"

// Mark has the next start of a data directory hold its deliveries. It is durable when it
// returns.
func Mark(data string) error {
	return durable.Replace(filepath.Join(data, file), []byte("Restored with --paused: godwit deliveries begin\n"))
}

// Hold keeps what delivers from beginning. The nil Hold keeps nothing.
type Hold struct {
	data     string
	released chan struct{}

	mu      sync.Mutex
	held    bool
	waiting []func()
}

// Open looks whether a data directory is held.
func Open(data string) (*Hold, error) {
	h := &Hold{data: data, released: make(chan struct{})}
	_, err := os.Stat(filepath.Join(data, file))
	switch {
	case err == nil:
		h.held = true
	case errors.Is(err, fs.ErrNotExist):
		close(h.released)
	default:
		return nil, fmt.Errorf("whether deliveries are held cannot be read: %w", err)
	}
	return h, nil
}

// Held reports whether nothing is delivered.
func (h *Hold) Held() bool {
	if h == nil {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held
}

// Released is closed when deliveries may begin; nil: they may.
func (h *Hold) Released() <-chan struct{} {
	if !h.Held() {
		return nil
	}
	return h.released
}

// Begin calls start now or, of a server that is held, when it is released.
func (h *Hold) Begin(start func()) {
	if h != nil {
		h.mu.Lock()
		if h.held {
			h.waiting = append(h.waiting, start)
			h.mu.Unlock()
			return
		}
		h.mu.Unlock()
	}
	start()
}

// Release has deliveries begin, now and after each start from now on; changed is false if
// they were not held.
func (h *Hold) Release() (changed bool, err error) {
	if h == nil {
		return false, nil
	}
	h.mu.Lock()
	if !h.held {
		h.mu.Unlock()
		return false, nil
	}
	if err := h.forget(); err != nil {
		h.mu.Unlock()
		return false, err
	}
	h.held = false
	close(h.released)
	waiting := h.waiting
	h.waiting = nil
	h.mu.Unlock()
	for _, start := range waiting {
		start()
	}
	return true, nil
}

func (h *Hold) forget() error {
	if err := os.Remove(filepath.Join(h.data, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.SyncDir(h.data)
}
