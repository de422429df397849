//go:build linux

package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// crashing has a command run in a directory, where it may leave a core dump as large as this
// process may have one.
func crashing(dir string, command *exec.Cmd) *exec.Cmd {
	c := exec.Command("sh", append([]string{"-c", `ulimit -c "$(ulimit -H -c)" && exec "$@"`, "sh"}, command.Args...)...)
	c.Dir, c.Env = dir, append(os.Environ(), "GOTRACEBACK=crash")
	return c
}

// coreLimit is the bound on core dumps of a process, in bytes.
func coreLimit(t *testing.T, pid int) string {
	t.Helper()
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^Max core file size +(\S+)`).FindSubmatch(limits)
	if found == nil {
		t.Fatalf("%s", limits)
	}
	return string(found[1])
}

// noCore reports that a bound on core dumps keeps the kernel from making one.
func noCore(limit string) bool { return limit == "0" || limit == "1" }

// cores are the files in a directory that a crash may have left.
func cores(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*core*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A server of production that crashes leaves no core dump, which would have its keys.
// One of development does, where the machine is set so.
func TestServeLeavesNoCore(t *testing.T) {
	p := initialise(t)
	crash := func(command *exec.Cmd, addr string) (limit string, left []string) {
		t.Helper()
		dir := t.TempDir()
		s := launch(t, addr, crashing(dir, command))
		s.awaitReady(t)
		limit = coreLimit(t, s.cmd.Process.Pid)
		if err := s.cmd.Process.Signal(syscall.SIGABRT); err != nil {
			t.Fatal(err)
		}
		s.exit(t)
		return limit, cores(t, dir)
	}
	addr := freeAddress(t)
	if limit, left := crash(exec.Command(binary, "serve", "--config", p.settings, "--listen", addr), addr); !noCore(limit) || len(left) != 0 {
		t.Errorf("production leaves %v, of up to %s bytes", left, limit)
	}
	addr = freeAddress(t)
	limit, left := crash(exec.Command(binary, arguments(addr, filepath.Join(t.TempDir(), "data"))...), addr)
	t.Logf("development leaves %v, of up to %s bytes", left, limit)
	var own syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &own); err != nil {
		t.Fatal(err)
	}
	if own.Max > 1 && noCore(limit) {
		t.Error("development leaves none, either: this test sees nothing")
	}
}
