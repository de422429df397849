package conns

import (
	"net"
	"sync"
)

// Handover is a net.Listener of connections that another listener has accepted. Use
// NewHandover.
type Handover struct {
	// Address is the result of Addr. It must be set before Addr is called.
	Address net.Addr

	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

var _ net.Listener = (*Handover)(nil)

// NewHandover makes a listener without connections.
func NewHandover(address net.Addr) *Handover {
	return &Handover{Address: address, conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Give waits until a connection is accepted. If the listener is closed, it closes the
// connection.
func (h *Handover) Give(c net.Conn) {
	select {
	case h.conns <- c:
	case <-h.closed:
		_ = c.Close()
	}
}

// Accept waits for a connection. Errors: net.ErrClosed.
func (h *Handover) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.closed:
		return nil, net.ErrClosed
	}
}

// Closed is closed when the listener is.
func (h *Handover) Closed() <-chan struct{} { return h.closed }

// Close ends waiting calls. It may be called more than once, and never fails.
func (h *Handover) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// Addr is the listener's address.
func (h *Handover) Addr() net.Addr { return h.Address }
