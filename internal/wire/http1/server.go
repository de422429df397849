package http1

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/limit/conns"
)

// defaultMaxHeader is the largest head, in bytes, that is read here where no other
// limit is given.
const defaultMaxHeader = 64 << 10

// stopPoll is how often Shutdown looks whether the last request is answered.
const stopPoll = 5 * time.Millisecond

// Server serves plain requests itself and all others by net/http. Use New.
type Server struct {
	handler  http.Handler
	other    *http.Server
	handover *conns.Handover // from which net/http takes its connections
	context  context.Context // what its connections' begin with
	stopping atomic.Bool
	date     atomic.Pointer[date]

	mu       sync.Mutex
	listener net.Listener
	conns    map[*conn]struct{}
}

// New returns a server that serves plain requests with the handler and other's timeouts,
// MaxHeaderBytes, ConnContext and ConnState, and has other serve all other requests, and TLS. A connection that
// is handed over to other is announced again by that: ConnState is called with http.StateNew and
// http.StateClosed only there. other must serve nothing else. The handler must not change a
// request's header, and must not use the request, nor anything in it but strings, after it has
// returned.
func New(handler http.Handler, other *http.Server) *Server {
	return &Server{
		handler:  handler,
		other:    other,
		handover: conns.NewHandover(nil),
		context:  context.WithValue(context.Background(), http.ServerContextKey, other),
		conns:    make(map[*conn]struct{}),
	}
}

// Serve takes connections from l until Shutdown or Close, and then returns
// http.ErrServerClosed; or until l fails. It is called once.
func (s *Server) Serve(l net.Listener) error {
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	if s.stopping.Load() {
		l.Close()
		return http.ErrServerClosed
	}
	s.handover.Address = l.Addr()
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = s.other.Serve(s.handover) // ends with the handover, and only so
	}()
	defer func() { <-served }()
	defer func() { _ = s.handover.Close() }()
	for {
		tcp, err := l.Accept()
		switch {
		case err == nil:
			s.start(tcp)
		case s.stopping.Load():
			<-s.handover.Closed() // by Shutdown or Close, which see to the last ones
			return http.ErrServerClosed
		case !s.pause(err):
			return err
		}
	}
}

// pause backs off and returns true after a temporary error of Accept, such as a lack of file
// descriptors.
func (s *Server) pause(err error) bool {
	var temporary interface{ Temporary() bool }
	if !errors.As(err, &temporary) || !temporary.Temporary() {
		return false
	}
	s.logf("http: accept: %v", err)
	<-after(50 * time.Millisecond)
	return true
}

// after returns a channel that is closed in d.
func after(d time.Duration) <-chan struct{} {
	over, _ := clock.After(clock.System, d)
	return over
}

func (s *Server) start(socket net.Conn) {
	if t, ok := socket.(*tls.Conn); ok {
		go s.secure(t)
		return
	}
	tcp, ok := socket.(halfCloser)
	if !ok {
		s.handover.Give(socket)
		return
	}
	c := &conn{server: s, tcp: tcp, remote: socket.RemoteAddr().String(), context: s.context}
	if s.other.ConnContext != nil {
		c.context = s.other.ConnContext(c.context, socket)
	}
	s.mu.Lock()
	s.conns[c] = struct{}{}
	s.mu.Unlock()
	go c.serve()
}

func (s *Server) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// Shutdown takes no more connections, closes those that wait for a request and
// lets the others answer theirs. It returns when all are closed, or with ctx's
// error when that ends; Close then cuts off what is left.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stop()
	for !s.closeIdle() {
		select {
		case <-after(stopPoll):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.other.Shutdown(ctx) // closes the handover
}

// Close cuts all connections off.
func (s *Server) Close() error {
	s.stop()
	s.mu.Lock()
	for c := range s.conns {
		_ = c.tcp.Close()
	}
	s.mu.Unlock()
	return s.other.Close()
}

func (s *Server) stop() {
	s.stopping.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		s.listener.Close()
	}
}

// closeIdle closes the connections that wait for a request, and reports
// whether no other is left.
func (s *Server) closeIdle() (none bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if c.idle.CompareAndSwap(true, false) {
			_ = c.tcp.Close()
			delete(s.conns, c)
		}
	}
	return len(s.conns) == 0
}

func (s *Server) logf(format string, args ...any) {
	if log := s.other.ErrorLog; log != nil {
		log.Printf(format, args...)
	}
}

// Timeouts that are not set default as in net/http; those that are not positive are none.
func (s *Server) idleTimeout() time.Duration {
	return cmp.Or(s.other.IdleTimeout, s.other.ReadTimeout)
}

func (s *Server) headTimeout() time.Duration {
	return cmp.Or(s.other.ReadHeaderTimeout, s.other.ReadTimeout)
}

func (s *Server) maxHeader() int {
	if s.other.MaxHeaderBytes > 0 {
		return s.other.MaxHeaderBytes
	}
	return defaultMaxHeader
}

// date is the value of the Date header in one second.
type date struct {
	second int64
	text   string
}

func (s *Server) dateAt(now time.Time) string {
	d := s.date.Load()
	if second := now.Unix(); d == nil || d.second != second {
		d = &date{second, now.UTC().Format(http.TimeFormat)}
		s.date.Store(d)
	}
	return d.text
}
