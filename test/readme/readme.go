// Package readme runs the commands of a document in a shell, as a reader would paste them.
package readme

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
)

var shell = regexp.MustCompile("(?s)```sh\n(.*?)```")

// Run runs the blocks of sh in text one after the other, in dir, with address in place of the
// server's usual one, and gives what they print. The first command that fails ends the test,
// and so does the end of the time. AWS's settings of the environment are not passed on.
func Run(t *testing.T, text, dir, address string, within time.Duration) string {
	t.Helper()
	// The first command that fails ends it, and what runs with it.
	script := "set -eo pipefail\ntrap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT\n"
	for _, block := range shell.FindAllStringSubmatch(text, -1) {
		script += block[1]
	}
	script = strings.ReplaceAll(script, "127.0.0.1:4566", address)
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") }), "TMPDIR="+t.TempDir())
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out.String(), complaints.String())
	}
	return out.String()
}
