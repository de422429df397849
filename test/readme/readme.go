// Package readme runs the commands of documents in a shell, as a reader would paste them.
//
// runs.json says which test runs which of them, and why the others are run by none. A test
// takes its own from there, so that the table is true, but for those of other modules (test/clients,
// test/deployed), which find theirs by themselves; TestEachBlockIsRun holds that it is whole.
package readme

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// before stands before all that is run. The first command that fails ends it, and what runs with
// it; curl fails where a server refuses. A server goes on in the background until the next one.
const before = `set -eo pipefail
trap 'kill -9 $(jobs -p) 2>/dev/null || true' EXIT
curl() { command curl --silent --show-error --fail "$@"; }
ready() {
  (exec 3<>/dev/tcp/${ADDRESS%:*}/${ADDRESS##*:} && printf 'GET /_godwit/ready HTTP/1.0\r\n\r\n' >&3 && grep -qE '^HTTP/1.. 200|HTTPS server' <&3) 2>/dev/null
}
served=
serve() {
  if [ "$served" ]; then kill $served; wait $served || true; fi
  "$@" 3>&- &
  served=$!
  until ready; do kill -0 $served; sleep 0.05; done
}
`

var (
	// server is a command that serves until it is interrupted, in one line.
	server    = regexp.MustCompile(`(?m)^godwit( dev| serve)?( --[^&>|\n]*)?$`)
	continued = regexp.MustCompile(`\\\n *`)
	// builds is a command that compiles packages.
	builds = regexp.MustCompile(`(?m)^(CGO_ENABLED=0 )?go build -o \S+ (.+)$`)
)

// endOfBlock is printed behind each block.
const endOfBlock = "--end-of-block--"

// Shell is where commands are run.
type Shell struct {
	Dir     string            // the directory
	Address string            // in place of the server's usual one
	Within  time.Duration     // the time that all of it may take, beside compiling
	Replace *strings.Replacer // what else is in another place here; nil: nothing
	Env     []string          // more of the environment
}

// Run runs blocks one after the other, and gives what they print, each of them what is shown of
// it. AWS's settings of the environment are not passed on.
func (s Shell) Run(t *testing.T, blocks []Block) string {
	t.Helper()
	script := before
	for _, block := range blocks {
		text := server.ReplaceAllString(continued.ReplaceAllString(block.Text, ""), "serve $0")
		script += text + "printf '\\n" + endOfBlock + "\\n'\n"
	}
	if s.Replace != nil {
		script = s.Replace.Replace(script)
	}
	script = strings.ReplaceAll(script, "127.0.0.1:4566", s.Address)
	s.compile(t, script)
	ctx, cancel := context.WithTimeout(t.Context(), s.Within)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = s.Dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AWS_") }),
		"TMPDIR="+t.TempDir(), "ADDRESS="+s.Address, "GODWIT_LISTEN="+s.Address)
	cmd.Env = append(cmd.Env, s.Env...)
	// Into files, which what goes on in the background does not keep open, as it does pipes.
	out, complaints := printed(t), printed(t)
	cmd.Stdout, cmd.Stderr = out, complaints
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err := cmd.Start()
	if err == nil {
		err = cmd.Wait()
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if nothing goes on
	}
	text := content(t, out)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, text, content(t, complaints))
	}
	parts := strings.Split(text, "\n"+endOfBlock+"\n")
	for i, block := range blocks {
		if !block.Prints(parts[i]) {
			t.Errorf("%s shows\n%s\nand\n%s\nprints\n%s", block.Document, block.Shown, block.Text, parts[i])
		}
	}
	return strings.Join(parts, "\n")
}

// compile builds what a script builds, which then takes it from the compiler's cache: on a busy machine
// whose cache is empty the server alone takes minutes.
func (s Shell) compile(t *testing.T, script string) {
	t.Helper()
	for _, build := range builds.FindAllStringSubmatch(script, -1) {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", build[1]+"go build -o "+t.TempDir()+" "+build[2])
		cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), s.Env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", build[0], err, out)
		}
	}
}

// printed is a file for what is printed.
func printed(t *testing.T) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "printed"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() }) // it was read by its name
	return f
}

func content(t *testing.T, f *os.File) string {
	t.Helper()
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Run runs blocks in dir, with address in place of the server's usual one: Shell has the rest.
func Run(t *testing.T, blocks []Block, dir, address string, within time.Duration) string {
	t.Helper()
	return Shell{Dir: dir, Address: address, Within: within}.Run(t, blocks)
}
