//go:build linux

package e2e_test

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"godwit.dev/godwit/test/programs"
)

// TestSyncsAreReal sends 500 messages one after the other, and counts the calls
// in between by which the server has the disk keep what it wrote.
func TestSyncsAreReal(t *testing.T) {
	const sends = 500
	programs.Need(t, "strace")
	addr, dir := freeAddress(t), t.TempDir()
	trace := filepath.Join(dir, "trace")
	args := append([]string{"-f", "-ttt", "-e", "trace=fsync,fdatasync,sync_file_range", "-o", trace, binary},
		arguments(addr, filepath.Join(dir, "data"))...)
	p := launch(t, addr, exec.Command("strace", args...))
	t.Cleanup(func() { // before strace itself, whose end it would outlive
		if pid, err := child(p.cmd.Process.Pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	if !traceable(t, p) {
		programs.Skip(t, "strace may not trace here: "+p.stderr.String())
	}
	p.awaitReady(t)
	queue := p.createQueue(t, "synced")

	began := time.Now()
	for range sends {
		p.mustSQS(t, "SendMessage", object{"QueueUrl": queue, "MessageBody": "hi"}, nil)
	}
	ended := time.Now()
	if err := syscall.Kill(traced(t, p), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if status := p.exit(t); status != 0 {
		t.Errorf("the server ended with status %d\n%s", status, p.stderr.String())
	}

	calls := syncs(t, trace, began, ended)
	t.Logf("%d sends in %s: %v", sends, ended.Sub(began).Round(time.Millisecond), calls)
	if n := calls["fsync"] + calls["fdatasync"]; n < sends {
		t.Errorf("%d calls of fsync and fdatasync for %d sends", n, sends)
	}
}

// syncCall is a line of strace's: process id, time, call. A call that another
// thread's interrupts is in two lines, of which only the first has its "(".
var syncCall = regexp.MustCompile(`^\d+\s+(\d+\.\d+) (\w+)\(`)

// syncs counts the calls in a trace that began between two moments, by name.
func syncs(t *testing.T, trace string, from, to time.Time) map[string]int {
	t.Helper()
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	calls := map[string]int{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		m := syncCall.FindStringSubmatch(lines.Text())
		if m == nil {
			continue
		}
		at, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		if seconds := float64(from.UnixNano()) / 1e9; at >= seconds && at <= float64(to.UnixNano())/1e9 {
			calls[m[2]]++
		}
	}
	return calls
}

// traceable reports whether strace runs the server: some containers forbid it.
func traceable(t *testing.T, p *process) (ok bool) {
	t.Helper()
	eventually(t, "strace runs the server, or ends", func() (bool, error) {
		select {
		case <-p.ended:
			return true, nil
		default:
		}
		_, err := child(p.cmd.Process.Pid)
		ok = err == nil
		return ok, err
	})
	return ok
}

func traced(t *testing.T, p *process) int {
	t.Helper()
	pid, err := child(p.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// child is the id of a process's child.
func child(pid int) (int, error) {
	id := strconv.Itoa(pid)
	children, err := os.ReadFile(filepath.Join("/proc", id, "task", id, "children"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(children)), " ")
	return strconv.Atoi(first)
}
