//go:build unix

package bootstrap

import "syscall"

// ForbidCores keeps the kernel from writing the memory of this process, and of those that it
// starts, into a file when one crashes: keys and credentials are in it. One byte is less
// than the kernel needs for a file, and, unlike none, keeps it from starting a program that
// takes the memory (core(5)). A hard limit below that stays, since it cannot be raised.
func ForbidCores() error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &l); err != nil {
		return err
	}
	l.Max = min(l.Max, 1)
	l.Cur = l.Max
	return syscall.Setrlimit(syscall.RLIMIT_CORE, &l)
}
