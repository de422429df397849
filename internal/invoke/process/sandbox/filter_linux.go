//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// The seccomp filter refuses system calls that functions do not need and that most escapes
// begin with: new namespaces and mounts, other processes' memory, and rarely used parts of
// the kernel. It is a deny list; newer calls than it knows are refused, too, so that programs
// fall back to older ones. Calls without a rule on their arguments are decided by number,
// which the kernel caches.

// Offsets in the filter's input (struct seccomp_data).
const (
	callNumber    = 0
	callArchitect = 4
	callArguments = 16 // of 8 bytes, the low half first
)

// lastCall is the newest system call that the filter knows. From 424 on, numbers are equal on
// all architectures.
const lastCall = unix.SYS_MSEAL

// namespaces are the flags of clone and unshare that make namespaces.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWCGROUP

// refused are system calls that fail like those of an unprivileged user.
var refused = []uint32{
	// Mounts and roots.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_OPEN_BY_HANDLE_AT,
	// Namespaces of others.
	unix.SYS_SETNS,
	// Other processes.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_PROCESS_MRELEASE,
	unix.SYS_PIDFD_GETFD, unix.SYS_KCMP, unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES, unix.SYS_MBIND, unix.SYS_SET_MEMPOLICY,
	unix.SYS_SET_MEMPOLICY_HOME_NODE, unix.SYS_GET_MEMPOLICY,
	// Keys, which have no namespace.
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
	// Parts of the kernel.
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_SYSLOG, unix.SYS_ACCT, unix.SYS_REBOOT,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME,
	unix.SYS_ADJTIMEX, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE,
}

// unknown are system calls that programs can do without. A filter cannot see the flags of
// clone3.
var unknown = []uint32{
	unix.SYS_MEMFD_SECRET, unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
}

// unseen are system calls for memory that no process need have mapped. Only a control group
// counts it.
var unseen = []uint32{unix.SYS_MEMFD_CREATE, unix.SYS_SHMGET, unix.SYS_SEMGET, unix.SYS_MSGGET}

// rule checks an argument of a system call.
type rule struct {
	call     uint32
	argument int
	tests    []bpf.Instruction // of the argument's low half; if none returns, the call is allowed
}

// refusal is the filter's result for an error.
func refusal(errno unix.Errno) bpf.RetConstant {
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

var rules = []rule{
	{unix.SYS_CLONE, 0, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces, SkipTrue: 1},
		refusal(unix.EPERM),
	}},
	{unix.SYS_UNSHARE, 0, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: namespaces | unix.CLONE_NEWTIME, SkipTrue: 1},
		refusal(unix.EPERM),
	}},
	// Sockets of the network and of this machine; netlink, which libc asks for addresses, is below.
	{unix.SYS_SOCKET, 0, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_INET6, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipTrue: 1},
		refusal(unix.EAFNOSUPPORT),
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.AF_NETLINK, SkipTrue: 3},
		argument(2),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.NETLINK_ROUTE, SkipTrue: 1},
		refusal(unix.EPROTONOSUPPORT),
	}},
	// Input into the server's terminal.
	{unix.SYS_IOCTL, 1, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipFalse: 1},
		refusal(unix.EPERM),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0x541c /* TIOCLINUX */, SkipFalse: 1},
		refusal(unix.EPERM),
	}},
	// Disabled address randomization, and emulation of older kernels.
	{unix.SYS_PERSONALITY, 0, []bpf.Instruction{
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0xffff_ffff, SkipTrue: 1},
		refusal(unix.EPERM),
	}},
	{unix.SYS_MKNODAT, 2, noDevices},
}

// noDevices allows only the modes of files, FIFOs and sockets.
var noDevices = []bpf.Instruction{
	bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: unix.S_IFMT},
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.S_IFCHR, SkipFalse: 1},
	refusal(unix.EPERM),
	bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.S_IFBLK, SkipFalse: 1},
	refusal(unix.EPERM),
}

func argument(n int) bpf.LoadAbsolute {
	return bpf.LoadAbsolute{Off: callArguments + 8*uint32(n), Size: 4}
}

// filterProgram is the filter for this machine's system calls.
func filterProgram(memoryLimited bool) ([]bpf.RawInstruction, error) {
	p := []bpf.Instruction{
		bpf.LoadAbsolute{Off: callArchitect, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: architecture, SkipTrue: 1},
		refusal(unix.ENOSYS), // calls of another architecture, with other numbers
		bpf.LoadAbsolute{Off: callNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lastCall, SkipFalse: 1},
		refusal(unix.ENOSYS),
	}
	p = append(p, oneOf(unknown, refusal(unix.ENOSYS))...)
	if !memoryLimited {
		p = append(p, oneOf(unseen, refusal(unix.ENOSYS))...)
	}
	p = append(p, oneOf(append(refused, refusedHere...), refusal(unix.EPERM))...)
	for _, r := range append(rules, rulesHere...) {
		p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: r.call, SkipTrue: uint8(len(r.tests) + 2)}, argument(r.argument))
		p = append(p, r.tests...)
		p = append(p, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW})
	}
	return bpf.Assemble(append(p, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
}

// oneOf returns answer if the number is in a list.
func oneOf(list []uint32, answer bpf.RetConstant) (p []bpf.Instruction) {
	for i, call := range list {
		if left := len(list) - 1 - i; left > 0 {
			p = append(p, bpf.JumpIf{Cond: bpf.JumpEqual, Val: call, SkipTrue: uint8(left)})
		} else {
			p = append(p, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: call, SkipTrue: 1})
		}
	}
	return append(p, answer)
}

// filterCalls installs the filter for the calling thread and its children. It cannot be
// removed.
func filterCalls(memoryLimited bool) error {
	program, err := filterProgram(memoryLimited)
	if err != nil {
		return err
	}
	filters := make([]unix.SockFilter, len(program))
	for i, in := range program {
		filters[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	list := unix.SockFprog{Len: uint16(len(filters)), Filter: &filters[0]}
	// Kernels before 5.16 would otherwise slow filtered programs down.
	const flags = unix.SECCOMP_FILTER_FLAG_SPEC_ALLOW
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&list))); errno != 0 {
		return fmt.Errorf("filtering system calls: %w", errno)
	}
	return nil
}
