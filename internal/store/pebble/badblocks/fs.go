package badblocks

import (
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/files"
)

// FS is a file system that fails at once for blocks that are known to be damaged: Pebble
// searches for a flipped bit at every read of one, which takes up to seconds. Noted blocks have
// substitutes, and their files are set aside when Pebble removes them.
type FS struct {
	vfs.FS

	rewrite atomic.Pointer[rewrite] // nil: none is in progress

	mu    sync.Mutex // guards what follows
	files map[string]*blocks
	noted map[string]bool
}

// blocks are the damaged blocks of a file, by offset.
type blocks struct {
	at atomic.Pointer[known]
}

// rewrite is a rewrite of a blob file, which is checked before.
type rewrite struct {
	file   string
	look   sync.Once
	damage error
}

type known struct {
	errors   map[int64]error
	standIns map[int64][]byte
}

// New wraps a file system.
func New(f vfs.FS) *FS {
	return &FS{FS: f, files: map[string]*blocks{}, noted: map[string]bool{}}
}

// Unwrap implements vfs.FS.
func (b *FS) Unwrap() vfs.FS { return b.FS }

// Open implements vfs.FS.
func (b *FS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := b.FS.Open(name, opts...)
	if err == nil && (strings.HasSuffix(name, ".sst") || strings.HasSuffix(name, ValuesSuffix)) {
		f = file{f, b, name, b.of(b.PathBase(name))}
	}
	if strings.HasSuffix(name, ValuesSuffix) {
		if err == nil {
			if damage := files.CheckValues(f); errors.Is(damage, files.ErrUnreadable) {
				f, err = nil, errors.Join(damage, f.Close())
			}
		}
		if errors.Is(err, files.ErrUnreadable) || errors.Is(err, fs.ErrNotExist) {
			// Pebble 2.1 panics if it takes this for damage.
			return nil, &Unreadable{b.PathBase(name), err.Error()}
		}
	}
	return f, err
}

// Remove implements vfs.FS.
func (b *FS) Remove(name string) error {
	base := b.PathBase(name)
	b.mu.Lock()
	delete(b.files, base)
	noted := b.noted[base]
	b.mu.Unlock()
	if !noted || b.PathBase(b.PathDir(name)) == asideDir {
		return b.FS.Remove(name)
	}
	aside := b.PathJoin(b.PathDir(name), asideDir)
	if err := b.MkdirAll(aside, 0o750); err != nil {
		return err
	}
	return b.Rename(name, b.PathJoin(aside, base))
}

func (b *FS) of(file string) *blocks {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, ok := b.files[file]
	if !ok {
		d = new(blocks)
		b.files[file] = d
	}
	return d
}

// Rewriting notes that Pebble begins, or ends, to rewrite a blob file. There is one rewrite at
// a time.
func (b *FS) Rewriting(file string, begins bool) {
	if begins {
		b.rewrite.Store(&rewrite{file: file})
	} else {
		b.rewrite.Store(nil)
	}
}

type file struct {
	vfs.File
	fs     *FS
	path   string
	blocks *blocks
}

// ReadAt implements vfs.File. Pebble 2.1 panics when a rewrite of a blob file finds damage, and
// at the end of a failed rewrite that has opened the file. So the first read of the rewrite, of
// a table that refers to the file, checks the file, and fails if it is damaged.
func (f file) ReadAt(p []byte, offset int64) (int, error) {
	if r := f.fs.rewrite.Load(); r != nil && ofRewrite() {
		r.look.Do(func() { r.damage = f.fs.damaged(f.fs.PathJoin(f.fs.PathDir(f.path), r.file)) })
		if r.damage != nil {
			return 0, r.damage
		}
	}
	return f.readAt(p, offset)
}

// ofRewrite reports whether its caller is Pebble's rewrite of a blob file, and not a concurrent
// reader of the file: by the stack, as nothing else distinguishes them. It is false while the
// rewrite opens a table: concurrent readers of that table would get the same error, and would
// take all its records for damaged.
func ofRewrite() bool {
	var callers [64]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(3, callers[:])])
	for {
		frame, more := frames.Next()
		switch {
		case strings.Contains(frame.Function, "fileCacheHandle).openFile"):
			return false
		case strings.Contains(frame.Function, "blobFileRewriter"):
			return true
		}
		if !more {
			return false
		}
	}
}

// damaged reports the damage in a blob file that has no substitute blocks.
func (b *FS) damaged(path string) error {
	err := files.CheckAllValues(patched{b}, path)
	known, ok := errors.AsType[*Known](err)
	switch {
	case ok:
		return &Unreadable{known.File, known.Reason}
	case errors.Is(err, files.ErrUnreadable):
		return &Unreadable{b.PathBase(path), err.Error()}
	}
	return err
}

// patched shows files as Pebble sees them, for checks.
type patched struct{ *FS }

func (b patched) Open(name string, _ ...vfs.OpenOption) (vfs.File, error) {
	f, err := b.FS.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return patchedFile{file{f, b.FS, name, b.of(b.PathBase(name))}}, nil
}

type patchedFile struct{ file }

func (f patchedFile) ReadAt(p []byte, offset int64) (int, error) { return f.readAt(p, offset) }

func (f file) readAt(p []byte, offset int64) (int, error) {
	k := f.blocks.at.Load()
	if k == nil {
		return f.File.ReadAt(p, offset)
	}
	if err := k.errors[offset]; err != nil {
		return 0, err
	}
	if block := k.standIns[offset]; block != nil && len(block) >= len(p) {
		return copy(p, block), nil // the disk may not even be able to read it
	}
	n, err := f.File.ReadAt(p, offset)
	for at, block := range k.standIns {
		from, to := max(at, offset), min(at+int64(len(block)), offset+int64(n))
		if from < to {
			copy(p[from-offset:to-offset], block[from-at:])
		}
	}
	return n, err
}

// Unreadable is the error of a file that cannot be opened, or rewritten, because of damage.
// Pebble does not take it for damage.
type Unreadable struct{ File, Reason string }

func (u *Unreadable) Error() string { return u.File + ": " + u.Reason }

// Known is the error of a block that was found to be damaged before.
type Known struct{ File, Reason string }

func (k *Known) Error() string { return k.File + ": " + k.Reason }

// Is makes it an error that Pebble takes for damage.
func (k *Known) Is(target error) bool { return target == pebble.ErrCorruption }

var blockText = regexp.MustCompile(`\bblock (\d+)/(\d+): `)

// Place is the position of the damaged block that an error reports.
func Place(err error) (b Block, ok bool) {
	m := blockText.FindStringSubmatch(err.Error())
	if m == nil {
		return Block{}, false
	}
	offset, e1 := strconv.ParseInt(m[1], 10, 64)
	length, e2 := strconv.ParseInt(m[2], 10, 64)
	return Block{Offset: offset, Length: length}, e1 == nil && e2 == nil
}

// Learn notes the damaged block of a file that an error reports.
func (b *FS) Learn(file string, err error) {
	place, ok := Place(err)
	if !ok {
		return
	}
	reason, _, _ := strings.Cut(err.Error(), "\n")
	b.change(file, func(k *known) {
		for at := range k.standIns {
			if at >= place.Offset && at < place.Offset+place.Length+files.BlockEnd {
				return // an earlier error
			}
		}
		k.errors[place.Offset] = &Known{file, reason}
	})
}

func (b *FS) change(file string, f func(*known)) {
	d := b.of(file)
	b.mu.Lock()
	defer b.mu.Unlock()
	k := &known{errors: map[int64]error{}, standIns: map[int64][]byte{}}
	if before := d.at.Load(); before != nil {
		maps.Copy(k.errors, before.errors)
		maps.Copy(k.standIns, before.standIns)
	}
	f(k)
	d.at.Store(k)
}

// Keep sets a file aside when it is removed.
func (b *FS) Keep(file string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.noted[file] = true
}

// Patch shows substitutes of a note's blocks from now on.
func (b *FS) Patch(note *Note) error {
	made := make([][]byte, len(note.Blocks))
	for i := range note.Blocks {
		var err error
		if made[i], err = note.Blocks[i].standIn(!note.Table()); err != nil {
			return err
		}
	}
	b.change(note.File, func(k *known) {
		for i, p := range made {
			at := note.Blocks[i].Offset
			delete(k.errors, at)
			k.standIns[at] = p
		}
		if len(note.Flips) > 0 {
			clear(k.errors) // they are read again
		}
		for _, flip := range note.Flips {
			k.standIns[flip.Offset] = []byte{flip.Value}
		}
	})
	return nil
}
