package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// closeInherited keeps this process's files, except the standard ones, from the program, by
// close-on-exec: the server may have inherited files from its parent.
func closeInherited() error {
	const first = descriptionFile
	err := unix.CloseRange(first, ^uint(0)>>32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	files, err := os.ReadDir("/proc/self/fd") // kernels before 5.11
	if err != nil {
		return fmt.Errorf("listing inherited files: %w", err)
	}
	for _, f := range files {
		if fd, err := strconv.Atoi(f.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// dropPrivileges drops all privileges of the calling thread and its children, and the means
// to gain any. With keep, the thread keeps its own until its child has changed its user,
// which drops all.
func dropPrivileges(keep bool) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("giving up new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clearing the ambient capabilities: %w", err)
	}
	for c := uintptr(0); ; c++ {
		held, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // the kernel has no more
		}
		if err == nil && held != 0 {
			err = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		}
		if err != nil {
			return fmt.Errorf("dropping capability %d: %w", c, err)
		}
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if keep {
		if err := unix.Capget(&header, &sets[0]); err != nil {
			return fmt.Errorf("reading the capabilities: %w", err)
		}
		sets[0].Inheritable, sets[1].Inheritable = 0, 0
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("dropping the capabilities: %w", err)
	}
	return nil
}

// hideSelf prevents other processes, of any user, from reading and tracing this one, unless
// they may do that with all processes.
func hideSelf() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hiding the init process: %w", err)
	}
	return nil
}
