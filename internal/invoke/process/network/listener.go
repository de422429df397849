package network

import (
	"net"
	"net/netip"

	"godwit.dev/godwit/internal/limit/conns"
)

// halfConn is a connection whose directions can be closed separately.
type halfConn interface {
	net.Conn
	CloseRead() error
	CloseWrite() error
}

// newListener gives the connections of all namespaces.
func newListener() *conns.Handover {
	return conns.NewHandover(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)))
}

// apiConn is a function's connection to AWS's API. Its remote address is always the
// function's loopback.
type apiConn struct {
	halfConn
	attachment *Attachment
	slot       *slot
}

func (c *apiConn) RemoteAddr() net.Addr {
	if tcp, ok := c.halfConn.RemoteAddr().(*net.TCPAddr); ok {
		return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Port}
	}
	return c.halfConn.RemoteAddr()
}

func (c *apiConn) Close() error {
	c.attachment.forget(c)
	c.slot.release()
	return c.halfConn.Close()
}
