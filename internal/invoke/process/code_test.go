package process

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/bundle"
)

// file is an entry of a zip.
type file struct {
	name, text string
	mode       fs.FileMode // 0: the archive does not tell
}

func pack(t testing.TB, files ...file) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name}
		if f.mode != 0 {
			h.SetMode(f.mode)
		}
		out, err := w.CreateHeader(h)
		if err == nil {
			_, err = out.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestUnpack(t *testing.T) {
	dir := t.TempDir()
	_, err := unpack(t.Context(), pack(
		t, file{name: "bootstrap", text: "b"}, file{name: "lib/a", text: "a", mode: 0o600}, file{name: "./lib/x", text: "x", mode: 0o700},
		file{name: "deep/er/"}, file{name: "link", text: "lib/a", mode: fs.ModeSymlink | 0o777}, file{name: "setuid", text: "s", mode: fs.ModeSetuid | 0o755},
	), dir, bundle.MaxUnzipped, false)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"bootstrap": 0o755, "lib/a": 0o644, "lib/x": 0o755, "deep/er": fs.ModeDir | 0o755, "setuid": 0o755} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "link")); err != nil || string(text) != "a" {
		t.Errorf("link: %q %v", text, err)
	}
}

// No entry leads out of its directory, whatever the archive says.
func TestUnpackStaysInside(t *testing.T) {
	for name, files := range map[string][]file{
		"above":          {{name: "../out", text: "x"}},
		"absolute":       {{name: "/tmp/l2-out", text: "x"}},
		"through a link": {{name: "l", text: "..", mode: fs.ModeSymlink | 0o777}, {name: "l/out", text: "x"}},
		"over a link":    {{name: "l", text: "../out", mode: fs.ModeSymlink | 0o777}, {name: "l", text: "x"}},
		"file as a dir":  {{name: "f", text: "x"}, {name: "f/g", text: "x"}},
	} {
		outer := t.TempDir()
		dir := filepath.Join(outer, "in")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, err := unpack(t.Context(), pack(t, files...), dir, bundle.MaxUnzipped, false); fault.KindOf(err) != fault.InvalidZipFile {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(outer); len(left) != 1 {
			t.Errorf("%s: something is outside", name)
		}
	}
	if _, err := unpack(t.Context(), []byte("no zip"), t.TempDir(), bundle.MaxUnzipped, false); fault.KindOf(err) != fault.InvalidZipFile {
		t.Errorf("no zip: %v", err)
	}
}

// Nothing of a layer is written through a link of an earlier one: from there, its own links could lead out.
func TestNothingThroughLinks(t *testing.T) {
	dir := t.TempDir()
	link := func(name, to string) file { return file{name: name, text: to, mode: fs.ModeSymlink | 0o777} }
	for i, zip := range [][]byte{
		pack(t, file{name: "q/kept", text: "x"}, link("a/b/p", "../../q"), link("over", "q"), file{name: "file", text: "x"}),
		pack(t, link("a/b/p/l", "../../../x"), file{name: "over", text: "y"}, link("file", "over"), file{name: "q/more", text: "z"}),
	} {
		if _, err := unpack(t.Context(), zip, dir, bundle.MaxUnzipped, i > 0); err != nil {
			t.Fatal(err)
		}
	}
	var left []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(dir, path)
			to, _ := os.Readlink(path)
			left = append(left, name+" "+to)
		}
		return err
	})
	if want := []string{"a/b/p/l ../../../x", "file over", "over ", "q/kept ", "q/more "}; err != nil || !slices.Equal(left, want) {
		t.Errorf("%q, %v, want %q", left, err, want)
	}
}

func TestCodeCache(t *testing.T) {
	dir := t.TempDir()
	reads := 0
	var broken error
	c := newCodeCache(dir, &Options{Code: func(context.Context, function.Target) ([]byte, error) {
		reads++
		return pack(t, file{name: "bootstrap", text: "x"}), broken
	}})
	get := func(i int) *code {
		t.Helper()
		k, err := c.acquire(t.Context(), &function.Target{Code: function.Code{SHA256: sha256.Sum256(fmt.Append(nil, i))}})
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	held := get(0)
	get(0).release()
	if reads != 1 {
		t.Errorf("%d reads", reads)
	}
	for i := range 2 * keptCode {
		get(i + 1).release()
	}
	if _, err := os.Stat(filepath.Join(held.dir, "bootstrap")); err != nil {
		t.Errorf("what is used is gone: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != keptCode+1 {
		t.Errorf("%d directories", len(left))
	}
	before := reads
	get(2 * keptCode).release()
	if get(1).release(); reads != before+1 {
		t.Errorf("%d reads for one that is kept and one that is not", reads-before)
	}
	// What fails is tried again.
	broken = errors.New("not now")
	if _, err := c.acquire(t.Context(), &function.Target{}); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	broken = nil
	if k, err := c.acquire(t.Context(), &function.Target{}); err != nil {
		t.Errorf("%v", err)
	} else {
		k.release()
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "part-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Code is unpacked until nobody waits for it any more, and then by the next who does.
func TestUnpackingEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := newCodeCache(t.TempDir(), &Options{Code: func(context.Context, function.Target) ([]byte, error) {
		cancel()
		return pack(t, file{name: "bootstrap", text: "x"}), nil
	}})
	if _, err := c.acquire(ctx, &function.Target{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	k, err := c.acquire(t.Context(), &function.Target{})
	if err != nil {
		t.Fatal(err)
	}
	k.release()
}

// What a deep file of a layer costs does not grow with the square of its depth.
func TestUnpackingDeepLayers(t *testing.T) {
	deep := strings.Repeat("a/", 1000)
	var files []file
	for i := range 5 {
		files = append(files, file{name: deep + strconv.Itoa(i), text: "x"})
	}
	archive, times := pack(t, files...), [2]time.Duration{}
	for i, over := range []bool{false, true} {
		dir := t.TempDir()
		if _, err := unpack(t.Context(), archive, dir, bundle.MaxUnzipped, false); err != nil {
			t.Fatal(err)
		}
		began := clock.System.Now()
		if _, err := unpack(t.Context(), archive, dir, bundle.MaxUnzipped, over); err != nil {
			t.Fatal(err)
		}
		times[i] = clock.System.Now().Sub(began)
	}
	if times[1] > 20*times[0] {
		t.Errorf("over another layer it takes %s, alone %s", times[1], times[0])
	}
}
