package files_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"godwit.dev/godwit/internal/outlet"
	"godwit.dev/godwit/internal/outlet/files"
)

func open(t *testing.T, dir string) *files.Directory {
	t.Helper()
	d, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func write(text string) func(w io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// there are the files of a directory, by their names.
func there(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// An object is a file below its bucket, whatever its name.
func TestNames(t *testing.T) {
	outside := t.TempDir()
	dir := filepath.Join(outside, "inside")
	d := open(t, dir)
	long := strings.Repeat("l", 450)
	for key, want := range map[string]string{
		"a/b":                           "bucket/a/b",
		"../../x":                       "bucket/%2E%2E/%2E%2E/x",
		"/etc/./passwd":                 "bucket/%/etc/%2E/passwd",
		"c//d":                          "bucket/c/%/d",
		"e\x00f":                        "bucket/e%00f",
		"...":                           "bucket/%2E%2E%2E",
		"g/" + long:                     "bucket/g/" + long[:200] + "/" + long[:200] + "/" + long[:50],
		"year=2024/h.gz":                "bucket/year=2024/h.gz",
		"h/" + long[:200] + ".." + "/i": "bucket/h/" + long[:200] + "/%2E%2E/i",
	} {
		if err := d.Put(t.Context(), outlet.Name{Bucket: "bucket", Key: key, ID: "id"}, write(key)); err != nil {
			t.Errorf("%q: %v", key, err)
		}
		if got := there(t, dir)[want]; got != key {
			t.Errorf("%q is not at %s: %v", key, want, there(t, dir))
		}
	}
	if err := d.Put(t.Context(), outlet.Name{Bucket: "..", Key: "x", ID: "id"}, write("x")); err != nil {
		t.Error(err)
	}
	for name := range there(t, outside) {
		if !strings.HasPrefix(name, "inside/") {
			t.Errorf("%s is outside", name)
		}
	}
}

// A file is there whole or not at all, and another one of the same name in its place.
func TestWhole(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	name := outlet.Name{Bucket: "bucket", Key: "k", ID: "id"}
	for _, text := range []string{"first", "second"} {
		if err := d.Put(t.Context(), name, write(text)); err != nil {
			t.Fatal(err)
		}
	}
	broken := errors.New("broken")
	err := d.Put(t.Context(), name, func(w io.Writer) error {
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20))
		return broken
	})
	if _, ok := errors.AsType[*outlet.Error](err); !ok {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Put(ctx, name, write("third")); err == nil {
		t.Error("it was written after its time")
	}
	if got := there(t, dir); len(got) != 1 || got["bucket/k"] != "second" {
		t.Errorf("%v", got)
	}
}

// What a crash has left unfinished is removed, and what was finished is not.
func TestOpenAgain(t *testing.T) {
	dir := t.TempDir()
	if err := open(t, dir).Put(t.Context(), outlet.Name{Bucket: "b", Key: "k", ID: "id"}, write("x")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".partial", "other"), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if got := there(t, dir); len(got) != 1 || got["b/k"] != "x" {
		t.Errorf("%v", got)
	}
}
