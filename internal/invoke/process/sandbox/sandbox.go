// Package sandbox runs a program that is not trusted, and ends it together with
// everything that it started.
//
// Between the caller and the program stands a keeper: this same binary, started
// again under another name (see keeper_linux.go). Where the kernel allows it,
// the keeper is the first process of a PID namespace of its own, so that the
// kernel ends all that is in it when the keeper ends, and the keeper ends when
// the caller does, however that comes. The program then also has a file system
// of its own: the machine's programs and libraries, read only, and the
// directories that the caller gives it. Where the kernel does not allow it, the
// keeper adopts what the program leaves behind, and ends it by hand.
package sandbox

import (
	"fmt"
	"strings"
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

	// User is the user and the group that it runs as; 0: the caller's.
	User int
	// Groups are the directories of control groups that it joins.
	Groups []string
}

// Bind makes a file or a directory of the machine visible in the sandbox.
type Bind struct {
	Source, Target string // absolute
	Writable       bool
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
	maxOpenFiles = 1024
	maxProcesses = 1024 // threads included
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
	"/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager", // where resolv.conf may lead
}
