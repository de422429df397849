//go:build unix

package limit

import "golang.org/x/sys/unix"

// Descriptors raises the process's limit of file descriptors as far as permitted, and returns
// it; 0 if it is unknown.
func Descriptors() int {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	if r.Cur < r.Max {
		raised := r
		raised.Cur = r.Max
		if unix.Setrlimit(unix.RLIMIT_NOFILE, &raised) == nil {
			r = raised
		}
	}
	const most = 1 << 30 // "no limit" is a large one
	return int(min(r.Cur, most))
}
