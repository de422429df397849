package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
)

// Process is a program in its sandbox.
type Process struct {
	cmd      *exec.Cmd
	isolated bool
	lifeline *os.File // closing it ends the keeper
	kill     sync.Once
	done     chan struct{}
	exit     Exit // once done is closed
}

// Start starts a program whose output goes to output. It returns before the
// program runs; what keeps it from running is told by Exit.
func Start(spec Spec, output *os.File) (*Process, error) {
	description, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	var files [6]*os.File // three pipes: description, report, lifeline
	defer func() {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	for i := 0; i < len(files); i += 2 {
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{keeperName}, Env: []string{"GOMAXPROCS=1", "GOGC=off"}, // it has next to nothing to do
		Stdout: output, Stderr: output,
		ExtraFiles:  []*os.File{files[0], files[3], files[4]},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if spec.Isolate {
		isolate(cmd.SysProcAttr)
	}
	if err := fork(cmd); err != nil {
		return nil, err
	}
	p := &Process{cmd: cmd, isolated: spec.Isolate, lifeline: files[5], done: make(chan struct{})}
	report := files[2]
	files[2], files[5] = nil, nil
	_ = files[0].Close() // a keeper that fails must not leave us writing
	if _, err := files[1].Write(description); err != nil {
		p.Kill()
	}
	go p.wait(report)
	return p, nil
}

// isolate asks for namespaces. Who is not root needs one for users, in which it
// is root.
func isolate(attr *syscall.SysProcAttr) {
	attr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
	attr.Pdeathsig = syscall.SIGKILL
	if uid := os.Geteuid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
}

// forks is where children are started. The kernel takes the end of the thread
// that started a child for the end of its parent, so that one thread starts
// them all, and never ends.
var forks = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func fork(cmd *exec.Cmd) (err error) {
	started := make(chan struct{})
	forks() <- func() {
		defer close(started)
		err = cmd.Start()
	}
	<-started
	return err
}

// wait learns how the program ended. When done is closed, no process of it is
// left.
func (p *Process) wait(report *os.File) {
	defer close(p.done)
	defer func() { _ = report.Close() }()
	err := p.cmd.Wait()
	text, _ := io.ReadAll(io.LimitReader(report, maxReport))
	_ = p.lifeline.Close()
	var r keeperReport
	switch {
	case len(text) > 0 && json.Unmarshal(text, &r) == nil:
		p.exit = r.exit()
	default: // the keeper was ended, and the program with it
		p.exit = Exit{Signal: "killed"}
		if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() > 0 {
			p.exit = Exit{Err: fmt.Errorf("the sandbox failed: %w", err)}
		}
	}
}

// Kill ends the program and everything that it started, at once.
func (p *Process) Kill() {
	p.kill.Do(func() {
		if p.isolated {
			_ = p.cmd.Process.Kill() // fails only if it has ended
		}
		_ = p.lifeline.Close()
	})
}

// Terminate asks the program to end.
func (p *Process) Terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// Done is closed once the program has ended and no process of it is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit tells how the program ended; valid once Done is closed.
func (p *Process) Exit() Exit { return p.exit }

// PID is the program's process as the machine sees it, 0 if it is not known.
func (p *Process) PID() int {
	children := childrenOf(p.cmd.Process.Pid)
	if len(children) != 1 {
		return 0
	}
	return children[0]
}

// childrenOf are the processes that a process started, or adopted.
func childrenOf(pid int) []int {
	var all []int
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for field := range strings.FieldsSeq(string(text)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

// Descendants are the processes below a process.
func Descendants(pid int) []int {
	all := childrenOf(pid)
	for i := 0; i < len(all); i++ {
		all = append(all, childrenOf(all[i])...)
	}
	return all
}
