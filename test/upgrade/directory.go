package upgrade

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Arguments are those of a server on a directory.
func Arguments(addr, data string) []string {
	return []string{"dev", "--listen", addr, "--data", data, "--clock", "virtual", "--jitter", "0"}
}

// Recorded is what the version that wrote a directory answered about it.
type Recorded struct {
	Asked []Answer // by Ask
	Used  []Answer // by Use, thereafter
}

// Pack writes the files of a directory to an archive. What a server makes again is left
// out: the reserve of space, and files of functions that run.
func Pack(dir, archive string) (err error) {
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(z)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case name == "functions":
			return filepath.SkipDir
		case d.IsDir(), name == "godwit-reserve":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o600, Size: int64(len(text))}); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	})
	return errors.Join(err, w.Close(), z.Close())
}

// Unpack makes the directory of an archive.
func Unpack(archive, dir string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	z, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		path := filepath.Join(dir, filepath.FromSlash(filepath.Clean("/"+h.Name)))
		text, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
	}
}
