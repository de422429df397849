//go:build linux

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"godwit.dev/godwit/test/soak"
)

// escape is something that a program in a sandbox must not succeed with. Its function
// returns nil if it did.
type escape struct {
	name string
	try  func() error
}

// victim is what a sandbox protects, as the program sees it.
type victim struct {
	Outer  string // a directory that is visible, read only
	Hidden string // a directory in it that is not
	TmpMB  int    // of /tmp
	User   int    // 0: it is root in its namespace
}

const secret = "the secret"

// escapes are tried one after the other, in a sandbox of a victim.
func escapes(v victim) []escape {
	call := func(number uintptr, args ...uintptr) func() error {
		return func() error {
			var a [6]uintptr
			copy(a[:], args)
			if r, _, errno := unix.RawSyscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); errno != 0 || r == ^uintptr(0) {
				return errno
			}
			return nil
		}
	}
	all := []escape{
		{"make the code writable", func() error {
			if err := unix.Mount("", "/var/task", "", unix.MS_REMOUNT|unix.MS_BIND, ""); err != nil {
				return err
			}
			return os.WriteFile("/var/task/bootstrap", []byte("poison"), 0o755)
		}},
		{"make the code writable, attribute by attribute", func() error {
			return unix.MountSetattr(unix.AT_FDCWD, "/var/task", 0, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
		}},
		{"change code", func() error { return os.WriteFile("/var/task/bootstrap", []byte("poison"), 0o755) }},
		{"add code", func() error { return os.WriteFile("/var/task/more", nil, 0o755) }},
		{"remove code", func() error { return os.Remove("/var/task/bootstrap") }},
		{"let others change code", func() error { return os.Chmod("/var/task/bootstrap", 0o777) }},
		{"replace code", func() error { return unix.Mount("/tmp", "/var/task", "", unix.MS_BIND, "") }},
		{"uncover what is hidden", func() error {
			if err := unix.Unmount(v.Hidden, unix.MNT_DETACH); err != nil {
				return err
			}
			return read(v.Hidden + "/secret")
		}},
		{"read what is hidden", func() error { return read(v.Hidden + "/secret") }},
		{"read what is hidden by a link", func() error {
			if err := os.Symlink(v.Hidden, "/tmp/link"); err != nil {
				return err
			}
			return read("/tmp/link/secret")
		}},
		{"change what is visible", func() error { return os.WriteFile(v.Outer+"/file", []byte("x"), 0o644) }},
		{"link what is visible to where it can be changed", func() error { return os.Link(v.Outer+"/file", "/tmp/file") }},
		{"mount a file system", func() error { return unix.Mount("tmpfs", "/tmp", "tmpfs", 0, "") }},
		{"mount another /proc", func() error { return unix.Mount("proc", "/tmp", "proc", 0, "") }},
		{"unmount /proc", func() error { return unix.Unmount("/proc", unix.MNT_DETACH) }},
		{"unmount /tmp", func() error { return unix.Unmount("/tmp", unix.MNT_DETACH) }},
		{"open a file system", func() error { _, err := unix.Fsopen("tmpfs", 0); return err }},
		{"clone a mount", func() error { _, err := unix.OpenTree(unix.AT_FDCWD, "/var/task", unix.OPEN_TREE_CLONE); return err }},
		{"move a mount", func() error { return unix.MoveMount(unix.AT_FDCWD, "/tmp", unix.AT_FDCWD, "/var/task", 0) }},
		{"change the root by pivoting", func() error { return unix.PivotRoot("/tmp", "/tmp") }},
		{"change the root", func() error { return unix.Chroot("/tmp") }},
		{"a namespace for users", call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER)},
		{"a namespace for mounts", call(unix.SYS_UNSHARE, unix.CLONE_NEWNS)},
		{"a namespace for the network", call(unix.SYS_UNSHARE, unix.CLONE_NEWNET)},
		{"a process in a namespace for users", func() error {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
			return cmd.Run()
		}},
		{"flags that cannot be seen", call(unix.SYS_CLONE3, 0, 0)},
		{"enter a namespace", func() error { return enter("/proc/self/ns/mnt") }},
		{"enter the init process's namespace", func() error { return enter("/proc/1/ns/mnt") }},
		{"trace the init process", func() error { return unix.PtraceSeize(1) }},
		{"trace a process of its own", call(unix.SYS_PTRACE, unix.PTRACE_TRACEME)},
		{"read the init process's memory", func() error {
			b := make([]byte, 8)
			local := []unix.Iovec{{Base: &b[0], Len: 8}}
			_, err := unix.ProcessVMReadv(1, local, []unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
			return err
		}},
		{"take a file of the init process's", func() error {
			pidfd, err := unix.PidfdOpen(1, 0)
			if err != nil {
				return err
			}
			_, err = unix.PidfdGetfd(pidfd, reportFile, 0)
			return err
		}},
		{"signal other processes", func() error {
			for pid := 2; pid < 1<<15; pid++ {
				if pid == os.Getpid() {
					continue
				}
				// Its own threads answer too, and where it is root those of the init process.
				if unix.Kill(pid, 0) == nil && unix.Tgkill(os.Getpid(), pid, 0) != nil && unix.Tgkill(1, pid, 0) != nil {
					return nil
				}
			}
			return errors.New("there are none")
		}},
		{"end the init process", func() error {
			for _, signal := range []unix.Signal{unix.SIGKILL, unix.SIGSTOP, unix.SIGINT, unix.SIGQUIT, unix.SIGSEGV, unix.SIGPROF, unix.SIGUSR1, 40} {
				_ = unix.Kill(1, signal)
			}
			return errors.New("with it would end the program")
		}},
		{"make a device", func() error {
			if err := unix.Mknod("/tmp/mem", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 1))); err != nil {
				return err
			}
			return read("/tmp/mem")
		}},
		{"make a device in another way", func() error {
			return unix.Mknodat(unix.AT_FDCWD, "/tmp/mem2", unix.S_IFBLK|0o666, int(unix.Mkdev(8, 0)))
		}},
		{"another user", func() error { return unix.Setuid(v.User + 1) }},
		{"another user of the system's", func() error { return unix.Setresuid(7, 7, 7) }},
		{"another group", func() error { return unix.Setgid(v.User + 1) }},
		{"more groups", func() error { return unix.Setgroups([]int{v.User, 4}) }},
		{"give a file away", func() error {
			if err := os.WriteFile("/tmp/gift", nil, 0o4755); err != nil {
				return err
			}
			return os.Chown("/tmp/gift", v.User+1, v.User+1)
		}},
		{"capabilities", func() error {
			header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			sets := [2]unix.CapUserData{{Effective: 1 << unix.CAP_SYS_ADMIN, Permitted: 1 << unix.CAP_SYS_ADMIN}}
			return unix.Capset(&header, &sets[0])
		}},
		{"ambient capabilities", func() error {
			return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_RAW, 0, 0)
		}},
		{"privileges again", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0) }},
		{"no filter", func() error { return unix.Prctl(unix.PR_SET_SECCOMP, 0, 0, 0, 0) }},
		{"more files", func() error {
			return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: MaxOpenFiles + 1, Max: MaxOpenFiles + 1})
		}},
		{"more processes", func() error {
			return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: maxProcesses + 1, Max: maxProcesses + 1})
		}},
		{"keys", call(unix.SYS_KEYCTL, 0 /* KEYCTL_GET_KEYRING_ID */, ^uintptr(2), 1)},
		{"a key", func() error { _, err := unix.AddKey("user", "k", []byte("v"), -4); return err }},
		{"a program in the kernel", call(unix.SYS_BPF, 0, uintptr(unsafe.Pointer(&make([]byte, 128)[0])), 128)},
		{"the processor's counters", call(unix.SYS_PERF_EVENT_OPEN, uintptr(unsafe.Pointer(&make([]byte, 128)[0])), 0, ^uintptr(0), ^uintptr(0))},
		{"faults of pages", call(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|1)},
		{"rings of system calls", call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&make([]byte, 256)[0])))},
		{"a handle of a file", func() error { _, _, err := unix.NameToHandleAt(unix.AT_FDCWD, "/tmp", 0); return err }},
		{"a file by a handle", func() error {
			_, err := unix.OpenByHandleAt(unix.AT_FDCWD, unix.NewFileHandle(1, make([]byte, 8)), unix.O_RDONLY)
			return err
		}},
		{"another kernel", call(unix.SYS_KEXEC_LOAD, 0, 0, 0, 0)},
		{"a module", func() error { return unix.InitModule([]byte("x"), "") }},
		{"the kernel's log", func() error { _, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 64)); return err }},
		{"another name", func() error { return unix.Sethostname([]byte("x")) }},
		{"another time", func() error { return unix.ClockSettime(unix.CLOCK_REALTIME, &unix.Timespec{Sec: 1}) }},
		{"swap", call(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(&[]byte("/tmp\x00")[0])))},
		{"a restart", call(unix.SYS_REBOOT, unix.LINUX_REBOOT_MAGIC1, unix.LINUX_REBOOT_MAGIC2, unix.LINUX_REBOOT_CMD_CAD_OFF)},
		{"addresses that are not random", call(unix.SYS_PERSONALITY, 0x0040000)},
		{"type into the terminal", call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(&[]byte("x")[0])))},
		{"a call that the filter does not know", func() error {
			if err := call(lastCall + 1)(); !errors.Is(err, unix.ENOSYS) {
				return nil
			}
			return unix.ENOSYS
		}},
		{"memory that is nobody's", func() error { _, err := unix.MemfdCreate("x", 0); return err }},
		{"memory that is kept from the kernel", call(unix.SYS_MEMFD_SECRET, 0)},
		{"memory of System V", call(unix.SYS_SHMGET, 0, 1<<20, 0o1600)},
		{"semaphores of System V", call(unix.SYS_SEMGET, 0, 32000, 0o1600)},
		{"messages of System V", call(unix.SYS_MSGGET, 0, 0o1600)},
		{"to be the last that is killed for memory", func() error { return writable("/proc/self/oom_score_adj", "-1000") }},
		{"users of its own", func() error { return writable("/proc/self/uid_map", "0 0 1") }},
	}
	for _, family := range []int{unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG, unix.AF_KEY, unix.AF_BLUETOOTH} {
		all = append(all, escape{fmt.Sprintf("a socket of family %d", family), func() error {
			_, err := unix.Socket(family, unix.SOCK_RAW, 0)
			return err
		}})
	}
	all = append(all, escape{"the kernel's audit", func() error {
		_, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT)
		return err
	}})
	for _, path := range []string{
		"/proc/1/environ", "/proc/1/mem", "/proc/1/maps", "/proc/1/cmdline", "/proc/1/root/etc/passwd", "/proc/1/cwd/etc/passwd", "/proc/1/exe",
		"/proc/1/fd/3", "/proc/1/task/1/environ", "/proc/kcore", "/proc/keys", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/dev/sda", "/dev/vda",
		"/dev/fuse", "/dev/loop-control", "/dev/shm/x", "/sys/fs/cgroup/cgroup.procs", "/sys/kernel/uevent_helper", "/root/.bashrc", "/var/task/../../../proc/1/environ",
	} {
		all = append(all, escape{"read " + path, func() error { return read(path) }})
	}
	for _, path := range []string{
		"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/user/max_user_namespaces", "/proc/sys/net/ipv4/ip_forward",
		"/proc/sys/kernel/shmmax", "/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger", "/proc/1/oom_score_adj",
		"/usr/bin/env", "/bin/sh", "/usr/lib/new", "/etc/passwd", "/etc/new", "/new", "/dev/new", "/var/new", "/var/runtime/new", "/opt/new",
	} {
		all = append(all, escape{"write " + path, func() error { return writable(path, "") }})
	}
	return all
}

func read(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err = f.Read(make([]byte, 64)); errors.Is(err, io.EOF) {
		return fmt.Errorf("%s is empty: %w", path, err)
	}
	return err
}

// writable writes text, or opens the file for it only.
func writable(path, text string) error {
	flags := os.O_WRONLY
	if strings.HasSuffix(path, "/new") {
		flags |= os.O_CREATE
	}
	f, err := os.OpenFile(path, flags, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	if text != "" {
		_, err = f.WriteString(text)
	}
	return err
}

func enter(namespace string) error {
	fd, err := unix.Open(namespace, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return unix.Setns(fd, 0)
}

// invalid are escapes that the kernel has no other word for.
var invalid = map[string]bool{
	"another user": true, "another user of the system's": true, "another group": true, "give a file away": true,
	"privileges again": true, "no filter": true,
}

// breakOut is the program in the sandbox: it prints whatever it succeeds with.
func breakOut(v victim, out io.Writer) {
	for _, e := range inherited() {
		fmt.Fprintln(out, e)
	}
	for _, line := range rights() {
		fmt.Fprintln(out, line)
	}
	for _, e := range escapes(v) {
		if err := e.try(); err == nil {
			fmt.Fprintln(out, "escaped:", e.name)
		} else if !invalid[e.name] && (errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EFAULT)) {
			fmt.Fprintf(out, "refused for its arguments only: %s: %v\n", e.name, err)
		}
	}
	for _, line := range fill(v.TmpMB) {
		fmt.Fprintln(out, line)
	}
	if soak.Enabled() {
		for _, line := range bomb() {
			fmt.Fprintln(out, line)
		}
	}
	fmt.Fprintln(out, "through")
}

// inherited are open files that are not the program's.
func inherited() (found []string) {
	for fd := 3; fd < 256; fd++ {
		target, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if err != nil || strings.HasPrefix(target, "anon_inode:") { // the runtime's own
			continue
		}
		b := make([]byte, 64)
		n, err := unix.Pread(fd, b, 0)
		found = append(found, fmt.Sprintf("inherited %d, %s: %q %v", fd, target, b[:max(n, 0)], err))
	}
	return found
}

// rights are what the kernel says of the program that it should not.
func rights() (found []string) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return []string{err.Error()}
	}
	want := map[string]string{
		"CapInh": "0000000000000000", "CapPrm": "0000000000000000", "CapEff": "0000000000000000", "CapBnd": "0000000000000000",
		"CapAmb": "0000000000000000", "NoNewPrivs": "1", "Seccomp": "2", "Seccomp_filters": "",
	}
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if w, ok := want[name]; ok && w != "" && value != w {
			found = append(found, line)
		}
		delete(want, name)
	}
	for name := range want {
		if name != "Seccomp_filters" { // newer kernels tell
			found = append(found, name+" is not told")
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return append(found, err.Error())
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		at, options := fields[4], ","+fields[5]+","
		open := at == "/tmp" || at == "/proc" || strings.HasPrefix(at, "/dev/") || strings.HasPrefix(at, "/proc/")
		if !open && !strings.Contains(options, ",ro,") || !strings.Contains(options, ",nosuid,") && !strings.HasPrefix(at, "/proc/") {
			found = append(found, "mount "+at+options)
		}
	}
	entries, _ := filepath.Glob("/proc/[0-9]*")
	if len(entries) != 1 {
		found = append(found, fmt.Sprintf("sees processes %v", entries))
	}
	if conn, err := net.Dial("unix", "/run/docker.sock"); err == nil {
		found = append(found, "docker")
		_ = conn.Close()
	}
	return found
}

// bomb starts processes until it may not.
func bomb() (found []string) {
	for n := 0; n <= maxProcesses; n++ {
		if _, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "60"}, nil); errors.Is(err, unix.EAGAIN) && n > maxProcesses/2 {
			return nil
		} else if err != nil {
			return []string{fmt.Sprintf("%d processes: %v", n, err)}
		}
	}
	return []string{fmt.Sprintf("more than %d processes", maxProcesses)}
}

// fill writes into /tmp until it is full, and looks at how much went in.
func fill(megabytes int) (found []string) {
	block, written := bytes.Repeat([]byte{1}, 64<<10), 0
	var err error
	for i := 0; err == nil && written <= megabytes<<20; i++ {
		var f *os.File
		if f, err = os.Create(fmt.Sprintf("/tmp/fill%d", i)); err == nil {
			for j := 0; err == nil && j < 4; j++ {
				var n int
				n, err = f.Write(block)
				written += n
			}
			_ = f.Close()
		}
	}
	if !errors.Is(err, unix.ENOSPC) || written > megabytes<<20 || written < megabytes<<19 {
		found = append(found, fmt.Sprintf("/tmp of %d MiB took %d bytes: %v", megabytes, written, err))
	}
	files, _ := filepath.Glob("/tmp/*")
	for _, f := range files {
		_ = os.RemoveAll(f)
	}
	for i := 0; ; i++ {
		if err := os.WriteFile(fmt.Sprintf("/tmp/e%d", i), nil, 0o600); errors.Is(err, fs.ErrExist) || err != nil {
			if !errors.Is(err, unix.ENOSPC) {
				found = append(found, err.Error())
			}
			return found
		}
		if i > megabytes<<20/inodeBytes {
			return append(found, fmt.Sprintf("/tmp takes more than %d files", i))
		}
	}
}
