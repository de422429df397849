package oncall_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"godwit.dev/godwit/test/programs"
)

// TestReadme runs the commands of README.md as they stand, but for the server's address,
// and checks that they print what stands in it.
func TestReadme(t *testing.T) {
	programs.Need(t, "bash", "aws", "curl", "jq")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	// The first command that fails ends it, and what runs with it.
	script := "set -eo pipefail\ntrap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n"
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	script = strings.ReplaceAll(script, "127.0.0.1:4566", freeAddress(t))
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience) // dozens of times the CLI starts
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.WaitDelay = "../..", time.Second
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") }), "TMPDIR="+t.TempDir())
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), complaints.String())
	}
	for _, block := range regexp.MustCompile("(?s)```text\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(out.String(), block[1]) {
			t.Errorf("the commands do not print\n%sbut\n%s", block[1], out.String())
		}
	}
}
