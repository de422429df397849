package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// devices are what every sandbox has of the machine's devices.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// changeRoot gives the calling process the file system of the spec. It must be
// in a mount namespace of its own.
func changeRoot(spec *Spec) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("parting from the machine's mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", spec.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	r := root(spec.Root)
	for _, path := range machine {
		if err := r.show(path); err != nil {
			return err
		}
	}
	for _, name := range devices {
		if err := r.bind(Bind{Source: "/dev/" + name, Target: "/dev/" + name, Writable: true}, 0); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(target, string(r)+name); err != nil {
			return err
		}
	}
	for _, b := range spec.Binds {
		if err := r.bind(b, unix.MS_NODEV); err != nil {
			return err
		}
	}
	for _, path := range spec.Hide {
		if err := r.hide(path); err != nil {
			return err
		}
	}
	if err := r.processes(); err != nil {
		return err
	}
	return r.enter()
}

// root is the directory on which a file system is put together.
type root string

// show makes a directory of the machine visible, read only. A link stays one.
func (r root) show(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(target, string(r)+path)
	case !info.IsDir():
		return nil
	}
	return r.bind(Bind{Source: path, Target: path}, unix.MS_NODEV)
}

// bind makes what b names visible.
func (r root) bind(b Bind, flags uintptr) error {
	info, err := os.Stat(b.Source)
	if err != nil {
		return err
	}
	target := string(r) + b.Target
	if _, err := os.Lstat(target); err != nil { // else it is within what is bound already
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if info.IsDir() {
			err = os.Mkdir(target, 0o755)
		} else {
			err = os.WriteFile(target, nil, 0o444)
		}
		if err != nil {
			return err
		}
	}
	if err := unix.Mount(b.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("binding %s: %w", b.Target, err)
	}
	flags |= unix.MS_NOSUID
	if !b.Writable {
		flags |= unix.MS_RDONLY
	}
	return r.restrict(b.Target, target, flags)
}

// restrict adds flags to a mount. In a namespace for users the flags that the
// machine's mount has cannot be taken off.
func (r root) restrict(name, target string, flags uintptr) error {
	var now unix.Statfs_t
	if err := unix.Statfs(target, &now); err != nil {
		return err
	}
	for stat, mount := range map[int64]uintptr{
		unix.ST_RDONLY: unix.MS_RDONLY, unix.ST_NOSUID: unix.MS_NOSUID, unix.ST_NODEV: unix.MS_NODEV,
		unix.ST_NOEXEC: unix.MS_NOEXEC, unix.ST_NOATIME: unix.MS_NOATIME, unix.ST_NODIRATIME: unix.MS_NODIRATIME,
		unix.ST_RELATIME: unix.MS_RELATIME,
	} {
		if int64(now.Flags)&stat != 0 { //nolint:unconvert // it is an int32 on some machines
			flags |= mount
		}
	}
	if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|flags, ""); err != nil {
		return fmt.Errorf("restricting %s: %w", name, err)
	}
	return nil
}

// hide covers a directory, if it is visible.
func (r root) hide(path string) error {
	target := string(r) + path
	if info, err := os.Stat(target); err != nil || !info.IsDir() {
		return nil
	}
	if err := unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY, "mode=0700,size=4k"); err != nil {
		return fmt.Errorf("hiding %s: %w", path, err)
	}
	return nil
}

// processes mounts /proc for the PID namespace. In a container that hides parts
// of its own, the kernel does not allow it; then it is the container's.
func (r root) processes() error {
	target := string(r) + "/proc"
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	err := unix.Mount("proc", target, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	if err != nil {
		err = unix.Mount("/proc", target, "", unix.MS_BIND|unix.MS_REC, "")
	}
	if err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	return nil
}

// enter makes r the root, read only but for what is bound writable.
func (r root) enter() error {
	if err := os.Chdir(string(r)); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("changing the root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("leaving the machine's root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return r.restrict("/", "/", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV)
}
