package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"

	"godwit.dev/godwit/internal/invoke/process/netns"
)

// Process is a program in its sandbox.
type Process struct {
	cmd      *exec.Cmd
	isolated bool
	lifeline *os.File // closing it ends the init process
	network  *os.File // receives the sockets of its network; nil: it has none
	plan     *netns.Plan
	kill     sync.Once
	done     chan struct{}
	exit     Exit // once done is closed
}

// Start starts a program with its output to output. It returns before the program runs; Exit
// reports errors of the start.
func Start(spec Spec, output *os.File) (*Process, error) {
	order := order{Spec: spec}
	var files [6]*os.File // description and lifeline, each with our end last; report, with our end first
	defer func() {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	var err error
	for _, i := range []int{0, 4} {
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	if files[2], files[3], err = channel(); err != nil {
		return nil, err
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{initName}, Env: []string{"GOMAXPROCS=1", "GOGC=off"}, // it has little to do
		Stdout: output, Stderr: output,
		ExtraFiles:  []*os.File{files[0], files[3], files[4]},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	tmp := spec.Tmp
	if spec.Isolate {
		order.Mapped = isolate(cmd.SysProcAttr)
	} else {
		tmp = nil
	}
	if tmp != nil {
		mount, err := tmp.get()
		if err != nil {
			return nil, err
		}
		if order.TmpMB = tmp.MB; mount != nil {
			defer func() { _ = mount.Close() }()
			order.TmpKept = true
			cmd.ExtraFiles = append(cmd.ExtraFiles, mount)
		}
	}
	var network *os.File
	if spec.Isolate && spec.Network != nil {
		inside, outside, err := netns.Pair()
		if err != nil {
			return nil, err
		}
		defer func() { _ = inside.Close() }()
		order.Socket = descriptionFile + len(cmd.ExtraFiles)
		cmd.ExtraFiles, network = append(cmd.ExtraFiles, inside), outside
	}
	description, err := json.Marshal(order)
	if err != nil {
		return nil, err
	}
	if err := fork(cmd); err != nil {
		if network != nil {
			_ = network.Close()
		}
		return nil, err
	}
	p := &Process{
		cmd: cmd, isolated: spec.Isolate, lifeline: files[5], network: network, plan: spec.Network, done: make(chan struct{}),
	}
	report := files[2]
	files[2], files[5] = nil, nil
	_ = files[0].Close() // if the init process fails, our write must fail, too
	_ = files[3].Close() // the report ends with the init process
	if _, err := files[1].Write(description); err != nil {
		p.Kill()
	}
	go p.wait(report, tmp)
	return p, nil
}

// isolate requests namespaces. Unless the server is root, this needs a user namespace, in
// which it is root; mapped reports that.
func isolate(attr *syscall.SysProcAttr) (mapped bool) {
	attr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC | syscall.CLONE_NEWNET
	attr.Pdeathsig = syscall.SIGKILL
	if uid := os.Geteuid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
		return true
	}
	return false
}

// forks starts children on one thread. The kernel treats the end of the thread that has
// started a child like the end of its parent, so that one thread starts all, and never ends.
var forks = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go runForks(work)
	return work
})

// runForks owns its thread. Leak checks know it by its name.
func runForks(work <-chan func()) {
	runtime.LockOSThread()
	for f := range work {
		f()
	}
}

func fork(cmd *exec.Cmd) (err error) {
	started := make(chan struct{})
	forks() <- func() {
		defer close(started)
		err = cmd.Start()
	}
	<-started
	return err
}

// wait waits for the program's end. When done is closed, none of its processes is left.
func (p *Process) wait(report *os.File, tmp *Tmp) {
	defer close(p.done)
	defer func() { _ = report.Close() }()
	text := receive(report, tmp)
	err := p.cmd.Wait()
	_ = p.lifeline.Close()
	var r initReport
	switch {
	case len(text) > 0 && json.Unmarshal(text, &r) == nil:
		p.exit = r.exit()
	default: // the init process was ended, and the program with it
		p.exit = Exit{Signal: "killed"}
		if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() > 0 {
			p.exit = Exit{Err: fmt.Errorf("the sandbox failed: %w", err)}
		}
	}
}

// Network waits for the sockets of the sandbox's network, which the caller must close. It is
// called once for a Process with a Network in its Spec, and fails if the sandbox ends
// earlier.
func (p *Process) Network() (*netns.Sockets, error) { return netns.Receive(p.network, *p.plan) }

// Kill ends the program and everything that it started, at once.
func (p *Process) Kill() {
	p.kill.Do(func() {
		if p.isolated {
			_ = p.cmd.Process.Kill() // fails only if it has ended
		}
		_ = p.lifeline.Close()
	})
}

// Terminate sends SIGTERM to the program.
func (p *Process) Terminate() { _ = p.cmd.Process.Signal(syscall.SIGTERM) }

// Done is closed once the program has ended and no process of it is left.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit reports how the program ended; valid once Done is closed.
func (p *Process) Exit() Exit { return p.exit }

// PID is the program's process id on the machine; 0: not known.
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
