// Package netns sets up the network namespace of a sandbox, from within, and
// passes what is outside of it the sockets that it is served by: the namespace
// reaches nothing and is reached by nobody but through them.
package netns

import (
	"net"
	"net/netip"
	"os"
)

// The tunnel's ends. The addresses of version 4 are of the network that stands for
// such uses within a host (RFC 7335), so that no destination has them.
var (
	// Inside is the address of the namespace's own end.
	Inside = netip.MustParsePrefix("192.0.0.2/29")
	// Inside6 is the same in version 6.
	Inside6 = netip.MustParsePrefix("fd67:6f64:7769:7400::2/64")
	// Resolver is where names are asked for, at port 53.
	Resolver = netip.MustParseAddr("192.0.0.1")
)

// MTU is the largest packet in the tunnel, in bytes: as large as they come, since
// each costs two system calls and nobody has to pass them on.
const MTU = 65520

// Plan says what a namespace has.
type Plan struct {
	// Listen are the ports of TCP that are listened at. Each becomes a Listener.
	Listen []Port
	// Tunnel has all else lead into Sockets.Tunnel.
	Tunnel bool
}

// Port is a port that is listened at.
type Port struct {
	Number uint16
	// Loopback is to listen at 127.0.0.1 alone, and not at every address of the
	// namespace.
	Loopback bool
}

// Sockets are the ends of a namespace that are held outside of it.
type Sockets struct {
	// Listeners are those of Plan.Listen, in its order.
	Listeners []net.Listener
	// Tunnel gives and takes IP packets, one with each read and write; nil: there
	// is none. Problem says why, if there should be one.
	Tunnel  *os.File
	Problem string
}

// Close closes all of them.
func (s *Sockets) Close() {
	for _, l := range s.Listeners {
		_ = l.Close()
	}
	if s.Tunnel != nil {
		_ = s.Tunnel.Close()
	}
}
