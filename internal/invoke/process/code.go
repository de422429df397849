package process

import (
	"archive/zip"
	"bytes"
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/bundle"
)

// keptCode bounds the unused directories of code that are kept.
const keptCode = 64

// codeCache caches unpacked code and layers, in directories named by the hashes of the zips.
type codeCache struct {
	dir  string
	read func(ctx context.Context, t function.Target) ([]byte, error)
	// readLayer reads the zip of a layer.
	readLayer func(ctx context.Context, l function.Layer) ([]byte, error)

	mu     sync.Mutex
	byName map[string]*code
	unused list.List // of *code, longest unused first
}

// code is a directory of unpacked code.
type code struct {
	cache   *codeCache
	name    string
	dir     string
	users   int           // guarded by the cache
	element *list.Element // in unused
	once    sync.Once
	err     error // of the unpacking
}

func newCodeCache(dir string, o *Options) *codeCache {
	return &codeCache{dir: dir, read: o.Code, readLayer: o.Layer, byName: map[string]*code{}}
}

// acquire unpacks a function's code, if necessary. The caller must call release.
func (c *codeCache) acquire(ctx context.Context, t *function.Target) (*code, error) {
	return c.directory(hex.EncodeToString(t.Code.SHA256[:]), func(dir string) error {
		text, err := c.read(ctx, *t)
		if err != nil {
			return err
		}
		_, err = unpack(ctx, text, dir, bundle.MaxUnzipped, false)
		return err
	})
}

// acquireLayers unpacks the layers of a function, if necessary, into one directory: a file of a later layer
// takes the place of an earlier one's. The caller must call release, unless there are none: then it gets nil.
func (c *codeCache) acquireLayers(ctx context.Context, layers []function.Layer) (*code, error) {
	if len(layers) == 0 {
		return nil, nil
	}
	all := sha256.New()
	for _, l := range layers {
		all.Write(l.SHA256)
	}
	return c.directory("layers-"+hex.EncodeToString(all.Sum(nil)), func(dir string) error {
		left := int64(bundle.MaxUnzipped)
		for i, l := range layers {
			text, err := c.readLayer(ctx, l)
			if err != nil {
				return err
			}
			if left, err = unpack(ctx, text, dir, left, i > 0); err != nil {
				return err
			}
		}
		return nil
	})
}

// directory is the one with a name, which fill fills if it is new.
func (c *codeCache) directory(name string, fill func(dir string) error) (*code, error) {
	c.mu.Lock()
	k := c.byName[name]
	if k == nil {
		k = &code{cache: c, name: name, dir: filepath.Join(c.dir, name)}
		c.byName[name] = k
	}
	k.users++
	if k.element != nil {
		c.unused.Remove(k.element)
		k.element = nil
	}
	c.mu.Unlock()
	k.once.Do(func() { k.err = c.fill(k.dir, fill) })
	if k.err != nil {
		err := k.err
		k.release()
		return nil, err
	}
	return k, nil
}

// release undoes acquire.
func (k *code) release() {
	c := k.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	k.users--
	if k.users > 0 {
		return
	}
	if k.err != nil {
		delete(c.byName, k.name) // the next acquire retries
		return
	}
	k.element = c.unused.PushBack(k)
	for c.unused.Len() > keptCode {
		oldest := c.unused.Remove(c.unused.Front()).(*code)
		delete(c.byName, oldest.name)
		// Under the lock: another acquire must find it complete or not at all.
		_ = os.RemoveAll(oldest.dir)
	}
}

// fill fills a directory that becomes visible only when complete.
func (c *codeCache) fill(dir string, fill func(dir string) error) error {
	part, err := os.MkdirTemp(c.dir, "part-")
	if err != nil {
		return fmt.Errorf("unpacking code: %w", err)
	}
	err = os.Chmod(part, 0o755)
	if err == nil {
		err = fill(part)
	}
	if err == nil {
		err = os.Rename(part, dir)
	}
	if err != nil {
		_ = os.RemoveAll(part)
	}
	return err
}

// unpack writes the files of a zip below dir, and never outside: at most left bytes of them. It returns how
// many are left then. over says that there may be files of other zips, whose place those of this one take.
func unpack(ctx context.Context, text []byte, dir string, left int64, over bool) (int64, error) {
	archive, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return left, ErrZip
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return left, fmt.Errorf("unpacking code: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, f := range archive.File {
		if over {
			if err := makeRoom(root, f); err != nil {
				return left, err
			}
		}
		n, err := unpackFile(ctx, root, f, left)
		if ctx.Err() != nil {
			return left, ctx.Err()
		}
		if err != nil {
			return left, err
		}
		left -= n
	}
	return left, nil
}

// makeRoom removes what an entry takes the place of. A link of an earlier zip is no directory: nothing is
// ever written through one, so that each link leads where it was checked to lead. It goes down one directory
// at a time, as a root looks up a whole path from its top.
func makeRoom(root *os.Root, f *zip.File) error {
	name := bundle.Path(f)
	if name == "" || !filepath.IsLocal(name) {
		return nil
	}
	dir, open := root, (*os.Root)(nil)
	defer func() {
		if open != nil {
			_ = open.Close()
		}
	}()
	for {
		part, below, more := strings.Cut(name, "/")
		info, err := dir.Lstat(part)
		switch {
		case err != nil || !more && info.IsDir() && f.Mode().IsDir():
			return nil //nolint:nilerr // there is nothing, or the write says what is wrong
		case !more || !info.IsDir():
			return explainDisk(dir.RemoveAll(part))
		}
		next, err := dir.OpenRoot(part)
		if err != nil {
			return explainDisk(err)
		}
		if open != nil {
			_ = open.Close()
		}
		dir, open, name = next, next, below
	}
}

// unpackFile writes one file and returns its size. A fault of the zip is the function's; an
// error of the disk is internal.
func unpackFile(ctx context.Context, root *os.Root, f *zip.File, left int64) (int64, error) {
	name := bundle.Path(f)
	if name == "" {
		return 0, nil
	}
	if !filepath.IsLocal(name) {
		return 0, ErrZip
	}
	mode := f.Mode()
	if mode.IsDir() || strings.HasSuffix(f.Name, "/") {
		return 0, explainDisk(root.MkdirAll(name, 0o755))
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return 0, explainDisk(err)
	}
	in, err := f.Open()
	if err != nil {
		return 0, ErrZip
	}
	defer in.Close()
	if mode&fs.ModeSymlink != 0 {
		target, err := io.ReadAll(io.LimitReader(in, 4096))
		if err != nil {
			return 0, ErrZip
		}
		return 0, explainDisk(root.Symlink(string(target), name))
	}
	permissions := fs.FileMode(0o644)
	// An archive without Unix permissions does not say which files are executable.
	if mode&0o111 != 0 || f.ExternalAttrs>>16 == 0 && name == bootstrapName {
		permissions = 0o755
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, permissions)
	if err != nil {
		return 0, explainDisk(err)
	}
	n, err := io.Copy(out, io.LimitReader(until{ctx, in}, left+1))
	if closed := out.Close(); err == nil && closed != nil {
		return n, fmt.Errorf("unpacking code: %w", closed)
	}
	switch {
	case n > left:
		return n, ErrUnzippedSize.With(bundle.MaxUnzipped)
	case err != nil && !onDisk(err):
		return n, ErrZip
	case err != nil:
		return n, explainDisk(err)
	}
	return n, nil
}

// until reads until its context ends.
type until struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.Reader.Read(p)
}

// onDisk reports whether an error comes from a file.
func onDisk(err error) bool {
	_, is := errors.AsType[*fs.PathError](err)
	return is
}

// explainDisk distinguishes an invalid name in the zip, which the root refuses or which
// occurs twice with different types, from a failure of the disk.
func explainDisk(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid), escapes(err):
		return ErrZip
	}
	return fmt.Errorf("unpacking code: %w", err)
}

// escapes reports whether a path leads out of its root, or uses a file as a directory.
func escapes(err error) bool {
	text := err.Error()
	return strings.Contains(text, "escapes") || strings.Contains(text, "not a directory") || strings.Contains(text, "is a directory")
}
