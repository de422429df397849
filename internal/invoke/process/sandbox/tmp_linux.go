package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A Tmp is a mount without a namespace. An init process attaches it, and sends the caller
// another mount of the same file system for the next program.

// inodeBytes is the size of /tmp per inode, as with file systems on disk.
const inodeBytes = 8 << 10

// temporary mounts /tmp, an existing one or a new one, and sends a mount of it to the caller.
func (r root) temporary(spec *order) error {
	target := string(r) + "/tmp"
	if err := os.Mkdir(target, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { // what is bound below it is covered
		return err
	}
	attached := false
	if spec.TmpKept {
		err := unix.MoveMount(tmpFile, "", unix.AT_FDCWD, target, unix.MOVE_MOUNT_F_EMPTY_PATH)
		// An init process that was killed during its start has taken the mount with it.
		if err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("attaching /tmp: %w", err)
		}
		attached = err == nil
		_ = unix.Close(tmpFile)
	}
	if !attached {
		if err := newTmp(target, spec); err != nil {
			return fmt.Errorf("mounting /tmp: %w", err)
		}
	}
	next, err := unix.OpenTree(unix.AT_FDCWD, target, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("keeping /tmp: %w", err)
	}
	defer func() { _ = unix.Close(next) }()
	if err := unix.Sendmsg(reportFile, []byte{0}, unix.UnixRights(next), nil, 0); err != nil {
		return fmt.Errorf("handing /tmp over: %w", err)
	}
	return nil
}

// newTmp mounts an empty file system. It has the usual mode of /tmp; only the sandbox's
// programs see it.
func newTmp(target string, spec *order) error {
	options := fmt.Sprintf("size=%dm,nr_inodes=%d,mode=1777", spec.TmpMB, max(spec.TmpMB<<20/inodeBytes, 64))
	return unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
}

// get is a copy of the kept mount; nil: there is none.
func (t *Tmp) get() (*os.File, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mount == nil {
		return nil, nil
	}
	fd, err := unix.FcntlInt(t.mount.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fd), "tmp"), nil
}

// receiveTmp takes a mount of /tmp from a message's control part; nil: there is none.
func receiveTmp(control []byte) *os.File {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil || len(messages) != 1 {
		return nil
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil
	}
	return os.NewFile(uintptr(fds[0]), "tmp")
}

// channel is a pair of sockets: the caller's end, and the init process's.
func channel() (caller, initEnd *os.File, err error) {
	fds, err := syscall.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := syscall.SetNonblock(fds[0], true); err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "report"), os.NewFile(uintptr(fds[1]), "report"), nil
}

// receive reads the init process's report until it ends, and takes the mount of /tmp.
func receive(report *os.File, tmp *Tmp) []byte {
	raw, err := report.SyscallConn()
	if err != nil {
		return nil
	}
	var text []byte
	buffer, control := make([]byte, 4<<10), make([]byte, unix.CmsgSpace(4))
	for ended := false; !ended; {
		_ = raw.Read(func(fd uintptr) bool {
			n, c, _, _, err := unix.Recvmsg(int(fd), buffer, control, unix.MSG_CMSG_CLOEXEC)
			switch {
			case errors.Is(err, unix.EAGAIN):
				return false
			case errors.Is(err, unix.EINTR):
				return true
			}
			if mount := receiveTmp(control[:c]); mount != nil {
				tmp.put(mount)
				n = 0
			} else if n <= 0 || err != nil || len(text) > maxReport {
				ended = true
			}
			text = append(text, buffer[:max(n, 0)]...)
			return true
		})
	}
	return text
}

// UsedKB is how much is in /tmp, in KiB; 0 if there is none yet.
func (t *Tmp) UsedKB() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.mount == nil {
		return 0
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(t.mount.Fd()), &s); err != nil {
		return 0
	}
	return int64(s.Blocks-s.Bfree) * int64(s.Bsize) >> 10 //nolint:unconvert // it is an int32 on some machines
}
