//go:build unix && !linux

package sandbox

import (
	"errors"
	"io"
	"net"
	"os"

	"godwit.dev/godwit/internal/invoke/process/netns"
)

// Process is a program that leads a process group: there is no sandbox on this system.
type Process struct{ *leader }

// Start starts a program with its output to output. It fails for a Spec with isolation, or
// with a user. Errors of the start may be reported by Exit.
func Start(spec Spec, output *os.File) (*Process, error) {
	if spec.Isolate || spec.User != 0 {
		return nil, errors.New("functions are isolated on Linux only")
	}
	l, err := startGroup(spec, output)
	if err != nil {
		return nil, err
	}
	return &Process{l}, nil
}

// Network fails.
func (p *Process) Network() (*netns.Sockets, error) { return nil, io.EOF }

// Connected is true: the owner of the other end is not known.
func (p *Process) Connected(net.Conn, int) bool { return true }

// PID is 0: the memory of processes is not measured on this system.
func (p *Process) PID() int { return 0 }

// UsedKB is 0.
func (t *Tmp) UsedKB() int64 { return 0 }
