package main

import (
	"os"
	"syscall"
)

// syncData makes the file's content durable, without metadata that is not
// needed to read it.
func syncData(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
