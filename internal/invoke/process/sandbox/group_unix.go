//go:build unix

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Supported says that programs can run here at all, if without isolation.
const Supported = true

// leader is the leader of a process group, which is ended together where there is no init
// process. A process that leaves the group is not ended.
type leader struct {
	cmd  *exec.Cmd
	done chan struct{}
	exit Exit // once done is closed

	mu    sync.Mutex
	ended bool // its number may be reused
}

// startGroup starts a program without isolation. It uses Args, Env and Dir of the Spec.
func startGroup(spec Spec, output *os.File) (*leader, error) {
	l := &leader{done: make(chan struct{}), cmd: &exec.Cmd{
		Path: spec.Args[0], Args: spec.Args, Dir: spec.Dir,
		Env:    append([]string{}, spec.Env...), // nil would mean the server's
		Stdout: output, Stderr: output,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true}, // a session is a group, and has no terminal
	}}
	err := l.cmd.Start()
	for _, machine := range []error{syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, machine) {
			return nil, err
		}
	}
	if err != nil {
		l.exit, l.ended = Exit{Err: err, NotExecutable: true}, true
		close(l.done)
		return l, nil
	}
	go l.wait()
	return l, nil
}

// wait waits for the program's exit, and kills the rest of its group. While a process of the
// group lives, the kernel does not reuse the group's number; otherwise there was no time for
// that.
func (l *leader) wait() {
	defer close(l.done)
	_ = l.cmd.Wait() // the result is in ProcessState
	l.mu.Lock()
	defer l.mu.Unlock()
	_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
	l.ended = true
	l.exit.Code = l.cmd.ProcessState.ExitCode()
	if s, ok := l.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && s.Signaled() {
		l.exit.Code, l.exit.Signal = 0, s.Signal().String()
	}
	if usage, ok := l.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		l.exit.MaxMemoryKB = int64(usage.Maxrss) //nolint:unconvert // it is an int32 on some machines
		if runtime.GOOS == "darwin" {            // which counts in bytes
			l.exit.MaxMemoryKB >>= 10
		}
	}
}

// Kill kills the program and its group.
func (l *leader) Kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		_ = syscall.Kill(-l.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// Terminate asks the program to end.
func (l *leader) Terminate() {
	if l.cmd.Process != nil {
		_ = l.cmd.Process.Signal(syscall.SIGTERM)
	}
}

// Done is closed when the program has exited and the rest of its group was killed.
func (l *leader) Done() <-chan struct{} { return l.done }

// Exit reports how the program ended; valid once Done is closed.
func (l *leader) Exit() Exit { return l.exit }
