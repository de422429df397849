//go:build linux

package e2e_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
)

// crashing has a command run in a directory, where it may leave a core dump of any size.
func crashing(dir string, command *exec.Cmd) *exec.Cmd {
	c := exec.Command("sh", append([]string{"-c", `ulimit -c unlimited && exec "$@"`, "sh"}, command.Args...)...)
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

// dumpsByFile reports that the kernel writes core dumps beside what has crashed.
func dumpsByFile(t *testing.T) bool {
	t.Helper()
	pattern, err := os.ReadFile("/proc/sys/kernel/core_pattern")
	return err == nil && !bytes.HasPrefix(pattern, []byte("|")) && !bytes.Contains(pattern, []byte("/"))
}

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
// One of development does, where the machine is set so: what is tested can be seen.
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
	if limit, left := crash(exec.Command(binary, "serve", "--config", p.settings, "--listen", addr), addr); limit != "1" || len(left) != 0 {
		t.Errorf("production leaves %v, of up to %s bytes", left, limit)
	}
	addr = freeAddress(t)
	limit, left := crash(exec.Command(binary, arguments(addr, filepath.Join(t.TempDir(), "data"))...), addr)
	if limit != "unlimited" || dumpsByFile(t) && len(left) != 1 {
		t.Errorf("development leaves %v, of up to %s bytes: this test sees nothing", left, limit)
	}
}
