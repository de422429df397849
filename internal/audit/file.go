package audit

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"
)

// File is a sink that appends to a file, which only its owner reads. Where it is moved
// away, as by logrotate, it is made anew. A line is with the machine when Write returns,
// and so survives the end of the process.
type File struct {
	path string

	mu   sync.Mutex
	file *os.File
}

// OpenFile opens a file, or makes it.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	return f, f.open()
}

func (f *File) open() (err error) {
	f.file, err = os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	return err
}

// Write appends a line.
func (f *File) Write(_ time.Time, line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return os.ErrClosed
	}
	if f.moved() {
		before := f.file
		if err := f.open(); err != nil {
			f.file = before
			return err
		}
		_ = before.Close() // each line was written when it came
	}
	_, err := f.file.Write(append(slices.Clip(line), '\n'))
	return err
}

func (f *File) moved() bool {
	open, err := f.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(f.path)
	return errors.Is(err, os.ErrNotExist) || err == nil && !os.SameFile(open, there)
}

// Close closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return errors.Join(file.Sync(), file.Close())
}
