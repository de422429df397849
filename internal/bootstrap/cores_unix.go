//go:build unix

package bootstrap

import "syscall"

// ForbidCores prevents core dumps of this process and its children, whose memory has keys and
// credentials. The limit of one byte is too small for a file, and, unlike 0, it also keeps
// the kernel from piping the memory to a program (core(5)). A lower hard limit stays, since
// it cannot be raised.
func ForbidCores() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil {
		return err
	}
	l.Max = min(l.Max, 1)
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &l)
}
