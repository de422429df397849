// Package bundle validates the zips of functions without unpacking them.
package bundle

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
)

// MaxUnzipped bounds the unpacked size of a zip, in bytes.
const MaxUnzipped = 262144000

// Bounds that AWS does not document.
const (
	maxEntries = 100_000 // including directories that only file names imply
	maxName    = 4096    // bytes
	maxLink    = 4096    // bytes of a symbolic link's target
)

// Refusals.
var (
	ErrEmpty      = errors.New("bundle: nothing, or a zip of nothing")
	ErrUnreadable = errors.New("bundle: not a zip, or a damaged one")
	ErrTooLarge   = errors.New("bundle: the files are larger than MaxUnzipped")
	ErrEscapes    = errors.New("bundle: an entry leads out of the directory")
)

// Path is where an entry goes, relative to the directory; empty: it is the directory itself. Archives
// that are packed from "." have names that begin with it.
func Path(f *zip.File) string { return strings.TrimSuffix(strings.TrimPrefix(f.Name, "./"), "/") }

// Check refuses a zip that cannot be unpacked safely into a directory: a damaged one, one
// whose unpacked size is too large, whatever its headers say, or one with a name or link that
// leads out of the directory. Links must be relative and lead inside, and no entry may be
// below a link. unzipped is the size of its files, in bytes. Errors: those above.
func Check(archive []byte) (unzipped int64, err error) {
	if len(archive) == 0 {
		return 0, ErrEmpty
	}
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil || len(r.File) > maxEntries {
		return 0, ErrUnreadable
	}
	declared := uint64(0)
	for _, f := range r.File { // most zip bombs declare their sizes
		if declared += f.UncompressedSize64; f.UncompressedSize64 > MaxUnzipped || declared > MaxUnzipped {
			return 0, ErrTooLarge
		}
	}
	kinds := make(map[string]kind, len(r.File))
	left := int64(MaxUnzipped)
	for _, f := range r.File {
		if f.Name == "./" { // the directory itself
			continue
		}
		name := Path(f)
		if !local(name) {
			return 0, ErrEscapes
		}
		k, err := check(f, name, &left)
		if err != nil {
			return 0, err
		}
		if before, ok := kinds[name]; ok && before != k {
			return 0, ErrUnreadable
		}
		kinds[name] = k
	}
	if len(kinds) == 0 {
		return 0, ErrEmpty
	}
	above := make(map[string]struct{})
	for name := range kinds {
		for parent := path.Dir(name); parent != "."; parent = path.Dir(parent) {
			if _, seen := above[parent]; seen {
				break
			}
			if above[parent] = struct{}{}; len(above) > maxEntries {
				return 0, ErrUnreadable
			}
			switch k, ok := kinds[parent]; {
			case ok && k == link:
				return 0, ErrEscapes
			case ok && k == file:
				return 0, ErrUnreadable
			}
		}
	}
	return MaxUnzipped - left, nil
}

type kind uint8

const (
	file kind = iota
	directory
	link
)

// check reads an entry to its end and subtracts its size from left.
func check(f *zip.File, name string, left *int64) (kind, error) {
	k := file
	switch mode := f.Mode(); {
	case mode.IsDir():
		return directory, nil
	case mode.IsRegular():
	case f.ExternalAttrs>>16&0o170000 == 0o120000:
		k = link
	default: // a device, a pipe
		return k, ErrUnreadable
	}
	content, err := f.Open()
	if err != nil {
		return k, ErrUnreadable
	}
	defer content.Close()
	if k == link {
		target, err := io.ReadAll(io.LimitReader(content, maxLink+1))
		if err != nil || len(target) > maxLink {
			return k, ErrUnreadable
		}
		*left -= int64(len(target))
		return k, within(name, string(target))
	}
	n, err := io.Copy(io.Discard, io.LimitReader(content, *left+1))
	if n > *left {
		return k, ErrTooLarge
	}
	if err != nil {
		return k, ErrUnreadable
	}
	*left -= n
	return k, nil
}

// local reports whether a name stays inside its directory.
func local(name string) bool {
	if name == "" || len(name) > maxName || name[0] == '/' || strings.ContainsRune(name, 0) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > 255 {
			return false
		}
	}
	return true
}

// within refuses the target of a link that leads out. ".." may only come first: after another
// link, its meaning is not known from the text.
func within(name, target string) error {
	if target == "" || target[0] == '/' || strings.ContainsRune(target, 0) {
		return ErrEscapes
	}
	depth, down := strings.Count(name, "/"), false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "..":
			if depth--; depth < 0 || down {
				return ErrEscapes
			}
		case "", ".":
		default:
			down = true
		}
	}
	return nil
}
