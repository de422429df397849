package pebble

import (
	"errors"
	"io/fs"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"godwit.dev/godwit/internal/store/pebble/files"
)

// blocksFS is a file system that answers at once for blocks of tables that are
// known to be damaged. Pebble looks for a flipped bit at every reading of one,
// which takes it up to seconds.
type blocksFS struct {
	vfs.FS

	mu    sync.Mutex // guards what follows
	files map[string]*damagedBlocks
}

// damagedBlocks are those of a file, by their offsets.
type damagedBlocks struct {
	at atomic.Pointer[map[int64]error]
}

// Unwrap implements vfs.FS.
func (b *blocksFS) Unwrap() vfs.FS { return b.FS }

// Open implements vfs.FS.
func (b *blocksFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := b.FS.Open(name, opts...)
	if strings.HasSuffix(name, valuesSuffix) {
		if err == nil {
			if damage := files.CheckValues(f); errors.Is(damage, files.ErrUnreadable) {
				f, err = nil, errors.Join(damage, f.Close())
			}
		}
		if errors.Is(err, files.ErrUnreadable) || errors.Is(err, fs.ErrNotExist) {
			// Pebble 2.1 panics where it takes this for damage.
			return nil, &unopenable{b.PathBase(name), err.Error()}
		}
	}
	if err != nil || !strings.HasSuffix(name, ".sst") && !strings.HasSuffix(name, valuesSuffix) {
		return f, err
	}
	return blocksFile{f, b.of(b.PathBase(name))}, nil
}

// Remove implements vfs.FS.
func (b *blocksFS) Remove(name string) error {
	b.mu.Lock()
	delete(b.files, b.PathBase(name))
	b.mu.Unlock()
	return b.FS.Remove(name)
}

func (b *blocksFS) of(file string) *damagedBlocks {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, ok := b.files[file]
	if !ok {
		if b.files == nil {
			b.files = map[string]*damagedBlocks{}
		}
		d = new(damagedBlocks)
		b.files[file] = d
	}
	return d
}

type blocksFile struct {
	vfs.File
	damaged *damagedBlocks
}

func (f blocksFile) ReadAt(p []byte, offset int64) (int, error) {
	if known := f.damaged.at.Load(); known != nil {
		if err := (*known)[offset]; err != nil {
			return 0, err
		}
	}
	return f.File.ReadAt(p, offset)
}

// unopenable is the error of a file that cannot be opened because of its damage.
type unopenable struct{ file, reason string }

func (u *unopenable) Error() string { return u.file + ": " + u.reason }

// knownDamage is the error of a block that was found to be damaged before.
type knownDamage struct{ file, reason string }

func (k *knownDamage) Error() string { return k.file + ": " + k.reason }

// Is makes it what Pebble takes for damage.
func (k *knownDamage) Is(target error) bool { return target == pebble.ErrCorruption }

var blockText = regexp.MustCompile(`\bblock (\d+)/\d+: `)

// learn notes the block of a file that an error tells of.
func (b *blocksFS) learn(file string, err error) {
	m := blockText.FindStringSubmatch(err.Error())
	if m == nil {
		return
	}
	offset, parsed := strconv.ParseInt(m[1], 10, 64)
	if parsed != nil {
		return
	}
	d := b.of(file)
	b.mu.Lock()
	defer b.mu.Unlock()
	known := map[int64]error{offset: &knownDamage{file, reason(err)}}
	if before := d.at.Load(); before != nil {
		maps.Copy(known, *before)
	}
	d.at.Store(&known)
}
