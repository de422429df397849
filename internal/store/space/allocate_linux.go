package space

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// preallocate makes f take size bytes on the disk, at once if the file system supports that.
func preallocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return fill(f, size)
	}
	return err
}
