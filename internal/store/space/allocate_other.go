//go:build !linux

package space

import "os"

// preallocate makes f take size bytes on the disk.
func preallocate(f *os.File, size int64) error { return fill(f, size) }
