package files

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"regexp"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Flip is a byte of a file, and its value before one of its bits was flipped.
type Flip struct {
	Offset int64
	Value  byte
}

// maxFlips bounds the flipped bits of a file that are corrected.
const maxFlips = 8

// Mend finds the flipped bits in a file's metadata, without whose correction its records or
// values cannot be located: at most one bit per block, which the block's checksum identifies.
// It fails with ErrUnreadable if the metadata has other damage. Records and values are not
// corrected: a wrong correction is noticed in an index, but not in a message.
func Mend(fs vfs.FS, path string, values bool, at int64, length int64) (flips []Flip, err error) {
	for range maxFlips {
		mended := Flipped(fs, flips)
		if values {
			_, err = ReadValuesAt(mended, path, at, length)
		} else {
			_, err = DamagedBlocks(mended, path)
		}
		if err == nil || !errors.Is(err, ErrUnreadable) {
			return flips, err
		}
		flip, ok := findFlip(mended, path, values, err)
		if !ok {
			return nil, err
		}
		flips = append(flips, flip)
	}
	return nil, err
}

// The lengths of the footers of tables and blob files, and the offset in them of the checksum
// (4) of the rest. In blob files it covers only the bytes after it.
const (
	tableFooter   = 61
	tableChecksum = 45
)

var errorsBlock = regexp.MustCompile(`\bblock (\d+)/(\d+): `)

func findFlip(fs vfs.FS, path string, values bool, damage error) (flip Flip, ok bool) {
	file, err := fs.Open(path)
	if err != nil {
		return flip, false
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return flip, false
	}
	read := func(offset, length int64) []byte {
		if offset < 0 || length < 0 || offset+length > info.Size() {
			return nil
		}
		p := make([]byte, length)
		if n, _ := file.ReadAt(p, offset); n < len(p) {
			return nil
		}
		return p
	}
	if m := errorsBlock.FindStringSubmatch(damage.Error()); m != nil {
		offset, _ := strconv.ParseInt(m[1], 10, 64)
		length, _ := strconv.ParseInt(m[2], 10, 64)
		p := read(offset, length+BlockEnd)
		if p == nil {
			return flip, false
		}
		i, ok := flipped(p)
		return Flip{offset + int64(i/8), p[i/8] ^ 1<<(i%8)}, ok
	}
	size := int64(tableFooter)
	whole := func(p []byte) bool {
		sum := binary.LittleEndian.Uint32(p[tableChecksum:])
		return string(p[tableFooter-8:]) == "\xf0\x9f\xaa\xb3\xf0\x9f\xaa\xb3" &&
			Checksum(append(append([]byte{}, p[:tableChecksum]...), p[tableChecksum+4:]...)) == sum
	}
	if values {
		size = valuesFooter
		whole = func(p []byte) bool { return Checksum(p[4:]) == binary.LittleEndian.Uint32(p) }
	}
	p := read(info.Size()-size, size)
	if p == nil || whole(p) {
		return flip, false
	}
	for i := range 8 * len(p) {
		p[i/8] ^= 1 << (i % 8)
		if whole(p) {
			return Flip{info.Size() - size + int64(i/8), p[i/8]}, true
		}
		p[i/8] ^= 1 << (i % 8)
	}
	return flip, false
}

// flipped finds the bit of a block with its checksum that was flipped, if it was exactly one.
func flipped(p []byte) (bit int, ok bool) {
	data, sum := p[:len(p)-4], binary.LittleEndian.Uint32(p[len(p)-4:])
	if wrong := Checksum(data) ^ sum; bits.OnesCount32(wrong) == 1 {
		return 8*len(data) + bits.TrailingZeros32(wrong), true
	}
	// The change of the checksum by a flipped bit depends only on the bit's distance from the
	// end.
	wrong := unmasked(Checksum(data)) ^ unmasked(sum)
	var change [8]uint32
	for b := range change {
		change[b] = castagnoli[1<<b]
	}
	for i := range slices.Backward(data) {
		for b := range change {
			if change[b] == wrong {
				return 8*i + b, true
			}
			change[b] = castagnoli[byte(change[b])] ^ change[b]>>8
		}
	}
	return 0, false
}

// unmasked is a checksum without Pebble's masking.
func unmasked(sum uint32) uint32 {
	sum -= 0xa282ead8
	return sum>>17 | sum<<15
}

// Flipped is a file system that shows corrected bytes, in all files.
func Flipped(fs vfs.FS, flips []Flip) vfs.FS {
	if len(flips) == 0 {
		return fs
	}
	return flippedFS{fs, flips}
}

type flippedFS struct {
	vfs.FS
	flips []Flip
}

func (f flippedFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	file, err := f.FS.Open(name, opts...)
	if err != nil {
		return nil, err
	}
	return flippedFile{file, f.flips}, nil
}

type flippedFile struct {
	vfs.File
	flips []Flip
}

func (f flippedFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	for _, flip := range f.flips {
		if at := flip.Offset - offset; at >= 0 && at < int64(n) {
			p[at] = flip.Value
		}
	}
	return n, err
}

var _ io.ReaderAt = flippedFile{}

// blockDamage reports that a block other than of records or values is damaged.
func blockDamage(kind string, offset, length int64) error {
	return fmt.Errorf("%w: block %d/%d: its %s is damaged", ErrUnreadable, offset, length, kind)
}
