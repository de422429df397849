package clients_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rhysd/actionlint"
)

const containersExample = "../../examples/containers"

// TestWorkflow: the example of a workflow is one that GitHub takes.
func TestWorkflow(t *testing.T) {
	t.Parallel()
	linter, err := actionlint.NewLinter(t.Output(), &actionlint.LinterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := linter.LintFile(filepath.Join(containersExample, "github-actions.yml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) > 0 {
		t.Errorf("%d faults", len(found))
	}
}

// TestContainers runs the examples of tests in containers.
func TestContainers(t *testing.T) {
	t.Parallel()
	installed(t)
	const client = "testcontainers"
	engine := exec.CommandContext(t.Context(), "docker", "info")
	if os.Getenv("DOCKER_HOST") == "" && engine.Run() != nil {
		skips.skip(t, client, "there is no Docker, and DOCKER_HOST names nothing that stands in for it")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	program := filepath.Join(t.TempDir(), "godwit")
	run := func(dir string, command ...string) string {
		t.Helper()
		cmd := exec.CommandContext(ctx, command[0], command[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GODWIT_LINUX_BINARY="+program)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
		return string(out)
	}
	run("../..", "go", "build", "-trimpath", "-o", program, "./cmd/godwit")
	if out := run(containersExample, "go", "test", "-count=1", "-v", "."); strings.Contains(out, "--- SKIP") {
		t.Errorf("the test in Go was skipped:\n%s", out)
	}
	if _, err := exec.LookPath("npm"); err != nil {
		skips.skip(t, client+" for node", "npm is not installed")
	}
	// What npm installs is not left in the checkout.
	checkout := t.TempDir()
	for _, dir := range []string{"testcontainers/node", "examples/containers/node"} {
		if err := os.CopyFS(filepath.Join(checkout, dir), os.DirFS(filepath.Join("../..", dir))); err != nil {
			t.Fatal(err)
		}
		run(filepath.Join(checkout, dir), "npm", "ci", "--no-audit", "--no-fund")
	}
	run(filepath.Join(checkout, "examples/containers/node"), "npm", "test")
}
