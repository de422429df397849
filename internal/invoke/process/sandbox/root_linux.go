package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// devices are the machine's devices that every sandbox has.
var devices = []string{"null", "zero", "full", "random", "urandom"}

// changeRoot gives the calling process the file system of the spec. It must be
// in a mount namespace of its own.
func changeRoot(spec *order) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("parting from the machine's mounts: %w", err)
	}
	if err := unix.Mount("tmpfs", spec.Root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	r := root(spec.Root)
	for _, path := range machine {
		if slices.ContainsFunc(spec.Binds, func(b Bind) bool { return b.Target == path }) {
			continue
		}
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
		if err := r.bind(b, unix.MOUNT_ATTR_NODEV); err != nil {
			return err
		}
	}
	// No file of a program exists yet, so that links cannot mislead the init process.
	for _, path := range spec.Hide {
		if err := r.hide(path); err != nil {
			return err
		}
	}
	if err := r.processes(); err != nil {
		return err
	}
	if spec.TmpMB > 0 {
		if err := r.temporary(spec); err != nil {
			return err
		}
	}
	return r.enter()
}

// root is the directory where a sandbox's file system is built.
type root string

// show makes a directory of the machine visible, read only. A link stays a link.
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
	return r.bind(Bind{Source: path, Target: path}, unix.MOUNT_ATTR_NODEV)
}

// bind makes what b names visible, with all that is mounted below it.
func (r root) bind(b Bind, attributes uint64) error {
	target := string(r) + b.Target
	if _, err := os.Lstat(target); errors.Is(err, fs.ErrNotExist) { // otherwise it is below another bind
		info, err := os.Stat(b.Source)
		if err != nil {
			return err
		}
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
	} else if err != nil {
		return err
	}
	if err := unix.Mount(b.Source, target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("binding %s: %w", b.Target, err)
	}
	attributes |= unix.MOUNT_ATTR_NOSUID
	if !b.Writable {
		attributes |= unix.MOUNT_ATTR_RDONLY
	}
	return restrict(b.Target, target, attributes)
}

// restrict adds attributes to a mount and to those below it.
func restrict(name, target string, attributes uint64) error {
	err := unix.MountSetattr(unix.AT_FDCWD, target, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes})
	if errors.Is(err, unix.ENOSYS) { // kernels before 5.12
		err = remount(target, attributes)
	}
	if err != nil {
		return fmt.Errorf("restricting %s: %w", name, err)
	}
	return nil
}

// remount is restrict for older kernels: each mount separately, with all of its flags.
func remount(target string, attributes uint64) error {
	mounts, err := mountsBelow(target)
	if err != nil {
		return err
	}
	for _, mount := range mounts {
		var now unix.Statfs_t
		if err := unix.Statfs(mount, &now); err != nil {
			return err
		}
		flags := uintptr(unix.MS_BIND | unix.MS_REMOUNT)
		for _, f := range []struct {
			stat      int64
			attribute uint64
			mount     uintptr
		}{
			{unix.ST_RDONLY, unix.MOUNT_ATTR_RDONLY, unix.MS_RDONLY},
			{unix.ST_NOSUID, unix.MOUNT_ATTR_NOSUID, unix.MS_NOSUID},
			{unix.ST_NODEV, unix.MOUNT_ATTR_NODEV, unix.MS_NODEV},
			{unix.ST_NOEXEC, unix.MOUNT_ATTR_NOEXEC, unix.MS_NOEXEC},
			{unix.ST_NOATIME, 0, unix.MS_NOATIME},
			{unix.ST_NODIRATIME, 0, unix.MS_NODIRATIME},
			{unix.ST_RELATIME, 0, unix.MS_RELATIME},
		} {
			if int64(now.Flags)&f.stat != 0 || attributes&f.attribute != 0 { //nolint:unconvert // it is an int32 on some machines
				flags |= f.mount
			}
		}
		if err := unix.Mount("", mount, "", flags, ""); err != nil {
			return err
		}
	}
	return nil
}

// mountsBelow are a mount point and those below it.
func mountsBelow(target string) (mounts []string, err error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		at := octal.Replace(fields[4])
		if at == target || strings.HasPrefix(at, target+"/") {
			mounts = append(mounts, at)
		}
	}
	if len(mounts) == 0 {
		return nil, fmt.Errorf("%s is no mount", target)
	}
	return mounts, nil
}

// octal decodes the kernel's escapes in paths.
var octal = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// hide covers a directory or a file, if it exists.
func (r root) hide(path string) error {
	target := string(r) + path
	info, err := os.Stat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return nil
	case err != nil:
		return fmt.Errorf("hiding %s: %w", path, err)
	case info.IsDir():
		err = unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_RDONLY, "mode=0700,size=4k")
	default:
		err = unix.Mount("/dev/null", target, "", unix.MS_BIND, "")
	}
	if err != nil {
		return fmt.Errorf("hiding %s: %w", path, err)
	}
	return nil
}

// The parts of /proc that are read only, and those that are hidden.
var (
	procReadOnly = []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "asound"}
	procHidden   = []string{"kcore", "keys", "key-users", "timer_list", "sched_debug", "kallsyms", "kmsg"}
)

// processes mounts /proc for the PID namespace; a program sees only processes that it may
// trace, so not the init process. If parts of the machine's /proc are covered, the kernel
// refuses the mount unless the server is root.
func (r root) processes() error {
	target := string(r) + "/proc"
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	err := unix.Mount("proc", target, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "hidepid=2")
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("mounting /proc: %w: parts of the server's are covered, by a container or by systemd's ProtectKernelTunables", err)
	}
	if err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for _, name := range procReadOnly {
		at := filepath.Join(target, name)
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := unix.Mount(at, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("binding /proc/%s: %w", name, err)
		}
		if err := restrict("/proc/"+name, at, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return err
		}
	}
	for _, name := range procHidden {
		if err := r.hide("/proc/" + name); err != nil {
			return err
		}
	}
	return nil
}

// enter makes r the root, read only except for writable binds.
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
	// Only the root: the mounts below have their own attributes.
	err := unix.Mount("", "/", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, "")
	if err != nil {
		return fmt.Errorf("restricting the root: %w", err)
	}
	return nil
}
