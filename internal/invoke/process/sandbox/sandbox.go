// Package sandbox runs an untrusted program, and ends it together with all its descendants.
//
// The program's parent is an init process: this same binary, started again with another name
// (see init_linux.go). If the kernel allows it, the init process is the first process of a
// PID namespace of its own: the kernel kills all processes of the namespace when the init
// process ends, and that ends with the caller, also when the caller crashes. The program then
// also has a file system of its own: the machine's programs and libraries, read only, the
// directories that the caller binds, and a /tmp of a fixed size in memory. It has no
// capabilities, no means to gain any, and a system call filter. If part of this cannot be set
// up, the program does not run. Without isolation, the init process adopts the program's
// orphans, and kills them.
//
// On other Unix systems than Linux there is neither isolation nor an init process: the
// program leads a process group, which is killed with it.
package sandbox

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/invoke/process/netns"
)

// Spec describes a program to run.
type Spec struct {
	Args []string // the program, as a path in the sandbox, and its arguments
	Env  []string // all of its environment
	Dir  string   // its working directory

	// Isolate gives it namespaces and a file system of its own, with Binds besides the
	// machine's programs and libraries.
	Isolate bool
	Binds   []Bind
	// Hide are directories with content that it must not see.
	Hide []string
	// Root is an empty directory on which the file system is built. It is empty again
	// afterwards.
	Root string

	// Tmp is its /tmp, if isolated; nil: there is none.
	Tmp *Tmp `json:"-"`

	// Network is its network, if isolated; nil: there is none.
	Network *netns.Plan

	// User is the user and the group of the program; 0: the caller's. An isolated program
	// needs one if the caller is root.
	User int
	// Groups are the directories of control groups that it joins.
	Groups []string
	// MemoryLimited says that one of them limits its memory. Otherwise an isolated program
	// cannot allocate memory that is not visible as that of one of its processes.
	MemoryLimited bool
}

// Bind makes a file or a directory of the machine visible in the sandbox.
type Bind struct {
	Source, Target string // absolute
	Writable       bool
}

// Tmp is the /tmp of isolated programs that run one after another: a file system in memory,
// which is released when the Tmp is closed and no program uses it.
type Tmp struct {
	MB int // its size, in MiB

	mu     sync.Mutex
	mount  *os.File // nil: no program has started yet
	closed bool
}

// put keeps a mount for the next program.
func (t *Tmp) put(mount *os.File) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mount != nil {
		_ = t.mount.Close()
	}
	if t.mount = mount; t.closed {
		_ = mount.Close()
		t.mount = nil
	}
}

// Empty releases the content of /tmp, after its program has ended: the next one finds it
// empty.
func (t *Tmp) Empty() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mount != nil {
		_ = t.mount.Close()
		t.mount = nil
	}
}

// Close releases the content of /tmp.
func (t *Tmp) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.mount != nil {
		_ = t.mount.Close()
		t.mount = nil
	}
}

// Exit is the end of a program.
type Exit struct {
	// Err is why it could not be started; nil: it was.
	Err error
	// NotExecutable says that Err is about the program and not about the sandbox.
	NotExecutable bool
	Code          int    // its status, if no signal ended it
	Signal        string // "killed", …; empty: none did
	MaxMemoryKB   int64  // the most that the program had in memory; 0: unknown
}

// String describes it in Lambda's form.
func (e Exit) String() string {
	switch {
	case e.Err != nil:
		return e.Err.Error()
	case e.Signal != "":
		return "signal: " + e.Signal
	default:
		return fmt.Sprintf("exit status %d", e.Code)
	}
}

// Resource limits of a program, as in AWS.
const (
	MaxOpenFiles = 1024 // or the machine's hard limit, if that is lower
	maxProcesses = 742  // including threads
	maxLocked    = 64 << 10
)

// Visible reports whether a sandbox sees a path of the machine without a Bind.
func Visible(path string) bool {
	for _, dir := range machine {
		if strings.HasPrefix(path, dir+"/") {
			return true
		}
	}
	return false
}

// machine are the files of the machine that every sandbox sees, if they exist: programs,
// libraries and their settings.
var machine = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/gnu",
}
