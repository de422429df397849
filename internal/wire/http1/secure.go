package http1

import (
	"crypto/tls"
	"net"
	"time"

	"godwit.dev/godwit/internal/clock"
)

// secured is a connection over TLS on which HTTP/1.1 is spoken.
type secured struct {
	replayed
	state tls.ConnectionState
}

// ConnectionState is what net/http tells handlers of TLS.
func (s *secured) ConnectionState() tls.ConnectionState { return s.state }

// secure makes the handshake of TLS, during which Shutdown takes the connection for
// idle, and gives it to net/http: where HTTP/1.1 is spoken behind a framing, and else,
// as HTTP/2 and a handshake that failed, as it is. Of the latter net/http makes the
// same handshake again, whose result is kept, and reports who asked.
func (s *Server) secure(t *tls.Conn) {
	c := &conn{server: s, tcp: t}
	c.idle.Store(true)
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	defer s.forget(c)
	if s.stopping.Load() && c.idle.CompareAndSwap(true, false) {
		_ = t.Close()
		return
	}
	if limit := s.handshakeTimeout(); limit > 0 {
		_ = t.SetDeadline(clock.System.Now().Add(limit)) // a closed connection says so when it is read
	}
	err := t.Handshake()
	if !c.idle.CompareAndSwap(true, false) {
		return // closed by Shutdown
	}
	state := t.ConnectionState()
	if err != nil || state.NegotiatedProtocol != "" && state.NegotiatedProtocol != "http/1.1" {
		s.handover.Give(t)
		return
	}
	_ = t.SetDeadline(time.Time{})
	s.handover.Give(&secured{replayed{halfCloser: t}, state})
}

// handshakeTimeout is as in net/http: the least of those that are given.
func (s *Server) handshakeTimeout() (least time.Duration) {
	for _, t := range [...]time.Duration{s.other.ReadHeaderTimeout, s.other.ReadTimeout, s.other.WriteTimeout} {
		if t > 0 && (least == 0 || t < least) {
			least = t
		}
	}
	return least
}

// Framed is a listener for net/http alone, whose requests with both Content-Length and
// Transfer-Encoding are refused. l is one of TCP.
func Framed(l net.Listener) net.Listener { return framed{l} }

type framed struct{ net.Listener }

func (l framed) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	tcp, ok := c.(halfCloser)
	if !ok {
		return c, nil
	}
	return &replayed{halfCloser: tcp}, nil
}
