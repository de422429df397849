//go:build !linux

package main

import "os"

// syncData makes the file's content durable.
func syncData(f *os.File) error { return f.Sync() }
