//go:build !unix

package bootstrap

// ForbidCores does nothing on this system.
func ForbidCores() error { return nil }
