// Package files stores objects as files of a directory: bucket/key. A file exists whole or not
// at all.
package files

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/outlet"
)

// Directory stores objects as files. It implements outlet.Buckets. No name chosen by a stream's
// owner leads out of it.
type Directory struct {
	root *os.Root

	mu      sync.Mutex
	durable map[string]bool // directories that survive a crash
}

var _ outlet.Buckets = (*Directory)(nil)

// partial is the directory of unfinished files. No bucket has such a name.
const partial = ".partial"

// known bounds the directories that are remembered.
const known = 10_000

// Open opens a directory, which is made if it does not exist. It removes files that a crash has
// left unfinished.
func Open(dir string) (*Directory, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	d := &Directory{root: root, durable: map[string]bool{}}
	if err := errors.Join(root.RemoveAll(partial), root.Mkdir(partial, 0o700), d.sync(".")); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return d, nil
}

// Close releases the directory.
func (d *Directory) Close() error { return d.root.Close() }

// Put implements outlet.Buckets.
func (d *Directory) Put(ctx context.Context, name outlet.Name, write func(w io.Writer) error) (err error) {
	temporary := path.Join(partial, name.ID)
	file, err := d.root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return failed(err)
	}
	const bufferSize = 256 << 10
	buffered := bufio.NewWriterSize(&until{ctx, file}, bufferSize)
	err = errors.Join(write(buffered), buffered.Flush(), file.Sync(), file.Close())
	to := place(name)
	if err == nil {
		if err = d.makeDurable(path.Dir(to)); err == nil {
			err = d.root.Rename(temporary, to)
		}
	}
	if err == nil {
		err = d.sync(path.Dir(to))
	}
	if err != nil {
		return failed(errors.Join(err, d.root.RemoveAll(temporary)))
	}
	return nil
}

// until is a writer that fails when a context has ended.
type until struct {
	ctx context.Context
	w   io.Writer
}

func (u *until) Write(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.w.Write(p)
}

func failed(err error) error {
	code := "Directory.WriteFailed"
	if errors.Is(err, os.ErrPermission) {
		code = "Directory.AccessDenied"
	}
	return &outlet.Error{Code: code, Message: err.Error()}
}

// place is the file of an object. Parts of a name with a special meaning in file systems are
// percent-encoded.
func place(name outlet.Name) string {
	parts := strings.Split(name.Key, "/")
	for i, part := range parts {
		switch {
		case part == "":
			parts[i] = "%"
		case strings.Trim(part, ".") == "":
			parts[i] = strings.ReplaceAll(part, ".", "%2E")
		default:
			parts[i] = fitting(strings.ReplaceAll(part, "\x00", "%00"))
		}
	}
	bucket := name.Bucket
	if strings.Trim(bucket, ".") == "" || bucket == partial {
		bucket = strings.ReplaceAll(bucket, ".", "%2E")
	}
	return bucket + "/" + strings.Join(parts, "/")
}

// fitting shortens a part that is too long for the name of a file.
func fitting(part string) string {
	const longest = 200
	cut := ""
	for len(part) > longest {
		cut, part = cut+part[:longest]+"/", part[longest:]
	}
	if strings.Trim(part, ".") == "" { // the rest of a shortened part
		part = strings.ReplaceAll(part, ".", "%2E")
	}
	return cut + part
}

// makeDurable makes a directory, and makes it and its parents durable.
func (d *Directory) makeDurable(dir string) error {
	d.mu.Lock()
	there := d.durable[dir]
	d.mu.Unlock()
	if there {
		if _, err := d.root.Stat(dir); err == nil {
			return nil
		}
	}
	if err := d.root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for up := dir; up != "."; {
		up = path.Dir(up)
		if err := d.sync(up); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.durable) >= known {
		clear(d.durable)
	}
	d.durable[dir] = true
	return nil
}

// sync makes the entries of a directory durable.
func (d *Directory) sync(dir string) error {
	f, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}
