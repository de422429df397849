// Package deployed_test holds what is in deploy against those who read it: Kubernetes' own types,
// Helm, Compose, and containers that run.
package deployed_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// binary is the server under test: as it is in an image, with nothing beside it.
var binary string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "godwit-deployed-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "godwit")
	build := exec.Command("go", "build", "-o", binary, "./cmd/godwit")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "go build: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// skip skips the test for lack of something, and has make test-all name it.
func skip(t *testing.T, why string) {
	t.Helper()
	if name := os.Getenv("GODWIT_SKIPPED"); name != "" {
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, "%s: %s\n", t.Name(), why)
		}
		if err != nil || f.Close() != nil {
			t.Fatal(err)
		}
	}
	t.Skip(why)
}

// need skips the test unless these programs may be used and are all installed.
func need(t *testing.T, names ...string) {
	t.Helper()
	if os.Getenv("GODWIT_PROGRAMS") == "" {
		t.Skip("needs installed programs: make test-all, or GODWIT_PROGRAMS=1")
	}
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			skip(t, name+" is not installed")
		}
	}
}
