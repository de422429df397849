// Package netns sets up the network namespace of a sandbox, from within, and passes its
// sockets to the process that serves it. The namespace has no other connection to the
// outside.
package netns

import (
	"net"
	"net/netip"
	"os"
)

// The addresses of the tunnel. The IPv4 network is reserved for such uses within a host (RFC
// 7335), so that it cannot be a destination.
var (
	// Inside is the address of the namespace's end.
	Inside = netip.MustParsePrefix("192.0.0.2/29")
	// Inside6 is its IPv6 address.
	Inside6 = netip.MustParsePrefix("fd67:6f64:7769:7400::2/64")
	// Resolver is the address of the DNS server, at port 53.
	Resolver = netip.MustParseAddr("192.0.0.1")
)

// MTU is the largest packet in the tunnel, in bytes. It is the maximum, because each packet
// costs two system calls and no router is involved.
const MTU = 65520

// Plan describes a namespace.
type Plan struct {
	// Listen are the TCP ports to listen at. Each becomes a Listener.
	Listen []Port
	// Tunnel routes all other traffic into Sockets.Tunnel.
	Tunnel bool
}

// Port is a port to listen at.
type Port struct {
	Number uint16
	// Loopback listens at 127.0.0.1 only, not at all addresses of the namespace.
	Loopback bool
}

// Sockets are the outer ends of a namespace.
type Sockets struct {
	// Listeners are those of Plan.Listen, in its order.
	Listeners []net.Listener
	// Tunnel reads and writes IP packets; nil: there is none. Problem is why, if Plan has
	// one.
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
