package conns

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync/atomic"
	"time"

	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/limit"
)

const (
	// writeSize is the size of one write: unless the minimum rate requires less, that much must
	// be sent within a window.
	writeSize = 256 << 10
	// freeHead is the uncounted size of a request's head, in bytes.
	freeHead = 4 << 10
)

// The states of a connection.
const (
	idle   = int32(iota) // no request is being served; a head may be incomplete
	busy                 // a request is being served
	closed               // by Close, or for another connection
)

// socket is a connection whose writing side can be closed separately.
type socket interface {
	net.Conn
	CloseWrite() error
}

// Conn is a connection of a client. Writes must proceed at a minimum rate: a slower reader
// loses the connection.
type Conn struct {
	tcp      socket
	listener *Listener
	address  netip.Addr // the address that it is counted for; invalid: none
	of       *set       // of its address; nil: it is not counted

	state atomic.Int32
	since atomic.Int64 // when it became idle, by the listener's count of connections
	index [sets]int    // in each set that it is in; guarded by the listener's mu
	heads atomic.Int64 // counted bytes of heads

	moved      atomic.Int64
	writeUntil atomic.Int64 // deadline of SetWriteDeadline, in Unix nanoseconds; 0: none
	deadline   atomic.Int64 // the socket's deadline
}

var _ limit.Peer = (*Conn)(nil)

// Read reads. A head that exceeds the memory for all heads ends the connection.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.tcp.Read(p)
	c.moved.Add(int64(n))
	if n > 0 && c.state.Load() == idle && !c.countHead(int64(n)) {
		return 0, errHeads
	}
	return n, err
}

var errHeads = errors.New("the heads of requests under way take too much memory")

func (c *Conn) countHead(n int64) bool {
	before := c.heads.Add(n) - n
	more := max(before+n-freeHead, 0) - max(before-freeHead, 0)
	if more == 0 {
		return true
	}
	l := c.listener
	if l.heads.Add(more) > l.options.HeadBytes {
		l.refusedHeads.Add(1)
		return false
	}
	if c.state.Load() == closed {
		c.forgetHead() // closed meanwhile for another connection
	}
	return true
}

// forgetHead is called when a head is no longer needed.
func (c *Conn) forgetHead() {
	if n := c.heads.Swap(0) - freeHead; n > 0 {
		c.listener.heads.Add(-n)
	}
}

// Write writes. A part of every piece must be sent within the window.
func (c *Conn) Write(p []byte) (n int, err error) {
	return c.WriteNow(clock.System.Now(), p)
}

// WriteNow is Write for a caller that has just read the clock.
func (c *Conn) WriteNow(now time.Time, p []byte) (n int, err error) {
	for {
		part := p[n:min(len(p), n+writeSize)]
		m, err := c.write(now, part)
		n += m
		if err != nil || n == len(p) {
			return n, err
		}
		now = clock.System.Now()
	}
}

func (c *Conn) write(now time.Time, p []byte) (n int, err error) {
	for ; ; now = clock.System.Now() {
		c.limitWrite(now)
		m, err := c.tcp.Write(p[n:])
		n += m
		c.moved.Add(int64(m))
		if err == nil || !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, err
		}
		until := c.writeUntil.Load()
		if int64(m) < c.listener.minPerWindow() || until != 0 && until <= now.Add(c.listener.options.Window).UnixNano() && !clock.System.Now().Before(time.Unix(0, until)) {
			return n, err
		}
	}
}

// WriteBuffers writes all buffers, with one system call if they are small.
func (c *Conn) WriteBuffers(parts *net.Buffers) (n int64, err error) {
	size := 0
	for _, p := range *parts {
		size += len(p)
	}
	if size <= writeSize {
		c.limitWrite(clock.System.Now())
		n, err = parts.WriteTo(c.tcp)
		c.moved.Add(n)
		return n, err
	}
	for _, p := range *parts {
		m, err := c.Write(p)
		n += int64(m)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// limitWrite moves the socket's deadline to a window from now, or earlier, unless it is near
// that.
func (c *Conn) limitWrite(now time.Time) {
	window := c.listener.options.Window
	until := now.Add(window).UnixNano()
	if given := c.writeUntil.Load(); given != 0 && given < until {
		until = given
	}
	if set := c.deadline.Load(); set > until || set < until-int64(window/4) {
		c.deadline.Store(until)
		_ = c.tcp.SetWriteDeadline(time.Unix(0, until)) // a closed connection reports that at the next write
	}
}

// SetWriteDeadline bounds writes, in addition to the window.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.writeUntil.Store(0)
		return nil
	}
	c.writeUntil.Store(t.UnixNano())
	if until := t.UnixNano(); until < c.deadline.Load() { // maybe of a write in progress
		c.deadline.Store(until)
		return c.tcp.SetWriteDeadline(t)
	}
	return nil
}

// SetReadDeadline bounds reads.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.tcp.SetReadDeadline(t) }

// SetDeadline bounds both.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// LocalAddr is the server's address.
func (c *Conn) LocalAddr() net.Addr { return c.tcp.LocalAddr() }

// RemoteAddr is the client's address.
func (c *Conn) RemoteAddr() net.Addr { return c.tcp.RemoteAddr() }

// CloseWrite tells the client that nothing follows.
func (c *Conn) CloseWrite() error { return c.tcp.CloseWrite() }

// Close closes the connection, and frees its place.
func (c *Conn) Close() error {
	if c.state.Swap(closed) != closed {
		c.listener.forget(c)
	}
	return c.tcp.Close()
}

// Moved is how many bytes went over the connection.
func (c *Conn) Moved() int64 { return c.moved.Load() }

// CutRead aborts a read in progress.
func (c *Conn) CutRead() { _ = c.tcp.SetReadDeadline(time.Unix(1, 0)) }

// Cut closes the connection. The rest is not sent to a client that does not read, and its
// memory is released at once.
func (c *Conn) Cut() {
	if tcp, ok := c.tcp.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.tcp.Close()
}

// of finds the Conn below a connection, such as a TLS one; nil if there is none.
func of(c net.Conn) *Conn {
	for {
		switch below := c.(type) {
		case *Conn:
			return below
		case interface{ NetConn() net.Conn }:
			c = below.NetConn()
		default:
			return nil
		}
	}
}

// Context is an http.Server's ConnContext: it makes the connection the peer of its requests.
func Context(ctx context.Context, c net.Conn) context.Context {
	if c := of(c); c != nil {
		return limit.WithPeer(ctx, c)
	}
	return ctx
}

// State is an http.Server's ConnState: it is called when requests begin and end.
func State(conn net.Conn, state http.ConnState) {
	c := of(conn)
	if c == nil {
		return
	}
	switch state {
	case http.StateActive:
		c.state.CompareAndSwap(idle, busy)
	case http.StateIdle:
		c.since.Store(c.listener.taken.Load())
		if c.heads.Load() > 0 {
			c.forgetHead()
		}
		if c.state.CompareAndSwap(busy, idle) && c.listener.isExcess(c) {
			c.listener.closeExcess(c)
		}
	default: // new or closed
	}
}
