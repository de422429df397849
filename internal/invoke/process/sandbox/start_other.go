//go:build !linux

package sandbox

import (
	"errors"
	"os"
)

// Process is a program in its sandbox.
type Process struct{}

// Start fails: there is no sandbox on this system.
func Start(Spec, *os.File) (*Process, error) {
	return nil, errors.New("functions run as processes on Linux only")
}

// Kill does nothing.
func (p *Process) Kill() {}

// Terminate does nothing.
func (p *Process) Terminate() {}

// Done is nil.
func (p *Process) Done() <-chan struct{} { return nil }

// Exit tells nothing.
func (p *Process) Exit() Exit { return Exit{} }

// PID is 0.
func (p *Process) PID() int { return 0 }

// Descendants are not known.
func Descendants(int) []int { return nil }
