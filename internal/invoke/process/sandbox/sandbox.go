// Package sandbox runs a program that is not trusted, and ends it together with
// everything that it started.
//
// Between the caller and the program stands an init process: this same binary, started
// again under another name (see init_linux.go). Where the kernel allows it,
// the init process is the first process of a PID namespace of its own, so that the
// kernel ends all that is in it when the init process ends, and the init process ends when
// the caller does, however that comes. The program then also has a file system
// of its own: the machine's programs and libraries, read only, the directories
// that the caller gives it, and a /tmp of a fixed size in memory. It has no
// capability, no way to one, and a filter of system calls. What cannot be set up
// in this way is not run. Without isolation, the init process adopts what the program
// leaves behind, and ends it by hand.
//
// On other Unix systems than Linux there is neither isolation nor an init process: a program
// leads a process group, which is ended with it.
package sandbox

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/invoke/process/netns"
)

// Spec says what is run.
type Spec struct {
	Args []string // the program, as the file system in the sandbox has it, and its arguments
	Env  []string // all of its environment
	Dir  string   // where it begins

	// Isolate gives it namespaces and a file system of its own, in which Binds
	// are what it sees beside the machine's programs and libraries.
	Isolate bool
	Binds   []Bind
	// Hide are directories whose content it must not see, wherever they are.
	Hide []string
	// Root is an empty directory that the file system is put together on. It
	// is empty again afterwards.
	Root string

	// Tmp is its /tmp if it is isolated; nil: it has none.
	Tmp *Tmp `json:"-"`

	// Network is what the program has of a network if it is isolated; nil: nothing.
	Network *netns.Plan

	// User is the user and the group that it runs as; 0: the caller's. An isolated
	// program needs one if the caller is root.
	User int
	// Groups are the directories of control groups that it joins.
	Groups []string
	// MemoryLimited says that one of them limits its memory. If none does, an isolated
	// program cannot ask for memory that would be seen with none of its processes.
	MemoryLimited bool
}

// Bind makes a file or a directory of the machine visible in the sandbox.
type Bind struct {
	Source, Target string // absolute
	Writable       bool
}

// Tmp is the /tmp of isolated programs that run one after the other: a file system in
// memory, which is gone when the Tmp is closed and no program is left.
type Tmp struct {
	MB int // how much it may hold, in MiB

	mu     sync.Mutex
	mount  *os.File // nil: none has started yet
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

// Empty gives up what is in /tmp, once the program that uses it has ended: the next
// one finds nothing.
func (t *Tmp) Empty() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mount != nil {
		_ = t.mount.Close()
		t.mount = nil
	}
}

// Close gives up what is in /tmp.
func (t *Tmp) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.mount != nil {
		_ = t.mount.Close()
		t.mount = nil
	}
}

// Exit is how a program ended.
type Exit struct {
	// Err says why it could not be started; nil: it was.
	Err error
	// NotExecutable says that Err is about the program and not about the sandbox.
	NotExecutable bool
	Code          int    // its status, if no signal ended it
	Signal        string // "killed", …; empty: none did
	MaxMemoryKB   int64  // the most that the program had in memory; 0: unknown
}

// String says it as Lambda does.
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

// Limits of what a program may have, as AWS has them.
const (
	MaxOpenFiles = 1024 // less where the machine's hard limit is less
	maxProcesses = 742  // threads included
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

// machine is what every sandbox sees of the machine, where it exists: programs,
// libraries and their settings.
var machine = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/gnu",
}
