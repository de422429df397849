// Package deployed_test holds what is in deploy against those who read it: Kubernetes' own types,
// Helm, Compose, and containers that run.
package deployed_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// binary is the server under test, and scratch a directory that goes after the tests.
var binary, scratch string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	http.DefaultClient.Timeout = 5 * time.Minute // what is never answered fails its own test
	var err error
	if scratch, err = os.MkdirTemp("", "godwit-deployed-"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(scratch)
	if binary = os.Getenv("GODWIT_BINARY"); binary == "" {
		binary = filepath.Join(scratch, "godwit")
		if err := build(binary); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// alone is the server as it is in an image, where there is nothing beside it.
var alone = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "alone")
	return path, build(path, "CGO_ENABLED=0")
})

func build(path string, env ...string) error {
	cmd := exec.Command("go", "build", "-o", path, "./cmd/godwit")
	cmd.Dir, cmd.Env = filepath.Join("..", ".."), append(os.Environ(), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
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
