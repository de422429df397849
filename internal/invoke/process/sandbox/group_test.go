//go:build unix

package sandbox

import (
	"io"
	"os"
	"syscall"
	"testing"
)

// beginGroup starts a shell that runs a script as the leader of a process group, and
// returns what all of the group print: it ends when none of them is left.
func beginGroup(t *testing.T, script string) (*leader, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l, err := startGroup(Spec{Args: []string{"/bin/sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "GREETING=hello"}, Dir: "/"}, w)
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.Kill()
		<-l.Done()
		_ = r.Close()
	})
	return l, r
}

func TestGroupExit(t *testing.T) {
	t.Setenv("GODWIT_SECRET", "secret") // the server's own
	for script, want := range map[string]struct{ exit, output string }{
		`echo $GREETING$GODWIT_SECRET; pwd; echo error >&2`: {"exit status 0", "hello\n/\nerror\n"},
		`exit 3`:       {"exit status 3", ""},
		`kill -9 $$`:   {"signal: killed", ""},
		`kill -TERM 0`: {"signal: terminated", ""}, // reaches its group, and not the test
	} {
		l, r := beginGroup(t, script)
		output, err := io.ReadAll(r)
		<-l.Done()
		if exit := l.Exit(); err != nil || string(output) != want.output || exit.String() != want.exit || exit.MaxMemoryKB <= 0 {
			t.Errorf("%s: %q %v, %s, %d KB, want %q, %s", script, output, err, exit, exit.MaxMemoryKB, want.output, want.exit)
		}
	}
}

func TestGroupNotExecutable(t *testing.T) {
	l, err := startGroup(Spec{Args: []string{"/nothing/here"}, Dir: "/"}, os.Stdout)
	if err != nil {
		t.Fatal(err)
	}
	<-l.Done()
	if exit := l.Exit(); !exit.NotExecutable || exit.String() != "fork/exec /nothing/here: no such file or directory" {
		t.Errorf("a program that is not there: %+v", exit)
	}
	l.Kill() // there is nothing to end: not even the test, whose group is 0
	l.Terminate()
}

// Children of the program, and children of these that have lost their parent, hold the
// other end of the pipe: it ends with the last of them.
const family = `sleep 1000 & (sleep 1000 &) ; echo ready; `

func awaitReady(t *testing.T, r *os.File) {
	t.Helper()
	if _, err := io.ReadFull(r, make([]byte, len("ready\n"))); err != nil {
		t.Fatal(err)
	}
}

func TestGroupKill(t *testing.T) {
	l, r := beginGroup(t, family+"wait")
	awaitReady(t, r)
	l.Kill()
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
	<-l.Done()
	if exit := l.Exit(); exit.Signal != syscall.SIGKILL.String() {
		t.Errorf("exit: %s", exit)
	}
}

func TestGroupEndsWithItsLeader(t *testing.T) {
	l, r := beginGroup(t, family+"exit 3")
	awaitReady(t, r)
	if rest, err := io.ReadAll(r); err != nil || len(rest) > 0 {
		t.Errorf("%q %v", rest, err)
	}
	<-l.Done()
	if exit := l.Exit(); exit.Code != 3 {
		t.Errorf("exit: %s", exit)
	}
}

func TestGroupTerminate(t *testing.T) {
	l, r := beginGroup(t, `trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.01; done`)
	awaitReady(t, r)
	l.Terminate()
	rest, _ := io.ReadAll(r)
	<-l.Done()
	if string(rest) != "bye\n" || l.Exit().Code != 4 {
		t.Errorf("%q, %s", rest, l.Exit())
	}
}
