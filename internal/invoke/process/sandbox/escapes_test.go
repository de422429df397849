//go:build linux

package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"godwit.dev/godwit/test/soak"
)

// What the test binary is when it runs in a sandbox.
const (
	breakOutVariable = "GODWIT_SANDBOX_BREAK_OUT" // a victim
	randomVariable   = "GODWIT_SANDBOX_RANDOM"    // a seed
)

// prisoner runs what a test binary is in a sandbox, if it is in one.
func prisoner() {
	if text := os.Getenv(breakOutVariable); text != "" {
		var v victim
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			panic(err)
		}
		breakOut(v, os.Stdout)
		os.Exit(0)
	}
	if text := os.Getenv(randomVariable); text != "" {
		var seed uint64
		_, _ = fmt.Sscan(text, &seed)
		randomCalls(seed)
		os.Exit(0)
	}
}

// cell is a sandbox with a victim around it.
type cell struct {
	spec   Spec
	victim victim
	code   string
}

func newCell(t *testing.T) cell {
	t.Helper()
	dir := t.TempDir()
	c := cell{spec: script2spec("", dir+"/root"), code: dir + "/code/bootstrap"}
	c.victim = victim{Outer: dir + "/outer", Hidden: dir + "/outer/hidden", TmpMB: 3, User: c.spec.User}
	for _, d := range []string{"/root", "/outer/hidden", "/code"} {
		if err := os.MkdirAll(dir+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{c.code: string(program), c.victim.Hidden + "/secret": secret, c.victim.Outer + "/file": "file"} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	c.spec.Args, c.spec.Tmp = []string{"/var/task/bootstrap"}, &Tmp{MB: c.victim.TmpMB}
	t.Cleanup(c.spec.Tmp.Close)
	c.spec.Binds = []Bind{{Source: dir + "/outer", Target: dir + "/outer"}, {Source: dir + "/code", Target: "/var/task"}}
	c.spec.Hide = []string{c.victim.Hidden}
	probe := script2spec("true", dir+"/root")
	if exit, output := runScript(t, probe); exit.Err != nil {
		t.Skipf("this machine has no namespaces for us: %v %s", exit.Err, output)
	}
	return c
}

// unharmed looks at what the program was not to change.
func (c cell) unharmed(t *testing.T) {
	t.Helper()
	if text, err := os.ReadFile(c.code); err != nil || len(text) < 1000 {
		t.Errorf("the code was changed: %d bytes, %v", len(text), err)
	}
	for path, want := range map[string]string{c.victim.Hidden + "/secret": secret, c.victim.Outer + "/file": "file"} {
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Errorf("%s was changed: %q, %v", path, text, err)
		}
	}
}

// Each way out that is known fails, under root.
func TestEscapes(t *testing.T) {
	c := newCell(t)
	// What whoever started the server left open.
	leak, err := os.Open(c.victim.Hidden + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	defer leak.Close()
	fd, err := unix.FcntlInt(leak.Fd(), unix.F_DUPFD, 9)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	text, err := json.Marshal(c.victim)
	if err != nil {
		t.Fatal(err)
	}
	c.spec.Env = []string{breakOutVariable + "=" + string(text), "PATH=/usr/bin:/bin", "GODWIT_SOAK=" + os.Getenv("GODWIT_SOAK")}
	exit, output := runScript(t, c.spec)
	if exit.Code != 0 || exit.Err != nil || output != "through\n" {
		t.Errorf("%s\n%s", exit, output)
	}
	c.unharmed(t)
}

// The same under another user, in namespaces that it makes for itself.
func TestEscapesOfAnotherUser(t *testing.T) {
	asNobody(t, "^TestEscapes$|^TestRandomCalls$|^TestTmp|^TestHide")
}

// asNobody runs tests of this binary as a user without rights.
func asNobody(t *testing.T, tests string) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to become another user; as this one the other tests run anyway")
	}
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(dir+"/test", program, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	const nobody = 65534
	cmd := exec.CommandContext(t.Context(), dir+"/test", "-test.v", "-test.run="+tests)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "no namespaces for us") {
			t.Skip(strings.TrimSpace(line))
		}
	}
}

// Random system calls harm nothing, and end with their sandbox.
func TestRandomCalls(t *testing.T) {
	c := newCell(t)
	soak.Campaign(t, 3, func(t *testing.T, seed uint64) {
		c.spec.Env = []string{fmt.Sprintf("%s=%d", randomVariable, seed)}
		p, r := begin(t, c.spec)
		go io.Copy(io.Discard, r)
		go func() { // some calls wait without an end
			_ = syscall.Nanosleep(&syscall.Timespec{Nsec: 5e8}, nil)
			p.Kill()
		}()
		<-p.Done()
		if exit := p.Exit(); exit.Err != nil && !exit.NotExecutable {
			t.Fatal(exit)
		}
		c.unharmed(t)
	})
}

// randomCalls makes system calls with arguments that often mean something.
func randomCalls(seed uint64) {
	random := soak.Rand(seed, 0)
	var strings [][]byte
	for _, s := range []string{"/", "/tmp", "/tmp/x", "/var/task", "/var/task/bootstrap", "/proc/1/root", "/proc/self/exe", "/proc/self/ns/user", "tmpfs", "proc", "/dev/null"} {
		strings = append(strings, append([]byte(s), 0))
	}
	buffer := make([]byte, 1<<16)
	argument := func() uintptr {
		switch random.IntN(6) {
		case 0:
			return uintptr(unsafe.Pointer(&strings[random.IntN(len(strings))][0]))
		case 1:
			return uintptr(unsafe.Pointer(&buffer[random.IntN(1<<15)]))
		case 2:
			return uintptr(1) << random.IntN(40)
		case 3:
			return ^uintptr(random.IntN(102)) // -1, AT_FDCWD, …
		default:
			return uintptr(random.IntN(32))
		}
	}
	for range 3000 {
		for i := range 64 {
			buffer[random.IntN(1<<15)+i] = byte(random.Uint32())
		}
		number := uintptr(random.IntN(lastCall + 8))
		if random.IntN(4) == 0 {
			number = uintptr(refused[random.IntN(len(refused))])
		}
		switch number {
		case unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_SETITIMER, unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_MUNMAP:
			continue
		}
		_, _, _ = unix.RawSyscall6(number, argument(), argument(), argument(), argument(), argument(), argument())
	}
}

// /tmp goes from one program to the next, and is gone with its holder.
func TestTmpIsKept(t *testing.T) {
	c := newCell(t)
	c.spec.Args = []string{"/bin/sh", "-c", "cat /tmp/* 2>/dev/null; echo x >>/tmp/list; head -c 100000 /dev/zero >/tmp/.zeros"}
	for _, want := range []string{"", "x\n", "x\nx\n"} {
		if exit, output := runScript(t, c.spec); exit.Code != 0 || output != want {
			t.Fatalf("%s %q, want %q", exit, output, want)
		}
		if kB := c.spec.Tmp.UsedKB(); kB < 100 || kB > 120 {
			t.Errorf("%d KiB are used", kB)
		}
	}
	c.spec.Tmp.Close()
	if kB := c.spec.Tmp.UsedKB(); kB != 0 {
		t.Errorf("%d KiB are left", kB)
	}
	other := &Tmp{MB: 1}
	defer other.Close()
	c.spec.Tmp = other
	if exit, output := runScript(t, c.spec); exit.Code != 0 || output != "" {
		t.Errorf("another one: %s %q", exit, output)
	}
	// A mount that an init process took with it when it was ended is followed by an empty one.
	_ = other.mount.Close()
	gone, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	other.mount = gone
	if exit, output := runScript(t, c.spec); exit.Code != 0 || output != "" {
		t.Errorf("after one was lost: %s %q", exit, output)
	}
}

// What cannot be hidden keeps the program from running.
func TestHideFailsClosed(t *testing.T) {
	c := newCell(t)
	c.spec.Args = []string{"/bin/true"}
	c.spec.Hide = append(c.spec.Hide, c.victim.Outer+"/"+strings.Repeat("x", 300))
	if exit, _ := runScript(t, c.spec); exit.Err == nil {
		t.Errorf("it ran: %s", exit)
	}
}

// Under root, an isolated program has a user of its own.
func TestNoRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("is about root")
	}
	spec := script2spec("true", t.TempDir())
	spec.User = 0
	if exit, _ := runScript(t, spec); exit.Err == nil {
		t.Errorf("it ran: %s", exit)
	}
}
