//go:build linux

package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// parentVariable makes the test binary a parent that waits to be killed.
const parentVariable = "GODWIT_SANDBOX_PARENT"

func TestMain(m *testing.M) {
	prisoner()
	if script := os.Getenv(parentVariable); script != "" {
		spec := script2spec(script, os.Getenv(parentVariable+"_ROOT"))
		if _, err := Start(spec, os.Stdout); err != nil {
			panic(err)
		}
		select {}
	}
	os.Exit(m.Run())
}

// script2spec describes a shell that runs a script, isolated if it has a root.
func script2spec(script, root string) Spec {
	spec := Spec{
		Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/",
		Isolate: root != "", Root: root,
	}
	if spec.Isolate && os.Geteuid() == 0 {
		spec.User = testUser
	}
	return spec
}

// testUser is who isolated programs run as if the tests run as root.
const testUser = 1879050000

// each runs a test in both kinds of sandboxes.
func each(t *testing.T, test func(t *testing.T, root string)) {
	t.Run("plain", func(t *testing.T) { test(t, "") })
	t.Run("isolated", func(t *testing.T) {
		root := t.TempDir()
		if exit, output := runScript(t, script2spec("true", root)); exit.Err != nil {
			t.Skipf("this machine has no namespaces for us: %v %s", exit.Err, output)
		}
		test(t, root)
	})
}

// begin starts a sandbox and returns what it prints.
func begin(t *testing.T, spec Spec) (*Process, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p, err := Start(spec, w)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		<-p.Done()
		_ = r.Close()
	})
	return p, r
}

func runScript(t *testing.T, spec Spec) (Exit, string) {
	t.Helper()
	p, r := begin(t, spec)
	output, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	return p.Exit(), string(output)
}

func TestExit(t *testing.T) {
	each(t, func(t *testing.T, root string) {
		for script, want := range map[string]string{
			"exit 0": "exit status 0", "exit 127": "exit status 127", "kill -9 $$": "signal: killed", "kill -ABRT $$": "signal: aborted",
		} {
			if exit, _ := runScript(t, script2spec(script, root)); exit.String() != want {
				t.Errorf("%s: %s, want %s", script, exit, want)
			}
		}
		spec := script2spec("", root)
		spec.Args = []string{"/nothing/here"}
		if exit, _ := runScript(t, spec); !exit.NotExecutable || exit.String() != "fork/exec /nothing/here: no such file or directory" {
			t.Errorf("a program that is not there: %+v", exit)
		}
	})
}

// leak starts processes that leave their group, their session and their parent.
// It prints once they run. mark is in their command lines.
func leak(mark string) string {
	return fmt.Sprintf(`(setsid sh -c 'sleep %[1]s & sleep %[1]s & wait' &) ; sleep %[1]s & setsid sleep %[1]s & echo ready; wait`, mark)
}

// marked are the processes with mark in their command lines.
func marked(t *testing.T, mark string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, _ := os.ReadFile(file) // it may have ended
		if bytes.Contains(line, []byte(mark)) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			pids = append(pids, pid)
		}
	}
	return pids
}

func mark() string { return fmt.Sprintf("7%d.%d", os.Getpid(), time.Now().UnixNano()%1e9) } //nolint:forbidigo // unique, and not about time

func TestKillLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, root string) {
		m := mark()
		p, r := begin(t, script2spec(leak(m), root))
		if _, err := io.ReadFull(r, make([]byte, len("ready"))); err != nil {
			t.Fatal(err)
		}
		if len(marked(t, m)) < 3 {
			t.Fatalf("%d processes to end", len(marked(t, m)))
		}
		p.Kill()
		<-p.Done()
		if left := marked(t, m); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

func TestProgramEndLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, root string) {
		m := mark()
		exit, _ := runScript(t, script2spec(strings.TrimSuffix(leak(m), "wait")+"exit 3", root))
		if exit.Code != 3 {
			t.Errorf("exit: %s", exit)
		}
		if left := marked(t, m); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	})
}

// The parent is killed with signal 9, which it cannot answer.
func TestParentsDeathLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, root string) {
		m := mark()
		parent := exec.CommandContext(t.Context(), "/proc/self/exe")
		parent.Env = append(os.Environ(), parentVariable+"="+leak(m), parentVariable+"_ROOT="+root)
		out, err := parent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("ready"))); err != nil {
			t.Fatal(err)
		}
		if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, out) // until nobody holds the other end
		_ = parent.Wait()
		eventually(t, func() bool { return len(marked(t, m)) == 0 }, "processes are left")
	})
}

// eventually waits for what the kernel does in its own time.
func eventually(t *testing.T, done func() bool, what string) {
	t.Helper()
	for range 1000 {
		if done() {
			return
		}
		_ = syscall.Nanosleep(&syscall.Timespec{Nsec: 5e6}, nil)
	}
	t.Fatal(what)
}

func TestTerminateReachesTheProgram(t *testing.T) {
	each(t, func(t *testing.T, root string) {
		p, r := begin(t, script2spec(`trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done`, root))
		if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
		p.Terminate()
		rest, _ := io.ReadAll(r)
		<-p.Done()
		if string(rest) != "bye\n" || p.Exit().Code != 4 {
			t.Errorf("%q, %s", rest, p.Exit())
		}
	})
}

func TestIsolation(t *testing.T) {
	root := t.TempDir()
	if exit, _ := runScript(t, script2spec("true", root)); exit.Err != nil {
		t.Skip("this machine has no namespaces for us: ", exit.Err)
	}
	secret, tmp, task := t.TempDir(), t.TempDir(), t.TempDir()
	if err := os.WriteFile(secret+"/secret", []byte("secret"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(tmp, 0o777); err != nil {
		t.Fatal(err)
	}
	spec := script2spec(`id -u; ls `+secret+` /root /home 2>/dev/null; echo x >/mnt/y && cat /mnt/y
		(echo no >/var/task/z) 2>/dev/null || echo task is read-only
		(echo no >/z) 2>/dev/null || echo root is read-only`, root)
	spec.Binds = []Bind{{Source: tmp, Target: "/mnt", Writable: true}, {Source: task, Target: "/var/task"}}
	user := "0"
	if os.Geteuid() == 0 {
		user = strconv.Itoa(testUser)
	}
	exit, output := runScript(t, spec)
	want := user + "\nx\ntask is read-only\nroot is read-only\n"
	if exit.Code != 0 || output != want {
		t.Errorf("%s %q, want %q", exit, output, want)
	}
	if got, err := os.ReadFile(tmp + "/y"); err != nil || string(got) != "x\n" {
		t.Errorf("/mnt outside: %q %v", got, err)
	}
}

// When the machine is out of memory, programs end before the server does.
func TestProgramsYieldMemory(t *testing.T) {
	each(t, func(t *testing.T, root string) {
		exit, output := runScript(t, script2spec("cat /proc/self/oom_score_adj", root))
		if exit.Err != nil || output != "1000\n" {
			t.Errorf("it is ended in the order %q (%s), want 1000: first", output, exit)
		}
	})
}

// No core is dumped of what has a role's credentials, also not into a pipe: for that the
// kernel takes a limit of 0 bytes for none.
func TestNoCoreDumps(t *testing.T) {
	each(t, func(t *testing.T, root string) {
		exit, output := runScript(t, script2spec("cat /proc/self/limits", root))
		if !regexp.MustCompile(`Max core file size +1 +1 `).MatchString(output) {
			t.Errorf("%v\n%s", exit, output)
		}
	})
}
