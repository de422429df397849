package bundle_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/function/bundle"
)

// entry is one of a zip; mode 0 is a file that all may run.
type entry struct {
	name, content string
	mode          fs.FileMode
}

func pack(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		if e.mode == 0 {
			e.mode = 0o755
		}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestCheck(t *testing.T) {
	const symlink = fs.ModeSymlink | 0o777
	good := pack(t, entry{name: "bootstrap", content: "#!/bin/sh"})
	for _, tc := range []struct {
		name string
		zip  []byte
		want error
	}{
		{"a file", good, nil},
		{"nothing", pack(t), bundle.ErrEmpty},
		{"nothing but the directory itself", pack(t, entry{name: "./", mode: fs.ModeDir | 0o755}), bundle.ErrEmpty},
		{"directories", pack(t, entry{name: "a/", mode: fs.ModeDir | 0o755}, entry{name: "a/b/c"}), nil},
		{"a name twice", pack(t, entry{name: "a"}, entry{name: "a"}), nil},
		{"no zip", []byte("PK"), bundle.ErrUnreadable},
		{"empty", nil, bundle.ErrEmpty},
		{"cut off", good[:len(good)-5], bundle.ErrUnreadable},
		{"damaged", bytes.Replace(good, []byte("bootstrap"), []byte("bootstrip"), 1), nil}, // names are the directory's
		{"climbing", pack(t, entry{name: "../x"}), bundle.ErrEscapes},
		{"climbing inside", pack(t, entry{name: "a/../../x"}), bundle.ErrEscapes},
		{"absolute", pack(t, entry{name: "/etc/passwd"}), bundle.ErrEscapes},
		{"packed from a dot", pack(t, entry{name: "./", mode: fs.ModeDir | 0o755}, entry{name: "./a/", mode: fs.ModeDir | 0o755}, entry{name: "./a/x"}), nil},
		{"a dot", pack(t, entry{name: "."}), bundle.ErrEscapes},
		{"two dots", pack(t, entry{name: "././x"}), bundle.ErrEscapes},
		{"climbing behind a dot", pack(t, entry{name: "./../x"}), bundle.ErrEscapes},
		{"absolute behind a dot", pack(t, entry{name: ".//x"}), bundle.ErrEscapes},
		{"a zero byte", pack(t, entry{name: "a\x00b"}), bundle.ErrEscapes},
		{"a file as a directory", pack(t, entry{name: "a"}, entry{name: "a/b"}), bundle.ErrUnreadable},
		{"a pipe", pack(t, entry{name: "a", mode: fs.ModeNamedPipe | 0o644}), bundle.ErrUnreadable},
		{"a link", pack(t, entry{"a/bin/x", "../lib/x", symlink}, entry{name: "a/lib/x"}), nil},
		{"a link to the directory", pack(t, entry{"a/x", "..", symlink}), nil},
		{"a link out", pack(t, entry{"a", "../x", symlink}), bundle.ErrEscapes},
		{"an absolute link", pack(t, entry{"a", "/etc", symlink}), bundle.ErrEscapes},
		{"a link up behind a way down", pack(t, entry{"a/b/c/d", "e/../../f", symlink}), bundle.ErrEscapes},
		{"behind a link", pack(t, entry{"a", ".", symlink}, entry{name: "a/b"}), bundle.ErrEscapes},
		{"an empty link", pack(t, entry{"a", "", symlink}), bundle.ErrEscapes},
		{"a bomb of directories", pack(t, deep(60)...), bundle.ErrUnreadable},
		{"deep directories", pack(t, deep(5)...), nil},
		{"a bomb", bomb(t, bundle.MaxUnzipped+1, bundle.MaxUnzipped+1), bundle.ErrTooLarge},
		{"a bomb that lies", bomb(t, bundle.MaxUnzipped+1, 10), bundle.ErrUnreadable},
	} {
		if _, err := bundle.Check(tc.zip); !errors.Is(err, tc.want) || (tc.want == nil) != (err == nil) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
	}
}

// deep are n files, each in 2,000 directories of its own.
func deep(n int) (all []entry) {
	for i := range n {
		all = append(all, entry{name: fmt.Sprint(i) + strings.Repeat("/a", 2000)})
	}
	return all
}

// bomb is a zip of one file of zeros whose header gives another size.
func bomb(t *testing.T, size, declared int64) []byte {
	t.Helper()
	var packed bytes.Buffer
	d, err := flate.NewWriter(&packed, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(d, zeros{}, size); err != nil {
		t.Fatal(err)
	}
	d.Close()
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	h := &zip.FileHeader{Name: "zeros", Method: zip.Deflate, CompressedSize64: uint64(packed.Len()), UncompressedSize64: uint64(declared)}
	f, err := w.CreateRaw(h)
	if err != nil {
		t.Fatal(err)
	}
	f.Write(packed.Bytes())
	w.Close()
	return out.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// What Check lets pass is written within a directory, as one that unpacks without
// care would.
func FuzzCheck(f *testing.F) {
	const symlink = fs.ModeSymlink | 0o777
	f.Add(pack(f, entry{name: "bootstrap", content: "x"}))
	f.Add(pack(f, entry{"a/bin/x", "../lib/x", symlink}, entry{name: "a/lib/x"}))
	f.Add(pack(f, entry{"a", "..", symlink}, entry{name: "a/b"}))
	f.Add([]byte("PK"))
	f.Fuzz(func(t *testing.T, archive []byte) {
		if _, err := bundle.Check(archive); err != nil {
			return
		}
		r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
		if err != nil {
			t.Fatal(err)
		}
		root := t.TempDir()
		for _, file := range r.File {
			if file.UncompressedSize64 > 1<<20 {
				return
			}
			target := filepath.Join(root, file.Name)
			if rel, err := filepath.Rel(root, target); err != nil || !filepath.IsLocal(rel) {
				t.Fatalf("%q leads out", file.Name)
			}
			if file.Mode()&fs.ModeSymlink != 0 {
				content, err := file.Open()
				if err != nil {
					t.Fatal(err)
				}
				link, _ := io.ReadAll(content)
				if !filepath.IsLocal(filepath.Join(filepath.Dir(file.Name), string(link))) {
					t.Fatalf("%q links to %q", file.Name, link)
				}
				_ = os.Remove(target)
			}
		}
	})
}
