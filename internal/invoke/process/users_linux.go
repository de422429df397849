package process

import (
	"os"

	"golang.org/x/sys/unix"
)

// changesUsers reports whether this process may run others as users of their own,
// end them, and remove what they leave. Root in a container may be unable to.
func changesUsers() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if os.Geteuid() != 0 || unix.Capget(&header, &sets[0]) != nil {
		return false
	}
	const needed = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_KILL | 1<<unix.CAP_SETGID | 1<<unix.CAP_SETUID
	return sets[0].Effective&needed == needed
}
