package process

import (
	"os"

	"golang.org/x/sys/unix"

	"godwit.dev/godwit/internal/invoke/process/sandbox"
)

// changesUsers reports whether this process may run others as users of their own,
// end them, and remove what they leave. Root in a container may be unable to.
func changesUsers() bool {
	return os.Geteuid() == 0 &&
		hasCapabilities(1<<unix.CAP_CHOWN|1<<unix.CAP_DAC_OVERRIDE|1<<unix.CAP_KILL|1<<unix.CAP_SETGID|1<<unix.CAP_SETUID)
}

func hasCapabilities(needed uint32) bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	return unix.Capget(&header, &sets[0]) == nil && sets[0].Effective&needed == needed
}

// openFiles is how many files a function can have open, if that is less than AWS
// gives: this process's hard limit, which nobody here may raise.
func openFiles() (n uint64, few bool) {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil || hasCapabilities(1<<unix.CAP_SYS_RESOURCE) {
		return 0, false
	}
	return l.Max, l.Max < sandbox.MaxOpenFiles
}
