//go:build !unix

package sandbox

import (
	"errors"
	"io"
	"net"
	"os"

	"godwit.dev/godwit/internal/invoke/process/netns"
)

// Supported says that programs can run here at all.
const Supported = false

// Process is a program in its sandbox.
type Process struct{}

// Start fails: there are neither sandboxes nor process groups on this system.
func Start(Spec, *os.File) (*Process, error) {
	return nil, errors.New("functions do not run as processes on this system")
}

// Kill does nothing.
func (p *Process) Kill() {}

// Terminate does nothing.
func (p *Process) Terminate() {}

// Done is nil.
func (p *Process) Done() <-chan struct{} { return nil }

// Exit is the zero Exit.
func (p *Process) Exit() Exit { return Exit{} }

// Network fails.
func (p *Process) Network() (*netns.Sockets, error) { return nil, io.EOF }

// Connected is false.
func (p *Process) Connected(net.Conn, int) bool { return false }

// PID is 0.
func (p *Process) PID() int { return 0 }

// UsedKB is 0.
func (t *Tmp) UsedKB() int64 { return 0 }
