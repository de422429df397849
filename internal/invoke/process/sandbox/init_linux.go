package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"godwit.dev/godwit/internal/invoke/process/netns"
)

// initName is the program name of an init process.
const initName = "godwit-sandbox"

// The init process's files besides the standard ones.
const (
	descriptionFile = 3 + iota // a pipe, from which it reads its order
	reportFile                 // a socket
	lifelineFile               // a pipe that nobody writes to
	tmpFile                    // the mount of /tmp, if the order has one; then the network's socket
)

// order describes the work of an init process.
type order struct {
	Spec
	Mapped  bool `json:"mapped"`  // it is root only in its own namespace for users
	TmpMB   int  `json:"tmpMB"`   // size of /tmp; 0: there is none
	TmpKept bool `json:"tmpKept"` // tmpFile is one
	Socket  int  `json:"socket"`  // the file that the network's sockets go to; 0: there is no network
}

// maxReport bounds what an init process reports, in bytes.
const maxReport = 64 << 10

// init becomes an init process if this process was started as one. It is here and not in
// main, so that every binary that starts sandboxes can be one, including tests, and before
// packages that it does not need are initialized.
func init() {
	if len(os.Args) != 1 || os.Args[0] != initName {
		return
	}
	runtime.LockOSThread()
	syscall.Exit(keep()) // not os.Exit, which in a test with the race detector takes a second
}

// initReport is what an init process reports of its program.
type initReport struct {
	Error         string `json:"error,omitempty"`
	NotExecutable bool   `json:"notExecutable,omitempty"`
	Status        uint32 `json:"status,omitempty"` // of wait(2)
	MaxMemoryKB   int64  `json:"maxMemoryKB,omitempty"`
}

func (r *initReport) exit() Exit {
	if r.Error != "" {
		return Exit{Err: errors.New(r.Error), NotExecutable: r.NotExecutable}
	}
	status := syscall.WaitStatus(r.Status)
	exit := Exit{MaxMemoryKB: r.MaxMemoryKB}
	if status.Signaled() {
		exit.Signal = status.Signal().String()
	} else {
		exit.Code = status.ExitStatus()
	}
	return exit
}

// keep runs an init process.
func keep() int {
	report := os.NewFile(reportFile, "report")
	var spec order
	if err := json.NewDecoder(os.NewFile(descriptionFile, "description")).Decode(&spec); err != nil {
		return 2 // the caller is gone
	}
	pid, err := launch(&spec)
	if err != nil {
		failed, _ := errors.AsType[*executeError](err)
		_ = json.NewEncoder(report).Encode(initReport{Error: err.Error(), NotExecutable: failed != nil})
		return 0
	}
	var usage syscall.Rusage
	status := reap(pid, &usage)
	if !spec.Isolate {
		endDescendants()
	}
	_ = json.NewEncoder(report).Encode(initReport{Status: uint32(status), MaxMemoryKB: usage.Maxrss})
	return 0
}

// executeError is the error of starting the program itself.
type executeError struct{ err error }

func (e *executeError) Error() string { return e.err.Error() }

// caught are signals that would end the init process, or at least a Go program, and that the
// program may be able to send. Those for termination are forwarded to it, the others are
// ignored.
var caught = []os.Signal{
	syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGTRAP, syscall.SIGILL, syscall.SIGBUS,
	syscall.SIGFPE, syscall.SIGSEGV, syscall.SIGSYS, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGVTALRM, syscall.SIGPROF,
	syscall.SIGXCPU, syscall.SIGXFSZ, syscall.SIGIO, syscall.SIGPWR, syscall.Signal(16), // SIGSTKFLT
}

// launch sets the sandbox up and starts the program in it. The order matters: each
// step needs what a later one gives up. Whatever fails ends it.
//
//  1. Files that were inherited are closed to the program.
//  2. The control groups are joined, while the machine's files are there.
//  3. The network is set up, with all capabilities in its namespace and the machine's
//     files and /proc.
//  4. The file system takes the place of the machine's.
//  5. Limits are set.
//  6. The init process hides from the program, and the thread that starts it gives up all
//     capabilities and filters its system calls. Other threads, which run on for the
//     process, do not.
//  7. The program starts, on that thread.
func launch(spec *order) (pid int, err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, caught...)
	if err := closeInherited(); err != nil {
		return 0, err
	}
	if err := yieldMemory(); err != nil {
		return 0, err
	}
	for _, group := range spec.Groups {
		if err := os.WriteFile(group+"/cgroup.procs", []byte("0"), 0); err != nil {
			return 0, fmt.Errorf("joining the control group: %w", err)
		}
	}
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if spec.User != 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(spec.User), Gid: uint32(spec.User)}
	}
	if spec.Isolate {
		err = isolateSelf(spec)
	} else {
		err = adoptOrphans()
	}
	if err != nil {
		return 0, err
	}
	pid, err = syscall.ForkExec(spec.Args[0], spec.Args, &syscall.ProcAttr{
		Dir: spec.Dir, Env: spec.Env, Files: []uintptr{0, 1, 2}, Sys: attr,
	})
	if err != nil {
		return 0, &executeError{&fs.PathError{Op: "fork/exec", Path: spec.Args[0], Err: err}}
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				_ = syscall.Kill(pid, syscall.SIGTERM)
			}
		}
	}()
	go func() { // the caller closes the other end, or ends
		_, _ = io.ReadAll(os.NewFile(lifelineFile, "lifeline"))
		if spec.Isolate {
			syscall.Exit(0) // the kernel ends all that is in the namespace
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // which ends reap, and what follows it ends the others
	}()
	return pid, nil
}

// isolateSelf does steps 3 to 6 of launch in namespaces.
func isolateSelf(spec *order) error {
	if spec.User == 0 && !spec.Mapped {
		return errors.New("an isolated program does not run as root")
	}
	if spec.Socket != 0 {
		socket := os.NewFile(uintptr(spec.Socket), "network")
		err := netns.SetUp(*spec.Network, socket)
		_ = socket.Close()
		if err != nil {
			return err
		}
	}
	if err := changeRoot(spec); err != nil {
		return err
	}
	if err := limit(unix.RLIMIT_NPROC, "processes", maxProcesses); err != nil {
		return err
	}
	if err := limitAlways(); err != nil {
		return err
	}
	if err := hideSelf(); err != nil {
		return err
	}
	if err := dropPrivileges(spec.User != 0); err != nil {
		return err
	}
	return filterCalls(spec.MemoryLimited)
}

// yieldMemory makes the kernel's OOM killer prefer the program, and then the init process,
// over the server. The program may be able to undo that for itself, but not for the init
// process.
func yieldMemory() error {
	if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
		return fmt.Errorf("being the first to end when memory is short: %w", err)
	}
	return nil
}

// adoptOrphans is for programs without isolation: it makes the init process the reaper of
// orphans, sets limits, and gives up the means to gain privileges.
func adoptOrphans() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the reaper: %w", err)
	}
	if err := limitAlways(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up privileges: %w", err)
	}
	return nil
}

// limitAlways sets the limits that a program has in any sandbox.
func limitAlways() error {
	return errors.Join(
		limit(unix.RLIMIT_NOFILE, "open files", MaxOpenFiles),
		limit(unix.RLIMIT_MEMLOCK, "locked memory", maxLocked),
		// AWS has 10 GiB. Here a program of the machine might receive the dumps, with the
		// function's credentials. A limit of 0 bytes still pipes them to such a program; a
		// limit of 1 prevents them.
		limit(unix.RLIMIT_CORE, "core dumps", 1),
	)
}

// limit sets a resource limit. A lower hard limit stays if it cannot be raised.
func limit(resource int, name string, to uint64) error {
	err := unix.Setrlimit(resource, &unix.Rlimit{Cur: to, Max: to})
	var now unix.Rlimit
	if errors.Is(err, unix.EPERM) && unix.Getrlimit(resource, &now) == nil && now.Max < to {
		err = unix.Setrlimit(resource, &unix.Rlimit{Cur: now.Max, Max: now.Max})
	}
	if err != nil {
		return fmt.Errorf("limiting %s to %d: %w", name, to, err)
	}
	return nil
}

// reap waits for the program, and reaps adopted orphans.
func reap(pid int, usage *syscall.Rusage) syscall.WaitStatus {
	for {
		var status syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &status, 0, usage)
		switch {
		case ended == pid:
			return status
		case err != nil && !errors.Is(err, syscall.EINTR):
			return 0 // there is no child: impossible
		}
	}
}

// endDescendants kills the program's descendants until there are none. Those that keep
// starting processes are stopped first.
func endDescendants() {
	self := os.Getpid()
	for {
		all := Descendants(self)
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
		}
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		for {
			ended, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				return
			}
			if ended == 0 {
				break
			}
		}
		// Without lists of children in /proc the descendants cannot be found; the best that
		// is left is the end of their parent.
		if len(all) == 0 && !listsChildren(self) {
			return
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
	}
}

// listsChildren reports whether the kernel lists a process's children.
func listsChildren(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children")
	return err == nil || !strings.Contains(err.Error(), "no such file")
}
