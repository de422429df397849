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
)

// keeperName is the name under which this binary is a keeper.
const keeperName = "godwit-sandbox"

// The keeper's files beside the standard ones.
const (
	descriptionFile = 3 + iota
	reportFile
	lifelineFile
)

// maxReport bounds what a keeper reports, in bytes.
const maxReport = 64 << 10

// init makes this process a keeper if it was started as one. That is here, and
// not in main, so that every binary that can start a sandbox can also keep one,
// tests included, and before packages that a keeper does not need are set up.
func init() {
	if len(os.Args) != 1 || os.Args[0] != keeperName {
		return
	}
	runtime.LockOSThread()
	syscall.Exit(keep()) // not os.Exit, which in a test with the race detector takes a second
}

// keeperReport is what a keeper tells of its program.
type keeperReport struct {
	Error         string `json:"error,omitempty"`
	NotExecutable bool   `json:"notExecutable,omitempty"`
	Status        uint32 `json:"status,omitempty"` // of wait(2)
	MaxMemoryKB   int64  `json:"maxMemoryKB,omitempty"`
}

func (r *keeperReport) exit() Exit {
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

// keep runs a keeper from its start to its end.
func keep() int {
	for fd := descriptionFile; fd <= lifelineFile; fd++ {
		syscall.CloseOnExec(fd)
	}
	report := os.NewFile(reportFile, "report")
	var spec Spec
	if err := json.NewDecoder(os.NewFile(descriptionFile, "description")).Decode(&spec); err != nil {
		return 2 // the caller is gone
	}
	pid, err := launch(&spec)
	if err != nil {
		failed, _ := errors.AsType[*executeError](err)
		_ = json.NewEncoder(report).Encode(keeperReport{Error: err.Error(), NotExecutable: failed != nil})
		return 0
	}
	var usage syscall.Rusage
	status := reap(pid, &usage)
	if !spec.Isolate {
		endDescendants()
	}
	_ = json.NewEncoder(report).Encode(keeperReport{Status: uint32(status), MaxMemoryKB: usage.Maxrss})
	return 0
}

// executeError says that the program itself could not be started.
type executeError struct{ err error }

func (e *executeError) Error() string { return e.err.Error() }

// launch sets the sandbox up and starts the program in it.
func launch(spec *Spec) (pid int, err error) {
	terminate := make(chan os.Signal, 1)
	signal.Notify(terminate, syscall.SIGTERM)
	for _, group := range spec.Groups {
		if err := os.WriteFile(group+"/cgroup.procs", []byte("0"), 0); err != nil {
			return 0, fmt.Errorf("joining the control group: %w", err)
		}
	}
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if spec.Isolate {
		if err := changeRoot(spec); err != nil {
			return 0, err
		}
		if err := limit(unix.RLIMIT_NPROC, maxProcesses); err != nil {
			return 0, err
		}
	} else if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("becoming the reaper: %w", err)
	}
	if err := errors.Join(limit(unix.RLIMIT_NOFILE, maxOpenFiles), limit(unix.RLIMIT_CORE, 0)); err != nil {
		return 0, err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("giving up privileges: %w", err)
	}
	if spec.User != 0 {
		attr.Credential = &syscall.Credential{Uid: uint32(spec.User), Gid: uint32(spec.User)}
	}
	pid, err = syscall.ForkExec(spec.Args[0], spec.Args, &syscall.ProcAttr{
		Dir: spec.Dir, Env: spec.Env, Files: []uintptr{0, 1, 2}, Sys: attr,
	})
	if err != nil {
		return 0, &executeError{&fs.PathError{Op: "fork/exec", Path: spec.Args[0], Err: err}}
	}
	go func() {
		for range terminate {
			_ = syscall.Kill(pid, syscall.SIGTERM)
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

func limit(resource int, to uint64) error {
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: to, Max: to}); err != nil {
		return fmt.Errorf("limiting resource %d: %w", resource, err)
	}
	return nil
}

// reap waits for the program, and buries what it left behind and was adopted.
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

// endDescendants ends what the program left behind, until nothing is. What
// keeps starting processes is stopped first.
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
		// Without lists of children in /proc there is nothing to find them by:
		// their parent's end is the best that can be done.
		if len(all) == 0 && !listsChildren(self) {
			return
		}
		_ = unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
	}
}

// listsChildren reports whether the kernel tells a process's children.
func listsChildren(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid) + "/task/" + strconv.Itoa(pid) + "/children")
	return err == nil || !strings.Contains(err.Error(), "no such file")
}
