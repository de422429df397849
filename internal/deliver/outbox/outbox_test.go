package outbox_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/deliver/outbox"
)

var began = time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)

// list is what a box has: when each came, and what it is.
func list(t *testing.T, b *outbox.Box) (items []string) {
	t.Helper()
	err := b.Each(func(name string, at time.Time, item []byte) bool {
		if again, err := b.Read(name); string(again) != string(item) || err != nil {
			t.Errorf("%s is %q, %v, and in the list %q", name, again, err, item)
		}
		items = append(items, fmt.Sprintf("%s %s", at.Sub(began), item))
		return true
	})
	if err != nil {
		t.Error(err)
	}
	return items
}

func expect(t *testing.T, b *outbox.Box, want ...string) {
	t.Helper()
	if got := list(t, b); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Items are listed the newest first, in memory and in a directory, where they outlive the
// process and nothing else is taken for one.
func TestBox(t *testing.T) {
	for _, dir := range []string{"", filepath.Join(t.TempDir(), "a", "b")} {
		t.Run(fmt.Sprint("directory ", dir != ""), func(t *testing.T) {
			now := clock.NewVirtual(began)
			b, err := outbox.Open(dir, ".eml", now)
			if err != nil {
				t.Fatal(err)
			}
			expect(t, b)
			for _, item := range []string{"one", "two"} {
				if err := b.Keep([]byte(item)); err != nil {
					t.Fatal(err)
				}
			}
			now.SetAtLeast(began.Add(time.Hour))
			if err := b.Keep([]byte("three")); err != nil {
				t.Fatal(err)
			}
			expect(t, b, "1h0m0s three", "0s two", "0s one")
			seen := 0
			if err := b.Each(func(string, time.Time, []byte) bool { seen++; return false }); err != nil || seen != 1 {
				t.Errorf("%d items were given, %v", seen, err)
			}
			for _, name := range []string{"", "x", "../secret", "20300101T120000.000000000-00000009"} {
				if _, err := b.Read(name); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%q: %v", name, err)
				}
			}
			if dir == "" {
				return
			}
			for _, name := range []string{"README", "20300101T120000.000000000-00000009.eml.part", "x.eml"} {
				if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			again, err := outbox.Open(dir, ".eml", now)
			if err != nil {
				t.Fatal(err)
			}
			if err := again.Keep([]byte("four")); err != nil {
				t.Fatal(err)
			}
			if got := list(t, again); len(got) != 4 {
				t.Errorf("after a restart: %q", got)
			}
			files, err := filepath.Glob(filepath.Join(dir, "*.eml"))
			if err != nil || len(files) != 5 {
				t.Errorf("%q, %v", files, err)
			}
			if err := os.Remove(files[1]); err != nil { // somebody tidies up
				t.Fatal(err)
			}
			if got := list(t, again); len(got) != 3 {
				t.Errorf("without one: %q", got)
			}
			for _, f := range files[2:3] {
				if info, err := os.Stat(f); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%v, %v", info, err)
				}
			}
		})
	}
}

// On a clock that stands still a restart begins to count again, and replaces nothing.
func TestSameMoment(t *testing.T) {
	dir := t.TempDir()
	for n := range 3 {
		b, err := outbox.Open(dir, ".eml", clock.NewVirtual(began))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Keep(fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
		if got := list(t, b); len(got) != n+1 {
			t.Errorf("%q", got)
		}
	}
}

// Beyond 10,000 items the oldest go.
func TestFull(t *testing.T) {
	now := clock.NewVirtual(began)
	b, err := outbox.Open("", ".eml", now)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 10_002 {
		if err := b.Keep(fmt.Append(nil, n)); err != nil {
			t.Fatal(err)
		}
	}
	if got := list(t, b); len(got) != 10_000 || got[0] != "0s 10001" || got[len(got)-1] != "0s 2" {
		t.Errorf("%d items, from %s to %s", len(got), got[len(got)-1], got[0])
	}
}

// A box whose directory cannot be written says so, and has nothing of what failed.
func TestUnwritable(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := outbox.Open(filepath.Join(file, "x"), ".eml", clock.NewVirtual(began)); err == nil {
		t.Error("a file is opened as a directory")
	}
	gone := filepath.Join(dir, "gone")
	b, err := outbox.Open(gone, ".eml", clock.NewVirtual(began))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	if err := b.Keep([]byte("x")); err == nil {
		t.Error("what was not written is kept")
	}
	expect(t, b)
}

// TestBytes: what is in memory is bounded by bytes, too.
func TestBytes(t *testing.T) {
	b, err := outbox.Open("", ".eml", clock.NewVirtual(began))
	if err != nil {
		t.Fatal(err)
	}
	item := make([]byte, 50<<20) // the same each time
	for range 5 {
		if err := b.Keep(item); err != nil {
			t.Fatal(err)
		}
	}
	kept := 0
	if err := b.Each(func(string, time.Time, []byte) bool { kept++; return true }); err != nil || kept != 2 {
		t.Errorf("%d of 50 MiB each are kept, %v", kept, err)
	}
}
