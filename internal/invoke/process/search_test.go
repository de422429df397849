//go:build unix

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// Neither who searches for an interpreter that does not answer, nor who waits for another's search,
// does so for longer than it is wanted.
func TestSearchEnds(t *testing.T) {
	dir := t.TempDir()
	begun, never := filepath.Join(dir, "begun"), filepath.Join(dir, "never")
	for _, name := range []string{begun, never} {
		if err := unix.Mkfifo(name, 0o600); err != nil {
			t.Skip(err)
		}
	}
	defer func() { // for what the script has started
		if f, err := os.OpenFile(never, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
			f.Close()
		}
	}()
	script := "#!/bin/sh\necho x > '" + begun + "'\ncat '" + never + "'\n" // which holds the output beyond the shell's end
	if err := os.WriteFile(filepath.Join(dir, "node"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Installed(ctx, "nodejs0.x") }()
	if _, err := os.ReadFile(begun); err != nil {
		t.Fatal(err)
	}
	other, gone := context.WithCancel(t.Context())
	gone()
	if err := Installed(other, "nodejs0.x"); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits for another's search: %v", err)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("who searches: %v", err)
	}
}
